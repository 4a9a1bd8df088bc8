//! Replaces the `time` module of the library: an armed timer is a thread, so the scheduler decides when time passes.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Instant;

thread_local! {
    /// Shuttle runs all its threads on one thread of the system, so this is one clock for each check.
    static CLOCK: Cell<Instant> = Cell::new(Instant::now());
}

shuttle::thread_local! {
    /// The runtime that a thread of a check belongs to.
    static RUNTIME: Cell<RuntimeId> = Cell::new(0);
}

pub(crate) type RuntimeId = u8;

pub(crate) fn runtime() -> RuntimeId {
    RUNTIME.with(Cell::get)
}

/// Puts this thread of a check into a runtime.
pub(crate) fn enter_runtime(id: RuntimeId) {
    RUNTIME.with(|runtime| runtime.set(id));
}

pub(crate) fn now() -> Instant {
    CLOCK.get()
}

pub(crate) fn after(start: Instant, duration: Duration) -> Option<Instant> {
    start.checked_add(duration)
}

#[derive(Default)]
pub(crate) struct Timer {
    armed: Option<Armed>,
}

struct Armed {
    deadline: Instant,
    /// Cleared when the timer is reset or stopped: a stale timer must not hide a lost wake-up.
    valid: Arc<AtomicBool>,
}

impl Timer {
    pub(crate) fn poll_until(&mut self, deadline: Option<Instant>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = deadline else {
            self.disarm();
            return Poll::Pending;
        };
        if now() >= deadline {
            return Poll::Ready(());
        }
        if self.armed.as_ref().is_none_or(|armed| armed.deadline != deadline) {
            self.arm(deadline, cx);
        }
        Poll::Pending
    }

    pub(crate) fn disarm(&mut self) {
        if let Some(armed) = self.armed.take() {
            armed.valid.store(false, Ordering::SeqCst);
        }
    }

    fn arm(&mut self, deadline: Instant, cx: &mut Context<'_>) {
        self.disarm();
        let valid = Arc::new(AtomicBool::new(true));
        self.armed = Some(Armed { deadline, valid: Arc::clone(&valid) });
        let waker = cx.waker().clone();
        shuttle::thread::spawn(move || {
            CLOCK.set(CLOCK.get().max(deadline));
            if valid.load(Ordering::SeqCst) {
                waker.wake();
            }
        });
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.disarm();
    }
}
