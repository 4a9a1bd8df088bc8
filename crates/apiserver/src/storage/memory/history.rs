//! All versions since the last compaction: the current state, a log of changes, and checkpoints of the state.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::storage::document::Document;
use crate::storage::stored::{Change, Stored};
use crate::storage::tree::{Tree, apply, scan};
use crate::storage::{Page, Range, StorageError};

/// The most changes between two checkpoints. A read at an older revision copies the nearest checkpoint and applies the changes after it,
/// in well under a millisecond. A checkpoint per change would keep a path of tree nodes alive for each, as large as a small object.
const CHECKPOINT_EVERY: usize = 1024;

/// The versions of all documents.
///
/// Invariants: `log` has the changes `oldest+1 ..= revision`, one per revision, in order; `checkpoints` is in order of revision and its
/// first is at or below `oldest`.
pub(super) struct History {
    current: Tree,
    revision: u64,
    log: VecDeque<Arc<Change>>,
    /// Bytes of the versions that the changes in `log` have replaced.
    replaced: usize,
    checkpoints: VecDeque<(u64, Tree)>,
    /// The smallest revision that can be read.
    oldest: u64,
}

/// The state at one revision, to be read without a lock.
pub(super) struct View {
    tree: Tree,
    revision: u64,
    /// Changes to apply to `tree` to get to `revision`.
    pending: Vec<Arc<Change>>,
}

impl History {
    pub(super) fn new(revision: u64) -> Self {
        Self::without_history(revision, Tree::new())
    }

    /// Returns a copy of the current state without older versions.
    pub(super) fn backup(&self) -> Self {
        Self::without_history(self.revision, self.current.clone())
    }

    fn without_history(revision: u64, current: Tree) -> Self {
        let checkpoints = VecDeque::from([(revision, current.clone())]);
        Self { current, revision, log: VecDeque::new(), replaced: 0, checkpoints, oldest: revision }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(super) fn len(&self) -> usize {
        self.log.len()
    }

    /// Returns the bytes of replaced versions.
    pub(super) fn replaced(&self) -> usize {
        self.replaced
    }

    pub(super) fn get(&self, key: &str) -> Option<&Arc<Stored>> {
        self.current.get(key)
    }

    /// Fails unless the stored revision is the expected one.
    pub(super) fn check(&self, key: &str, expected: u64) -> Result<(), StorageError> {
        match self.get(key) {
            None => Err(StorageError::NotFound),
            Some(stored) if stored.revision != expected => Err(StorageError::Conflict(Arc::clone(stored))),
            Some(_) => Ok(()),
        }
    }

    pub(super) fn put(&mut self, key: &str, document: Document) -> Arc<Change> {
        let revision = self.revision + 1;
        let key = self.get(key).map_or_else(|| Arc::from(key), |stored| Arc::clone(&stored.key));
        let stored = Arc::new(Stored { key: Arc::clone(&key), revision, document });
        let previous = self.current.insert(key, Arc::clone(&stored));
        self.commit(Change { revision, previous, current: Some(stored) })
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Arc<Change>> {
        let previous = self.current.remove(key)?;
        Some(self.commit(Change { revision: self.revision + 1, previous: Some(previous), current: None }))
    }

    fn commit(&mut self, change: Change) -> Arc<Change> {
        let change = Arc::new(change);
        self.revision = change.revision;
        self.replaced += change.replaced_bytes();
        self.log.push_back(Arc::clone(&change));
        let last = self.checkpoints.back().map_or(0, |(revision, _)| *revision);
        if self.revision - last >= CHECKPOINT_EVERY as u64 {
            self.checkpoints.push_back((self.revision, self.current.clone()));
        }
        change
    }

    /// Returns up to `limit` changes after a revision.
    pub(super) fn changes(&self, after: u64, limit: usize) -> Result<Vec<Arc<Change>>, StorageError> {
        if after < self.oldest {
            return Err(StorageError::Compacted { oldest: self.oldest });
        }
        let skip = usize::try_from(after - self.oldest).unwrap_or(usize::MAX);
        Ok(self.log.iter().skip(skip.min(self.log.len())).take(limit).cloned().collect())
    }

    pub(super) fn view(&self, at: Option<u64>) -> Result<View, StorageError> {
        let revision = at.unwrap_or(self.revision);
        if revision > self.revision {
            return Err(StorageError::Future { current: self.revision });
        }
        if revision < self.oldest {
            return Err(StorageError::Compacted { oldest: self.oldest });
        }
        if revision == self.revision {
            return Ok(View { tree: self.current.clone(), revision, pending: Vec::new() });
        }
        let next = self.checkpoints.partition_point(|(taken, _)| *taken <= revision);
        let (taken, tree) = &self.checkpoints[next - 1];
        let first = taken.saturating_sub(self.oldest) as usize;
        let pending = self.log.iter().skip(first).take_while(|change| change.revision <= revision).cloned();
        Ok(View { tree: tree.clone(), revision, pending: pending.collect() })
    }

    /// Removes versions that are not visible at or after `revision`.
    pub(super) fn compact(&mut self, revision: u64) {
        if revision <= self.oldest {
            return;
        }
        let base = self.view(Some(revision)).map(View::tree);
        let Ok(base) = base else { return };
        let compacted = self.log.partition_point(|change| change.revision <= revision);
        let freed: usize = self.log.drain(..compacted).map(|change| change.replaced_bytes()).sum();
        self.replaced -= freed;
        while self.checkpoints.front().is_some_and(|(taken, _)| *taken <= revision) {
            self.checkpoints.pop_front();
        }
        self.checkpoints.push_front((revision, base));
        self.oldest = revision;
    }
}

impl View {
    fn tree(self) -> Tree {
        let mut tree = self.tree;
        self.pending.iter().for_each(|change| apply(&mut tree, change));
        tree
    }

    /// Returns the total size of all documents.
    pub(super) fn bytes(self) -> u64 {
        self.tree().values().map(|stored| stored.document.encoded_len() as u64).sum()
    }

    pub(super) fn read(self, range: &Range) -> Page {
        let revision = self.revision;
        let tree = self.tree();
        let mut found = scan(&tree, &range.prefix, range.start.as_deref().unwrap_or_default());
        let limit = if range.limit == 0 { usize::MAX } else { range.limit };
        let items = found.by_ref().take(limit).cloned().collect();
        Page { items, remaining: found.count(), revision }
    }
}
