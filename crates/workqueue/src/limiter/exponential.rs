//! Each failure doubles the wait.

use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::history::FailureHistory;

/// `base * 2^failures` for each key, at most `max` (client-go's `ItemExponentialFailureRateLimiter`).
///
/// Failures that lie twice `max` back are forgotten (four times at the latest), so that keys that are gone
/// for good do not stay in memory.
pub struct ExponentialLimiter<K> {
    base: Duration,
    max: Duration,
    failures: FailureHistory<K>,
}

impl<K: Clone + Eq + Hash + Send + Sync> ExponentialLimiter<K> {
    /// Waits of `base`, doubling up to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: FailureHistory::new(default_memory(max)) }
    }

    /// Remembers failures for `memory` instead of twice the longest wait. What is not longer than the
    /// longest wait would forget a key while it waits, so the longest wait is the least.
    pub fn remember(self, memory: Duration) -> Self {
        Self { failures: FailureHistory::new(memory.max(self.max)), ..self }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync> RateLimiter<K> for ExponentialLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        let failures = self.failures.record(key);
        1u32.checked_shl(failures)
            .and_then(|factor| self.base.checked_mul(factor))
            .unwrap_or(if self.base.is_zero() { Duration::ZERO } else { self.long_wait(failures) })
            .min(self.max)
    }

    fn forget(&self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.count(key)
    }
}

impl<K> ExponentialLimiter<K> {
    /// The wait when the factor does not fit in 32 bits.
    fn long_wait(&self, failures: u32) -> Duration {
        let nanos = u64::try_from(self.base.as_nanos()).unwrap_or(u64::MAX);
        let shifted = if failures < nanos.leading_zeros() { nanos << failures } else { u64::MAX };
        Duration::from_nanos(shifted)
    }
}

/// Twice the longest wait, as in client-go's `flowcontrol.Backoff`, and never so short that it is busywork.
pub(super) fn default_memory(longest_wait: Duration) -> Duration {
    longest_wait.saturating_mul(2).max(Duration::from_secs(60))
}
