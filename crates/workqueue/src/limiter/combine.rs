//! Limiters that wrap other limiters.

use std::fmt;
use std::time::Duration;

use super::RateLimiter;

/// The longest delay of several limiters (client-go's `MaxOfRateLimiter`). Every failure is recorded with all of them.
#[must_use]
pub struct MaxOfLimiter<K> {
    members: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOfLimiter<K> {
    /// A limiter without members, which delays nothing.
    pub fn new() -> Self {
        Self { members: Vec::new() }
    }

    /// Adds a member.
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

impl<K> fmt::Debug for MaxOfLimiter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOfLimiter").field("members", &self.members.len()).finish()
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

/// Limits the delays of another limiter (client-go's `WithMaxWaitRateLimiter`).
#[derive(Debug)]
#[must_use]
pub struct MaxWaitLimiter<L> {
    inner: L,
    max: Duration,
}

impl<L> MaxWaitLimiter<L> {
    /// Delays of `inner`, at most `max`.
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
