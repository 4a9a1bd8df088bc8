//! Waiting until a queue is drained.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use crate::queue::WorkQueue;

/// The treatment of delayed keys in a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delayed {
    /// They run when they are due; the drain waits for them.
    Run,
    /// They are dropped immediately.
    Drop,
}

/// The future of [`WorkQueue::shutdown_and_drain`]. Resolves to whether all work was finished.
#[must_use = "futures do nothing unless polled"]
pub struct Drain<'a, K: Clone + Eq + Hash + Send + Sync + 'static> {
    queue: &'a WorkQueue<K>,
    /// Identifies this drain.
    id: u64,
    /// Number of shutdowns when the drain began; a further one ends it.
    shutdowns: u64,
}

impl<'a, K: Clone + Eq + Hash + Send + Sync + 'static> Drain<'a, K> {
    pub(crate) fn new(queue: &'a WorkQueue<K>, delayed: Delayed) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let shutdowns = queue.shared.with_due(|state| {
            state.close(delayed == Delayed::Run);
            state.shutdowns()
        });
        Self { queue, id: IDS.fetch_add(1, Ordering::Relaxed), shutdowns }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Future for Drain<'_, K> {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        self.queue.shared.with(|state| {
            if state.at_rest() {
                return Poll::Ready(true);
            }
            if state.shutdowns() != self.shutdowns {
                return Poll::Ready(false);
            }
            state.wait_for_rest(self.id, cx.waker());
            Poll::Pending
        })
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Drop for Drain<'_, K> {
    fn drop(&mut self) {
        self.queue.shared.with(|state| state.stop_waiting_for_rest(self.id));
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> fmt::Debug for Drain<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("queue", self.queue).finish_non_exhaustive()
    }
}
