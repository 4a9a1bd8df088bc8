//! So many retries a second, whoever they are for.

use std::time::Duration;

use tokio::time::Instant;

use super::RateLimiter;
use crate::sync::{Mutex, lock};
use crate::time;

/// A token bucket shared by all keys: each retry takes a token, and waits for it if there is none (client-go's
/// `BucketRateLimiter`).
pub struct BucketLimiter {
    bucket: Mutex<Bucket>,
    per_second: f64,
    burst: f64,
}

struct Bucket {
    /// Tokens at `at`; below zero when tokens of the future are promised already.
    tokens: f64,
    at: Instant,
}

impl BucketLimiter {
    /// `per_second` tokens a second, of which `burst` can be saved up. The bucket starts full.
    ///
    /// # Panics
    /// If `per_second` is not a positive number: nobody would ever get a token.
    pub fn new(per_second: f64, burst: u32) -> Self {
        assert!(
            per_second > 0.0,
            "a bucket needs a positive rate; to stop retries, return a long delay instead"
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
