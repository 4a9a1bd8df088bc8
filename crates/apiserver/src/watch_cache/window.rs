//! The recent history of one resource: the newest changes, and checkpoints of the state.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use crate::storage::Tree;

/// The most changes between two checkpoints; a window has at least four. An exact read applies the changes since the nearest checkpoint,
/// in well under a millisecond. A checkpoint per change would keep a path of tree nodes alive for each, as large as a small object.
const CHECKPOINT_EVERY: usize = 1024;

/// The most bytes of replaced versions in a window larger than its minimum: bounds the memory of a burst of large objects.
const MAX_REPLACED_BYTES: usize = 256 << 20;

/// The number of newest events whose encodings are cached: enough for a fan-out, less than the window.
const ENCODED: u64 = 64;

/// Sizes of the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowSize {
    pub(super) min: usize,
    pub(super) max: usize,
    /// The age up to which changes are kept: a little more than a bookmark period, so that a watcher can resume at its last bookmark.
    pub(super) period: Duration,
}

/// The newest changes, in order.
///
/// Every change has a number that never repeats while the cache lives, so that the position of a reader stays valid when the window moves.
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

/// The state at an older revision: a checkpoint and the changes from there to the revision.
pub(super) struct StateAt {
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

    /// Drops all changes and starts from a new state. All earlier positions become invalid.
    pub(super) fn reset(&mut self, revision: u64, tree: Tree) {
        // Leaves a gap in the numbers, so that a position at the old end is not valid at the new start.
        self.first = self.end() + 1;
        self.events.clear();
        self.replaced = 0;
        self.checkpoints.clear();
        self.checkpoints.push_back(Checkpoint { number: self.first, revision, tree });
        (self.listed_at, self.dropped) = (revision, false);
    }

    /// Returns the number of the oldest event in the window.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next event.
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
        while self.events.len() >= self.capacity || self.exceeds_memory() {
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
            self.events[index].event.drop_encodings();
        }
    }

    fn exceeds_memory(&self) -> bool {
        self.replaced > MAX_REPLACED_BYTES && self.events.len() >= self.size.min
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.replaced -= oldest.event.change.replaced_bytes();
            self.first += 1;
            self.dropped = true;
        }
    }

    /// Doubles the capacity if a full window does not span the period, and halves it if the newest quarter does.
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

    /// Returns the smallest revision after which the window has every change.
    pub(super) fn oldest(&self) -> u64 {
        match self.events.front() {
            Some(oldest) if self.dropped => oldest.event.change.revision - 1,
            _ => self.listed_at,
        }
    }

    /// Returns the position after a revision, if the window has every later change.
    pub(super) fn after(&self, revision: u64) -> Option<u64> {
        let seen = self.events.partition_point(|entry| entry.event.change.revision <= revision);
        (revision >= self.oldest()).then_some(self.first + seen as u64)
    }

    /// Returns up to `limit` events from a position on, or `None` if the window has moved past it.
    pub(super) fn read(&self, from: u64, limit: usize) -> Option<Vec<Arc<Event>>> {
        let skip = from.checked_sub(self.first)?;
        Some(
            self.events
                .iter()
                .skip(skip as usize)
                .take(limit)
                .map(|entry| Arc::clone(&entry.event))
                .collect(),
        )
    }

    /// Returns the state at a current or older revision, if the window reaches back to it.
    pub(super) fn state_at(&self, revision: u64) -> Option<StateAt> {
        if revision <= self.compacted {
            return None;
        }
        let next = self.checkpoints.partition_point(|checkpoint| checkpoint.revision <= revision);
        let checkpoint = self.checkpoints.get(next.checked_sub(1)?)?;
        let skip = checkpoint.number.checked_sub(self.first)?;
        let changes = self.events.iter().skip(skip as usize).map(|entry| &entry.event);
        let changes = changes.take_while(|event| event.change.revision <= revision).cloned().collect();
        Some(StateAt { tree: checkpoint.tree.clone(), changes })
    }

    /// Stops serving exact reads up to this revision, which the store has compacted.
    pub(super) fn compacted(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
    }
}

impl StateAt {
    /// Returns the state. Applies the changes since the checkpoint, so call it without the lock.
    pub(super) fn tree(self) -> Tree {
        self.changes.iter().fold(self.tree, |mut tree, event| {
            crate::storage::apply(&mut tree, &event.change);
            tree
        })
    }
}

#[cfg(test)]
mod tests;
