//! The recent past of one resource: the newest changes, and a state now and then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use crate::storage::Tree;

/// A state is kept every so many changes, and at least four per window; an exact read repeats the changes that follow it, in well under a
/// millisecond. A state per change would keep alive a path of tree nodes for each, as large as a small object.
const CHECKPOINT_EVERY: usize = 1024;

/// Replaced versions are kept up to this many bytes, and beyond it only in a window of the smallest size: a burst of large objects must not
/// fill the memory.
const MAX_REPLACED_BYTES: usize = 256 << 20;

/// Encodings are kept for this many of the newest events: as long as a fan-out may last, not as long as the window.
const ENCODED: u64 = 64;

/// Sizes of the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowSize {
    pub(super) min: usize,
    pub(super) max: usize,
    /// Changes younger than this are worth keeping: a bookmark period and a little more, so that who saw its last bookmark can resume.
    pub(super) period: Duration,
}

/// The newest changes, in order.
///
/// Every change has a number that never repeats while the cache lives, so that a reader holds a position and not an index.
/// Invariants: `events` holds the numbers `first .. first + events.len()`; `events.len() <= capacity`; a checkpoint numbered `n` is the
/// state before event `n`, and only checkpoints at or after `first` are kept.
pub(super) struct Window {
    events: VecDeque<Entry>,
    first: u64,
    /// Bytes of the versions that the events here have replaced.
    replaced: usize,
    capacity: usize,
    size: WindowSize,
    /// The revision of the last full read of the store.
    listed_at: u64,
    /// Whether a change since then has been dropped.
    dropped: bool,
    checkpoints: VecDeque<Checkpoint>,
    /// Exact reads at or below this revision are no longer served: the store has compacted it.
    compacted: u64,
}

struct Entry {
    event: Arc<Event>,
    at: Instant,
}

struct Checkpoint {
    number: u64,
    revision: u64,
    tree: Tree,
}

/// A state of the past: a tree and the changes that lead from it to the revision.
pub(super) struct Past {
    tree: Tree,
    changes: Vec<Arc<Event>>,
}

impl Window {
    pub(super) fn new(size: WindowSize) -> Self {
        Self {
            events: VecDeque::new(),
            first: 0,
            replaced: 0,
            capacity: size.min,
            size,
            listed_at: 0,
            dropped: false,
            checkpoints: VecDeque::new(),
            compacted: 0,
        }
    }

    /// Forgets everything and starts at a state. Positions of before are behind it.
    pub(super) fn reset(&mut self, revision: u64, tree: Tree) {
        // A gap in the numbers: a position at the old end must not pass for one at the new beginning.
        self.first = self.end() + 1;
        self.events.clear();
        self.replaced = 0;
        self.checkpoints.clear();
        self.checkpoints.push_back(Checkpoint { number: self.first, revision, tree });
        (self.listed_at, self.dropped) = (revision, false);
    }

    /// The number of the oldest event here.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number the next event gets.
    pub(super) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Adds a change that led to `tree`.
    pub(super) fn push(&mut self, event: Arc<Event>, tree: &Tree, now: Instant) {
        let revision = event.change.revision;
        self.resize(now);
        self.replaced += event.change.replaced_bytes();
        while self.events.len() >= self.capacity || self.is_too_heavy() {
            self.drop_oldest();
        }
        self.events.push_back(Entry { event, at: now });
        while self.checkpoints.front().is_some_and(|checkpoint| checkpoint.number < self.first) {
            self.checkpoints.pop_front();
        }
        let (end, interval) = (self.end(), CHECKPOINT_EVERY.min(self.capacity / 4) as u64);
        if self.checkpoints.back().is_none_or(|newest| end - newest.number >= interval) {
            self.checkpoints.push_back(Checkpoint { number: end, revision, tree: tree.clone() });
        }
        if let Some(index) = self.events.len().checked_sub(ENCODED as usize + 1) {
            self.events[index].event.retire();
        }
    }

    fn is_too_heavy(&self) -> bool {
        self.replaced > MAX_REPLACED_BYTES && self.events.len() >= self.size.min
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.replaced -= oldest.event.change.replaced_bytes();
            self.first += 1;
            self.dropped = true;
        }
    }

    /// Doubles when a full window does not span the period, halves when a quarter of it does.
    fn resize(&mut self, now: Instant) {
        if self.events.len() < self.capacity {
            return;
        }
        let age = |entry: &Entry| now.duration_since(entry.at);
        let quarter = self.events.len() - self.capacity / 4;
        if self.events.front().is_some_and(|oldest| age(oldest) < self.size.period) {
            self.capacity = (self.capacity * 2).min(self.size.max);
        } else if self.events.get(quarter).is_some_and(|entry| age(entry) > self.size.period) {
            self.capacity = (self.capacity / 2).max(self.size.min);
        }
    }

    /// The smallest revision from which every later change is here.
    pub(super) fn oldest(&self) -> u64 {
        match self.events.front() {
            Some(oldest) if self.dropped => oldest.event.change.revision - 1,
            _ => self.listed_at,
        }
    }

    /// The position after a revision, if every later change is here.
    pub(super) fn after(&self, revision: u64) -> Option<u64> {
        let seen = self.events.partition_point(|entry| entry.event.change.revision <= revision);
        (revision >= self.oldest()).then_some(self.first + seen as u64)
    }

    /// Events from a position on, at most so many. `None` if the window has moved past it.
    pub(super) fn read(&self, from: u64, most: usize) -> Option<Vec<Arc<Event>>> {
        let skip = from.checked_sub(self.first)?;
        Some(
            self.events.iter().skip(skip as usize).take(most).map(|entry| Arc::clone(&entry.event)).collect(),
        )
    }

    /// The state at a revision that is not in the future, if the window reaches back to it.
    pub(super) fn past(&self, revision: u64) -> Option<Past> {
        if revision <= self.compacted {
            return None;
        }
        let next = self.checkpoints.partition_point(|checkpoint| checkpoint.revision <= revision);
        let checkpoint = self.checkpoints.get(next.checked_sub(1)?)?;
        let skip = checkpoint.number.checked_sub(self.first)?;
        let changes = self.events.iter().skip(skip as usize).map(|entry| &entry.event);
        let changes = changes.take_while(|event| event.change.revision <= revision).cloned().collect();
        Some(Past { tree: checkpoint.tree.clone(), changes })
    }

    /// The store has compacted up to this revision.
    pub(super) fn compacted(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
    }
}

impl Past {
    /// The state; costs as much as the changes since the last checkpoint.
    pub(super) fn tree(self) -> Tree {
        self.changes.iter().fold(self.tree, |mut tree, event| {
            crate::storage::apply(&mut tree, &event.change);
            tree
        })
    }
}

#[cfg(test)]
mod tests;
