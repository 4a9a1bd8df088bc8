//! Limiters made of limiters.

use std::time::Duration;

use super::RateLimiter;

/// The longest wait that any of several limiters asks for (client-go's `MaxOfRateLimiter`). All are asked,
/// so each keeps its own account.
pub struct MaxOfLimiter<K> {
    members: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOfLimiter<K> {
    /// No limit yet.
    pub fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// And this one too.
    pub fn and(mut self, limiter: impl RateLimiter<K> + 'static) -> Self {
        self.members.push(Box::new(limiter));
        self
    }
}

impl<K> Default for MaxOfLimiter<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> RateLimiter<K> for MaxOfLimiter<K> {
    fn when(&self, key: &K) -> Duration {
        self.members.iter().map(|member| member.when(key)).max().unwrap_or_default()
    }

    fn forget(&self, key: &K) {
        self.members.iter().for_each(|member| member.forget(key));
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.members.iter().map(|member| member.num_requeues(key)).max().unwrap_or_default()
    }
}

/// Another limiter, but never a longer wait than `max` (client-go's `WithMaxWaitRateLimiter`).
pub struct MaxWaitLimiter<L> {
    inner: L,
    max: Duration,
}

impl<L> MaxWaitLimiter<L> {
    /// Clamps the waits of `inner` to `max`.
    pub fn new(inner: L, max: Duration) -> Self {
        Self { inner, max }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for MaxWaitLimiter<L> {
    fn when(&self, key: &K) -> Duration {
        self.inner.when(key).min(self.max)
    }

    fn forget(&self, key: &K) {
        self.inner.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.inner.num_requeues(key)
    }
}
