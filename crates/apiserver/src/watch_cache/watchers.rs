//! The watchers of a cache: woken when there are events to read, closed when the window moves past them.

use std::sync::Arc;
use std::task::{Context, Waker};

use super::filter::Filter;
use super::state::Wakers;
use super::watcher_index::WatcherIndex;
use super::window::Window;
use crate::storage::Change;

/// Watchers of one cache.
///
/// A watcher has no queue: it reads the window, which all watchers share, from its own position. A change therefore costs one wakers per
/// affected idle watcher and nothing for a watcher that is already behind, and a slow watcher does not slow down others.
///
/// **Bound and policy**: the backlog of a watcher is the window. A watcher that the window moves past is closed; its client may resume
/// with a new watch, which fails if the resource version is too old.
#[derive(Default)]
pub(super) struct Watchers {
    /// By slot; the slot of a removed watcher is reused.
    slots: Vec<Option<Watcher>>,
    free: Vec<usize>,
    /// Every occupied slot, by what it watches.
    index: WatcherIndex,
    /// Events dropped from the window since the last search for slow watchers.
    dropped: u64,
    /// Watchers closed because they were too slow.
    pub(super) terminated: u64,
}

struct Watcher {
    filter: Arc<Filter>,
    position: Position,
    waker: Option<Waker>,
}

/// The position of a watcher in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// The watcher has read everything that affects it.
    Idle,
    /// The watcher reads next from this number on.
    Reading(u64),
    /// Like `Reading`, and its stream must end after the events that are in the window.
    Draining(u64),
    /// Its stream must end now.
    Closed,
}

impl Watchers {
    /// Adds a watcher that reads from a number on, and returns its slot.
    pub(super) fn add(&mut self, filter: &Arc<Filter>, from: u64) -> usize {
        let watcher = Watcher { filter: Arc::clone(filter), position: Position::Reading(from), waker: None };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(watcher);
        self.index.add(filter, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(watcher) = self.slots[slot].take() {
            self.index.remove(&watcher.filter, slot);
            self.free.push(slot);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn position(&self, slot: usize) -> Position {
        self.slots[slot].as_ref().map_or(Position::Closed, |watcher| watcher.position)
    }

    /// Sets the position of a watcher and stores its waker for the next change.
    pub(super) fn park(&mut self, slot: usize, position: Position, cx: &Context<'_>) {
        if let Some(watcher) = &mut self.slots[slot] {
            watcher.position = position;
            match &mut watcher.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
    }

    pub(super) fn advance(&mut self, slot: usize, to: u64) {
        if let Some(watcher) = &mut self.slots[slot] {
            watcher.position = match watcher.position {
                Position::Draining(_) => Position::Draining(to),
                _ => Position::Reading(to),
            };
        }
    }

    /// Returns the wakers of idle watchers that select a change, which has this number in the window.
    pub(super) fn notify(&mut self, change: &Change, number: u64) -> Wakers {
        let (slots, mut wakers) = (&mut self.slots, Vec::new());
        self.index.for_each_candidate(change, |slot| {
            if let Some(watcher) = &mut slots[slot]
                && watcher.position == Position::Idle
                && watcher.selects_either(change)
            {
                watcher.position = Position::Reading(number);
                wakers.extend(watcher.waker.take());
            }
        });
        Wakers(wakers)
    }

    /// Closes watchers that the window has moved past. Searches only after an eighth of the window has been dropped, to amortize the cost.
    pub(super) fn close_slow(&mut self, dropped: u64, window: &Window, wakers: &mut Wakers) {
        self.dropped += dropped;
        if self.dropped < window.capacity() as u64 / 8 {
            return;
        }
        self.dropped = 0;
        let first = window.first();
        for watcher in self.slots.iter_mut().flatten() {
            if matches!(watcher.position, Position::Reading(at) | Position::Draining(at) if at < first) {
                self.terminated += 1;
                watcher.close(wakers);
            }
        }
    }

    pub(super) fn close_all(&mut self) -> Wakers {
        let mut wakers = Wakers(Vec::new());
        self.slots.iter_mut().flatten().for_each(|watcher| watcher.close(&mut wakers));
        wakers
    }

    /// Closes the idle watchers, and lets the others read the events that are in the window.
    pub(super) fn drain_all(&mut self) -> Wakers {
        let mut wakers = Wakers(Vec::new());
        for watcher in self.slots.iter_mut().flatten() {
            match watcher.position {
                Position::Reading(from) => watcher.position = Position::Draining(from),
                Position::Idle => watcher.close(&mut wakers),
                Position::Draining(_) | Position::Closed => {}
            }
        }
        wakers
    }

    pub(super) fn wake_all(&mut self) -> Wakers {
        Wakers(self.slots.iter_mut().flatten().filter_map(|watcher| watcher.waker.take()).collect())
    }
}

impl Watcher {
    fn selects_either(&self, change: &Change) -> bool {
        [&change.previous, &change.current].into_iter().flatten().any(|stored| self.filter.selects(stored))
    }

    fn close(&mut self, wakers: &mut Wakers) {
        self.position = Position::Closed;
        wakers.0.extend(self.waker.take());
    }
}
