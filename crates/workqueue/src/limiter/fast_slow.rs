//! A few fast retries, then slow ones.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::history::FailureHistory;

/// Delays the first failures of a key by `fast`, further ones by `slow` (client-go's `ItemFastSlowRateLimiter`).
///
/// As in client-go, the failures of a key are counted until they are forgotten.
#[must_use]
pub struct FastSlowLimiter<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: FailureHistory<K>,
}

impl<K: Clone + Eq + Hash + Send + Sync> FastSlowLimiter<K> {
    /// `fast_attempts` delays of `fast`, then delays of `slow`.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, failures: FailureHistory::new(None) }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync> RateLimiter<K> for FastSlowLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        if self.failures.record(key) < self.fast_attempts { self.fast } else { self.slow }
    }

    fn forget(&self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.count(key)
    }
}

impl<K> fmt::Debug for FastSlowLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastSlowLimiter")
            .field("fast", &self.fast)
            .field("slow", &self.slow)
            .field("fast_attempts", &self.fast_attempts)
            .finish_non_exhaustive()
    }
}
