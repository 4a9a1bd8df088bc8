//! A key in flight.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::time::Duration;

use tracing::error;

use crate::in_flight::FlightId;
use crate::panics;
use crate::priority::Priority;
use crate::queue::WorkQueue;
use crate::ready::Ticket;
use crate::state::Taken;

/// A key in flight: no other worker gets it until this item is finished or dropped. Dropping an item without calling one
/// of its methods (a panic, an early return, a cancelled future) is [`retry`](Item::retry).
#[must_use = "dropping an item retries its key"]
pub struct Item<K: Clone + Eq + Hash + Send + Sync + 'static> {
    queue: WorkQueue<K>,
    key: K,
    hash: u32,
    flight: FlightId,
    priority: Priority,
    /// The treatment of the key when the item is dropped.
    again: Again,
}

/// Whether and when this item adds its key again.
#[derive(Clone, Copy)]
enum Again {
    No,
    RateLimited,
    After(Duration),
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Item<K> {
    pub(crate) fn new(queue: WorkQueue<K>, taken: Taken<K>, started: u64) -> Self {
        let Taken { ticket: Ticket { key, hash, priority, since }, flight } = taken;
        if let Some(metrics) = queue.shared.metrics() {
            metrics.taken(started.saturating_sub(since));
        }
        Self { queue, key, hash, flight, priority, again: Again::RateLimited }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority of the key. Retries keep it.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Number of failures of the key since they were last forgotten.
    pub fn num_requeues(&self) -> u32 {
        self.queue.num_requeues(&self.key)
    }

    /// Finishes the work. The failures of the key are not forgotten, so its next retry waits longer.
    pub fn done(mut self) {
        self.again = Again::No;
    }

    /// Finishes the work with success: the failures of the key are forgotten.
    pub fn forget(mut self) {
        self.queue.forget(&self.key);
        self.again = Again::No;
    }

    /// Finishes the work with a failure: the key is added again after the delay of the rate limiter.
    pub fn retry(mut self) {
        self.again = Again::RateLimited;
    }

    /// Finishes the work for now: the key is added again after `delay`. This is not a failure, and failures are not
    /// forgotten.
    pub fn retry_after(mut self, delay: Duration) {
        self.again = Again::After(delay);
    }

    /// Finishes the work with success, and adds the key again after `delay`.
    pub(crate) fn requeue_after(self, delay: Duration) {
        self.queue.forget(&self.key);
        self.retry_after(delay);
    }

    fn delay(&self) -> Option<Duration> {
        match self.again {
            Again::No => None,
            Again::RateLimited => Some(self.queue.shared.retry_delay(&self.key)),
            Again::After(delay) => Some(delay),
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Drop for Item<K> {
    fn drop(&mut self) {
        let shared = &self.queue.shared;
        if let Some(delay) = self.delay() {
            // `Clone`, `Eq` and `Hash` of the key may panic; the key must not stay in flight.
            let added = panics::catch(|| self.queue.add_delayed(self.key.clone(), delay, self.priority));
            if let Err(panic) = added {
                error!(queue = shared.name(), panic, "a key panicked; it is not retried");
            }
        }
        let started = shared.with(|state| state.finish(self.hash, self.flight));
        if let Some(metrics) = shared.metrics() {
            metrics.finished(shared.now().saturating_sub(started));
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Deref for Item<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + fmt::Debug + 'static> fmt::Debug for Item<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}
