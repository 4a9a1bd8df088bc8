//! Waiting until compaction has work to do.

use crate::store::lock;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

/// When compaction is due beyond what the amount of garbage says, and the task that waits for that.
#[derive(Default)]
pub(crate) struct Due {
    /// Words of garbage that the last step could do nothing about, because they are in open segments. Compaction is not
    /// due before there is more, or a segment is closed: otherwise it would run again and again without effect.
    tolerated: AtomicUsize,
    waiting: Mutex<Option<Waker>>,
}

impl Due {
    pub(crate) fn tolerated(&self) -> usize {
        self.tolerated.load(Relaxed)
    }

    /// Compaction can do nothing about this much garbage now.
    pub(crate) fn tolerate(&self, garbage: usize) {
        self.tolerated.store(garbage, Relaxed);
    }

    /// A segment was closed: compaction may empty it.
    pub(crate) fn closed(&self) {
        self.tolerated.store(0, Relaxed);
    }

    pub(crate) fn poll(&self, task: &Context<'_>, is_due: impl Fn() -> bool) -> Poll<()> {
        if !is_due() {
            *lock(&self.waiting) = Some(task.waker().clone());
            // Looked at again: what changed before the waker was there did not wake it.
            if !is_due() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Lets the task that waits look again.
    pub(crate) fn wake(&self) {
        let waker = lock(&self.waiting).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
