//! The registration of an open watch with its cache: to find, wake, stall and end it.

use std::sync::Arc;
use std::task::Context;

use super::filter::Filter;
use super::shared::Shared;
use super::watchers::Position;

/// Held by an open stream. Dropping it removes the watcher from the cache.
#[must_use = "dropping it removes the watcher"]
pub(super) struct Registration {
    pub(super) shared: Arc<Shared>,
    pub(super) filter: Arc<Filter>,
    pub(super) slot: usize,
}

/// Whether a stream may yield an item now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Continue,
    /// The stream is stalled and its waker is registered.
    Stalled,
    End,
}

impl Registration {
    pub(super) fn new(shared: Arc<Shared>, filter: Arc<Filter>, slot: usize) -> Self {
        Self { shared, filter, slot }
    }

    /// Returns whether the stream is stalled, and registers its waker if so.
    pub(super) fn poll_stalled(&self, cx: &Context<'_>) -> Signal {
        if !self.shared.is_stalled() {
            return Signal::Continue;
        }
        let mut state = self.shared.lock();
        let position = state.watchers.position(self.slot);
        if !self.shared.is_stalled() {
            return Signal::Continue;
        }
        state.watchers.park(self.slot, position, cx);
        if position == Position::Closed { Signal::End } else { Signal::Stalled }
    }

    /// Registers the waker of a stream that reads from the store, and returns whether the stream must end.
    pub(super) fn poll_closed(&self, cx: &Context<'_>) -> Signal {
        let mut state = self.shared.lock();
        let position = state.watchers.position(self.slot);
        state.watchers.park(self.slot, position, cx);
        match position {
            Position::Closed | Position::Draining(_) => Signal::End,
            Position::Idle | Position::Reading(_) => Signal::Continue,
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.shared.lock().watchers.remove(self.slot);
    }
}
