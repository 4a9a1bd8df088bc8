//! A few quick attempts, then slow ones.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::exponential::default_memory;
use super::history::FailureHistory;

/// `fast` for the first so many failures of a key, `slow` after (client-go's `ItemFastSlowRateLimiter`).
///
/// Failures that lie twice the longer wait back are forgotten (four times at the latest).
pub struct FastSlowLimiter<K> {
    fast: Duration,
    slow: Duration,
    fast_attempts: u32,
    failures: FailureHistory<K>,
}

impl<K: Clone + Eq + Hash + Send + Sync> FastSlowLimiter<K> {
    /// `fast_attempts` waits of `fast`, then waits of `slow`.
    pub fn new(fast: Duration, slow: Duration, fast_attempts: u32) -> Self {
        Self { fast, slow, fast_attempts, failures: FailureHistory::new(default_memory(fast.max(slow))) }
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
