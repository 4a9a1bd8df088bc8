//! Access to the clock. Model checks replace this module with their own clock.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// The current time, virtual when tokio's clock is paused.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The instant `duration` after `start`; `None` if the clock cannot represent it, which stands for never.
pub(crate) fn after(start: Instant, duration: Duration) -> Option<Instant> {
    start.checked_add(duration)
}

/// A tokio runtime; `None` outside of one.
pub(crate) type RuntimeId = Option<tokio::runtime::Id>;

/// The runtime that polls the current task.
pub(crate) fn runtime() -> RuntimeId {
    tokio::runtime::Handle::try_current().ok().map(|runtime| runtime.id())
}

/// A timer that can be pointed at another deadline; it allocates on first use only, because most waits for
/// work never need one.
#[derive(Default)]
pub(crate) struct Timer {
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Timer {
    /// Ready once `deadline` has passed; otherwise wakes `cx` when it does. `None` is never.
    pub(crate) fn poll_until(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else {
            self.disarm();
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.deadline() != deadline {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }

    /// Stops the timer.
    pub(crate) fn disarm(&mut self) {
        self.sleep = None;
    }
}
