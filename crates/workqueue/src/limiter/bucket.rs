//! A limit on retries per second, for all keys together.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use crate::sync::{Mutex, lock};
use crate::time;

/// A token bucket shared by all keys: each retry takes a token, or is delayed until there is one (client-go's
/// `BucketRateLimiter`).
#[derive(Debug)]
#[must_use]
pub struct BucketLimiter {
    bucket: Mutex<Bucket>,
    per_second: f64,
    burst: f64,
}

#[derive(Debug)]
struct Bucket {
    /// Tokens at `at`; below zero if tokens of the future are reserved.
    tokens: f64,
    at: Instant,
}

impl BucketLimiter {
    /// A bucket that gains `per_second` tokens a second, holds at most `burst`, and starts full.
    ///
    /// # Panics
    /// If `per_second` is not a positive number.
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(
            per_second > 0.0,
            "the rate of a bucket must be positive; to stop retries, use a limiter with a long delay"
        );
        let burst = f64::from(burst);
        Self { bucket: Mutex::new(Bucket { tokens: burst, at: time::now() }), per_second, burst }
    }

    fn reserve(&self, now: Instant) -> Duration {
        let mut bucket = lock(&self.bucket);
        let earned = now.saturating_duration_since(bucket.at).as_secs_f64() * self.per_second;
        bucket.tokens = (bucket.tokens + earned).min(self.burst) - 1.0;
        bucket.at = bucket.at.max(now);
        let wait = (-bucket.tokens / self.per_second).max(0.0);
        Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX)
    }
}

impl<K> RateLimiter<K> for BucketLimiter {
    fn when(&self, _key: &K) -> Duration {
        self.reserve(time::now())
    }

    fn forget(&self, _key: &K) {}

    fn num_requeues(&self, _key: &K) -> u32 {
        0
    }
}
