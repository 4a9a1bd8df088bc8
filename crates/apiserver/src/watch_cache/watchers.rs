//! Everybody who watches: woken when there is something to read, closed when overtaken.

use std::sync::Arc;
use std::task::{Context, Waker};

use super::filter::Filter;
use super::interest::Interest;
use super::state::Wake;
use super::window::Window;
use crate::storage::Change;

/// Watchers of one cache.
///
/// A watcher has no queue: it reads the window it shares with all others, from its own position. So a change costs one wake per idle
/// watcher whom it concerns, nothing for one that is already behind, and a slow watcher costs nothing but itself.
///
/// **Bound and policy**: the backlog of a watcher is the window. A watcher that the window moves past is closed; it may resume with a new
/// watch if its version is still known, or is told that it is too old.
#[derive(Default)]
pub(super) struct Watchers {
    /// By slot; a slot is used again when its watcher has left.
    slots: Vec<Option<Watcher>>,
    free: Vec<usize>,
    /// Every occupied slot, by what it watches.
    interest: Interest,
    /// Events dropped from the window since watchers were last checked for being overtaken.
    dropped: u64,
    /// How many watchers were closed because they were too slow.
    pub(super) overtaken: u64,
}

struct Watcher {
    filter: Arc<Filter>,
    position: Position,
    waker: Option<Waker>,
}

/// Where a watcher is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// It has read everything that concerns it.
    Idle,
    /// It has read the window up to this number.
    Reading(u64),
    /// The same, and its stream must end when it has read what is there.
    Draining(u64),
    /// Its stream must end.
    Closed,
}

impl Watchers {
    /// Registers a watcher that has read up to a number, and says in which slot.
    pub(super) fn add(&mut self, filter: &Arc<Filter>, from: u64) -> usize {
        let watcher = Watcher { filter: Arc::clone(filter), position: Position::Reading(from), waker: None };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(watcher);
        self.interest.add(filter, slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(watcher) = self.slots[slot].take() {
            self.interest.remove(&watcher.filter, slot);
            self.free.push(slot);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn position(&self, slot: usize) -> Position {
        self.slots[slot].as_ref().map_or(Position::Closed, |watcher| watcher.position)
    }

    /// Moves a watcher and keeps its waker for the next change.
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

    /// Wakes the idle ones whom a change concerns; it has this number in the window.
    pub(super) fn tell(&mut self, change: &Change, number: u64) -> Wake {
        let (slots, mut wake) = (&mut self.slots, Vec::new());
        self.interest.concerned(change, |slot| {
            if let Some(watcher) = &mut slots[slot]
                && watcher.position == Position::Idle
                && watcher.selects_either(change)
            {
                watcher.position = Position::Reading(number);
                wake.extend(watcher.waker.take());
            }
        });
        Wake(wake)
    }

    /// Closes who is behind the window, checking only when a good part of it has gone since the last time.
    pub(super) fn close_overtaken(&mut self, dropped: u64, window: &Window, wake: &mut Wake) {
        self.dropped += dropped;
        if self.dropped < window.capacity() as u64 / 8 {
            return;
        }
        self.dropped = 0;
        let first = window.first();
        for watcher in self.slots.iter_mut().flatten() {
            if matches!(watcher.position, Position::Reading(at) | Position::Draining(at) if at < first) {
                self.overtaken += 1;
                watcher.close(wake);
            }
        }
    }

    pub(super) fn close_all(&mut self) -> Wake {
        let mut wake = Wake(Vec::new());
        self.slots.iter_mut().flatten().for_each(|watcher| watcher.close(&mut wake));
        wake
    }

    /// Closes who has read everything, and lets the others read to the end.
    pub(super) fn drain_all(&mut self) -> Wake {
        let mut wake = Wake(Vec::new());
        for watcher in self.slots.iter_mut().flatten() {
            match watcher.position {
                Position::Reading(from) => watcher.position = Position::Draining(from),
                Position::Idle => watcher.close(&mut wake),
                Position::Draining(_) | Position::Closed => {}
            }
        }
        wake
    }

    pub(super) fn wake_all(&mut self) -> Wake {
        Wake(self.slots.iter_mut().flatten().filter_map(|watcher| watcher.waker.take()).collect())
    }
}

impl Watcher {
    fn selects_either(&self, change: &Change) -> bool {
        [&change.previous, &change.current].into_iter().flatten().any(|stored| self.filter.selects(stored))
    }

    fn close(&mut self, wake: &mut Wake) {
        self.position = Position::Closed;
        wake.0.extend(self.waker.take());
    }
}
