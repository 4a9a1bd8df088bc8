//! The part of a queue that all its handles share.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;
use tracing::error;

use crate::crowd::Order;
use crate::delayed::NEVER;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::panics;
use crate::ready::{Hasher, hash_of};
use crate::state::State;
use crate::sync::{Mutex, MutexGuard, lock};
use crate::time;

/// The delay of a retry whose rate limiter panicked.
const DELAY_AFTER_PANIC: Duration = Duration::from_secs(1);

/// A queue.
pub(crate) struct Shared<K> {
    /// Held for a few table operations at a time; never while waking tasks, recording metrics, calling the rate limiter
    /// or dropping keys. `Hash`, `Eq`, `Ord` and `Clone` of keys run under it a bounded number of times, and never interrupt it by a
    /// panic.
    state: Mutex<State<K>>,
    hasher: Hasher,
    name: String,
    limiter: Box<dyn RateLimiter<K>>,
    /// `None` if metrics are off: then the clock is not read for them.
    metrics: Option<Metrics>,
    /// When the queue was built; times of the queue are relative to it.
    epoch: Instant,
}

impl<K: Clone + Eq + Hash> Shared<K> {
    pub(crate) fn new(
        name: String,
        limiter: Box<dyn RateLimiter<K>>,
        metrics: Option<Metrics>,
        oldest_every: u32,
        order: Option<Order<K>>,
    ) -> Self {
        let hasher = Hasher::default();
        let state = Mutex::new(State::new(hasher.clone(), order, oldest_every, metrics.is_some()));
        Self { state, hasher, name, limiter, metrics, epoch: time::now() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Records a failure of `key` with the rate limiter, and returns the delay of its retry. A limiter that panics must
    /// cost neither the key nor its worker.
    pub(crate) fn retry_delay(&self, key: &K) -> Duration {
        panics::catch(|| self.limiter.when(key)).unwrap_or_else(|panic| {
            let (queue, delay) = (self.name(), DELAY_AFTER_PANIC);
            error!(queue, panic, "rate limiter panicked; the key is retried after {delay:?}");
            delay
        })
    }

    /// Forgets the failures of `key`.
    pub(crate) fn forget(&self, key: &K) {
        if let Err(panic) = panics::catch(|| self.limiter.forget(key)) {
            error!(
                queue = self.name(),
                panic, "rate limiter panicked; failures of a key may not be forgotten"
            );
        }
    }

    /// Number of failures of `key`.
    pub(crate) fn num_requeues(&self, key: &K) -> u32 {
        panics::catch(|| self.limiter.num_requeues(key)).unwrap_or_else(|panic| {
            error!(queue = self.name(), panic, "rate limiter panicked; the failures of a key are unknown");
            0
        })
    }

    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.metrics.as_ref()
    }

    pub(crate) fn hash(&self, key: &K) -> u32 {
        hash_of(&self.hasher, key)
    }

    /// Runs one operation under the lock. Its effects on tasks, metrics and keys follow after the lock is released.
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&mut State<K>) -> R) -> R {
        let mut state = lock(&self.state);
        let result = operation(&mut state);
        self.release(state);
        result
    }

    /// Like [`with`](Shared::with), after all keys that are due have become ready. Releases the lock now and then while
    /// many keys become ready.
    pub(crate) fn with_due<R>(&self, operation: impl FnOnce(&mut State<K>) -> R) -> R {
        let mut state = lock(&self.state);
        if !state.delayed().is_empty() {
            let now = self.now();
            while !state.promote(now) {
                self.release(state);
                state = lock(&self.state);
            }
        }
        let result = operation(&mut state);
        self.release(state);
        result
    }

    /// Like [`with_due`](Shared::with_due) for async code: `None` if more keys are due than should become ready without
    /// yielding to other tasks.
    pub(crate) fn try_with_due<R>(&self, operation: impl FnOnce(&mut State<K>) -> R) -> Option<R> {
        self.with(|state| {
            let ready = state.delayed().is_empty() || state.promote(self.now());
            ready.then(|| operation(state))
        })
    }

    fn release(&self, mut state: MutexGuard<'_, State<K>>) {
        let (wakes, counts, discarded) = (state.take_wakes(), state.take_counts(), state.take_discarded());
        drop(state);
        if let Some(wakes) = wakes {
            wakes.run();
        }
        if let Some(metrics) = &self.metrics {
            metrics.added(counts.added, counts.queued);
        }
        if let Some(discarded) = discarded {
            discarded.drop_each();
        }
    }

    /// Nanoseconds since the queue was built.
    pub(crate) fn now(&self) -> u64 {
        nanos(time::now().saturating_duration_since(self.epoch))
    }

    /// The current time if metrics are on, otherwise 0.
    pub(crate) fn measured_now(&self) -> u64 {
        if self.metrics.is_some() { self.now() } else { 0 }
    }

    /// A time of the queue as an instant; `None` is never.
    pub(crate) fn instant(&self, at: u64) -> Option<Instant> {
        (at != NEVER).then(|| time::after(self.epoch, Duration::from_nanos(at))).flatten()
    }
}

/// A duration in nanoseconds; one beyond what the queue's clock can represent ends never.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(NEVER)
}
