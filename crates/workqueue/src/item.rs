//! A key in the hands of a worker.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::time::Duration;

use crate::priority::Priority;
use crate::queue::WorkQueue;
use crate::ready::Ticket;

/// A key that this worker, and no other, works on. Give a verdict when finished; dropping the item without
/// one (a panic, an early return, a cancelled future) is [`retry`](Item::retry).
#[must_use = "dropping an item without a verdict retries it"]
pub struct Item<K: Clone + Eq + Hash + Send + Sync + 'static> {
    queue: WorkQueue<K>,
    key: K,
    hash: u32,
    priority: Priority,
    /// What happens to the key when the item is dropped.
    verdict: Again,
}

/// Whether and when the key runs again, apart from adds by others.
#[derive(Clone, Copy)]
enum Again {
    No,
    RateLimited,
    After(Duration),
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Item<K> {
    pub(crate) fn new(queue: WorkQueue<K>, ticket: Ticket<K>, started: u64) -> Self {
        let Ticket { key, hash, priority, since } = ticket;
        if let Some(metrics) = queue.shared.metrics() {
            metrics.taken(started.saturating_sub(since));
        }
        Self { queue, key, hash, priority, verdict: Again::RateLimited }
    }

    /// The key.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority it was taken with; retries keep it.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How often the key has failed since it was last forgotten.
    pub fn num_requeues(&self) -> u32 {
        self.queue.num_requeues(&self.key)
    }

    /// Finished. Failures of the key stay on record, so that its next retry waits longer.
    pub fn done(mut self) {
        self.verdict = Again::No;
    }

    /// Finished with success: the failures of the key are forgotten.
    pub fn forget(mut self) {
        self.queue.forget(&self.key);
        self.verdict = Again::No;
    }

    /// Failed: the key runs again after a delay that the rate limiter chooses.
    pub fn retry(mut self) {
        self.verdict = Again::RateLimited;
    }

    /// Not finished: the key runs again after `delay`. That is no failure, and the record is not touched.
    pub fn retry_after(mut self, delay: Duration) {
        self.verdict = Again::After(delay);
    }

    /// Success, and the key runs again after `delay`.
    pub(crate) fn again(self, delay: Duration) {
        self.queue.forget(&self.key);
        self.retry_after(delay);
    }

    fn delay(&self) -> Option<Duration> {
        match self.verdict {
            Again::No => None,
            Again::RateLimited => Some(self.queue.shared.limiter().when(&self.key)),
            Again::After(delay) => Some(delay),
        }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Drop for Item<K> {
    fn drop(&mut self) {
        if let Some(delay) = self.delay() {
            self.queue.add_delayed(self.key.clone(), delay, self.priority);
        }
        let shared = &self.queue.shared;
        let started = shared.with(|state| state.finish(self.hash, &self.key));
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
