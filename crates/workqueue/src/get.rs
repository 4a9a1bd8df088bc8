//! The future that takes a key.

use std::fmt;
use std::future::Future;
use std::hash::Hash;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::task::coop;

use crate::item::Item;
use crate::queue::WorkQueue;
use crate::state::Polled;
use crate::time::Timer;
use crate::waiters::WaiterId;

/// The future of [`WorkQueue::get`].
#[must_use = "futures do nothing unless polled"]
pub struct Get<'a, K: Clone + Eq + Hash + Send + Sync + 'static> {
    queue: &'a WorkQueue<K>,
    /// Registration while it waits.
    waiter: Option<WaiterId>,
    /// Armed only while this future is the timekeeper for all waiters of its runtime.
    timer: Timer,
}

impl<'a, K: Clone + Eq + Hash + Send + Sync + 'static> Get<'a, K> {
    pub(crate) fn new(queue: &'a WorkQueue<K>) -> Self {
        Self { queue, waiter: None, timer: Timer::default() }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Future for Get<'_, K> {
    type Output = Option<Item<K>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item<K>>> {
        // A queue that is never empty must not let its workers starve other tasks.
        let budget = ready!(coop::poll_proceed(cx));
        let Self { queue, waiter, timer } = self.get_mut();
        let started = queue.shared.measured_now();
        loop {
            let polled = queue.shared.try_with_due(|state| state.poll_take(waiter, cx.waker(), started));
            let Some(polled) = polled else {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            };
            match polled {
                Polled::Taken(taken) => {
                    budget.made_progress();
                    return Poll::Ready(Some(Item::new(queue.same(), taken, started)));
                }
                Polled::Exhausted => return Poll::Ready(None),
                Polled::Pending(None) => {
                    timer.disarm();
                    return Poll::Pending;
                }
                Polled::Pending(Some(due)) => ready!(timer.poll_until(queue.shared.instant(due), cx)),
            }
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Drop for Get<'_, K> {
    fn drop(&mut self) {
        if let Some(waiter) = self.waiter.take() {
            self.queue.shared.with(|state| state.leave(waiter));
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> fmt::Debug for Get<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get").field("queue", self.queue).finish_non_exhaustive()
    }
}
