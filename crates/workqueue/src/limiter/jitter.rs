//! Random variation of delays.

use std::time::Duration;

use super::RateLimiter;
use crate::sync::{Mutex, lock};

/// Lengthens the delays of another limiter by a random part of them.
#[derive(Debug)]
#[must_use]
pub struct JitterLimiter<L> {
    inner: L,
    factor: f64,
    random: Mutex<fastrand::Rng>,
}

impl<L> JitterLimiter<L> {
    /// Lengthens each delay of `inner` by up to `factor` of itself. The same seed gives the same delays.
    pub fn new(inner: L, factor: f64, seed: u64) -> Self {
        let factor = if factor.is_finite() { factor.max(0.0) } else { 0.0 };
        Self { inner, factor, random: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for JitterLimiter<L> {
    fn when(&self, key: &K) -> Duration {
        let wait = self.inner.when(key);
        let part = lock(&self.random).f64() * self.factor;
        let extra = Duration::try_from_secs_f64(wait.as_secs_f64() * part).unwrap_or(Duration::MAX);
        wait.saturating_add(extra)
    }

    fn forget(&self, key: &K) {
        self.inner.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.inner.num_requeues(key)
    }
}
