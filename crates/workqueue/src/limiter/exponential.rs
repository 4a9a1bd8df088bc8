//! Delays that double with each failure.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use super::RateLimiter;
use super::history::FailureHistory;

/// Delays each key by `base * 2^failures`, at most `max` (client-go's `ItemExponentialFailureRateLimiter`).
///
/// As in client-go, the failures of a key are counted until they are forgotten, however long a worker takes. A key that
/// fails and is never forgotten stays in memory; [`expire_after`](ExponentialLimiter::expire_after) bounds that.
///
/// At most [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) keys of one hash value are counted separately; further ones
/// share a count.
#[must_use]
pub struct ExponentialLimiter<K> {
    base: Duration,
    max: Duration,
    failures: FailureHistory<K>,
}

impl<K: Clone + Eq + Hash + Send + Sync> ExponentialLimiter<K> {
    /// Delays from `base`, doubling up to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self { base, max, failures: FailureHistory::new(None) }
    }

    /// Forgets the failures of a key that has not failed for `lifetime` (for twice that at the latest). Choose a longer
    /// time than a worker takes for a key. At least `max` is used: a shorter time would forget a key while it is delayed.
    pub fn expire_after(self, lifetime: Duration) -> Self {
        Self { failures: FailureHistory::new(Some(lifetime.max(self.max))), ..self }
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
    /// The delay if the factor does not fit in 32 bits.
    fn long_wait(&self, failures: u32) -> Duration {
        let nanos = u64::try_from(self.base.as_nanos()).unwrap_or(u64::MAX);
        let shifted = if failures < nanos.leading_zeros() { nanos << failures } else { u64::MAX };
        Duration::from_nanos(shifted)
    }
}

impl<K> fmt::Debug for ExponentialLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ExponentialLimiter");
        debug.field("base", &self.base).field("max", &self.max).finish_non_exhaustive()
    }
}
