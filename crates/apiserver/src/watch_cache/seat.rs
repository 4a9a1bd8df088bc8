//! The place of one open watch in its cache: how it is found, woken, held still and ended.

use std::sync::Arc;
use std::task::Context;

use super::filter::Filter;
use super::shared::Shared;
use super::watchers::Position;

/// Held by a stream as long as it is open; dropping it leaves the cache.
pub(super) struct Seat {
    pub(super) shared: Arc<Shared>,
    pub(super) filter: Arc<Filter>,
    pub(super) slot: usize,
}

/// Whether a stream may show something now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Go,
    /// It is held still; its waker is kept.
    Hold,
    End,
}

impl Seat {
    pub(super) fn new(shared: Arc<Shared>, filter: Arc<Filter>, slot: usize) -> Self {
        Self { shared, filter, slot }
    }

    /// Whether streams are held still. A stream that is gets its waker kept.
    pub(super) fn ask(&self, cx: &Context<'_>) -> Signal {
        if !self.shared.is_stalled() {
            return Signal::Go;
        }
        let mut state = self.shared.lock();
        let position = state.watchers.position(self.slot);
        if !self.shared.is_stalled() {
            return Signal::Go;
        }
        state.watchers.park(self.slot, position, cx);
        if position == Position::Closed { Signal::End } else { Signal::Hold }
    }

    /// Keeps the waker of a stream that reads elsewhere, and says whether it must end.
    pub(super) fn rest(&self, cx: &Context<'_>) -> Signal {
        let mut state = self.shared.lock();
        let position = state.watchers.position(self.slot);
        state.watchers.park(self.slot, position, cx);
        match position {
            Position::Closed | Position::Draining(_) => Signal::End,
            Position::Idle | Position::Reading(_) => Signal::Go,
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.lock().watchers.remove(self.slot);
    }
}
