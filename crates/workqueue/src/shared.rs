//! What all handles of one queue share: the state under its lock, and what surrounds it.

use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use crate::delayed::NEVER;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::ready::{Hasher, hash_of};
use crate::state::State;
use crate::sync::{Mutex, lock};
use crate::time;

/// One queue.
pub(crate) struct Shared<K> {
    /// Held for a few table operations at a time; never while waking, measuring, limiting or awaiting.
    state: Mutex<State<K>>,
    hasher: Hasher,
    name: String,
    limiter: Box<dyn RateLimiter<K>>,
    /// `None` when nobody measures: then no clock is read on behalf of metrics.
    metrics: Option<Metrics>,
    /// The beginning of the queue's time.
    epoch: Instant,
}

impl<K: Clone + Eq + Hash> Shared<K> {
    pub(crate) fn new(
        name: String,
        limiter: Box<dyn RateLimiter<K>>,
        metrics: Option<Metrics>,
        oldest_every: u32,
    ) -> Self {
        let hasher = Hasher::default();
        let state = Mutex::new(State::new(hasher.clone(), oldest_every, metrics.is_some()));
        Self { state, hasher, name, limiter, metrics, epoch: time::now() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn limiter(&self) -> &dyn RateLimiter<K> {
        &*self.limiter
    }

    pub(crate) fn metrics(&self) -> Option<&Metrics> {
        self.metrics.as_ref()
    }

    pub(crate) fn hash(&self, key: &K) -> u32 {
        hash_of(&self.hasher, key)
    }

    /// Runs one operation under the lock, and what it caused after it.
    pub(crate) fn with<R>(&self, operation: impl FnOnce(&mut State<K>) -> R) -> R {
        let mut state = lock(&self.state);
        let result = operation(&mut state);
        let (wakes, counts) = (state.take_wakes(), state.take_counts());
        drop(state);
        if let Some(wakes) = wakes {
            wakes.run();
        }
        if let Some(metrics) = &self.metrics {
            metrics.added(counts.added, counts.queued);
        }
        result
    }

    /// Like [`with`](Shared::with), after moving the keys that have become due.
    pub(crate) fn with_due<R>(&self, operation: impl FnOnce(&mut State<K>) -> R) -> R {
        self.with(|state| {
            if !state.delayed().is_empty() {
                state.promote(self.now());
            }
            operation(state)
        })
    }

    /// Nanoseconds since the queue was made.
    pub(crate) fn now(&self) -> u64 {
        nanos(time::now().saturating_duration_since(self.epoch))
    }

    /// The current time if somebody measures, else 0.
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
