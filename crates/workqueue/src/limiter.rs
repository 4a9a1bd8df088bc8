//! Rate limiters: the delays of retries.

mod bucket;
mod combine;
mod exponential;
mod fast_slow;
mod history;
mod jitter;

use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use bucket::BucketLimiter;
pub use combine::MaxOfLimiter;
pub use combine::MaxWaitLimiter;
pub use exponential::ExponentialLimiter;
pub use fast_slow::FastSlowLimiter;
pub use jitter::JitterLimiter;

/// Decides how long a failed key is delayed before it is retried.
///
/// The queue calls its limiter without a lock. A limiter has its own state, so one behind an [`Arc`] can serve several
/// queues. If a limiter panics, the queue logs an error and delays the key by a second.
///
/// ```
/// use std::time::Duration;
/// use kube_workqueue::RateLimiter;
///
/// /// Delays every retry by a second.
/// struct OneSecond;
///
/// impl<K> RateLimiter<K> for OneSecond {
///     fn when(&self, _key: &K) -> Duration { Duration::from_secs(1) }
///     fn forget(&self, _key: &K) {}
///     fn num_requeues(&self, _key: &K) -> u32 { 0 }
/// }
/// ```
pub trait RateLimiter<K>: Send + Sync {
    /// Records a failure of `key` and returns the delay of its retry.
    fn when(&self, key: &K) -> Duration;

    /// Forgets the failures of `key`.
    fn forget(&self, key: &K);

    /// Returns the number of recorded failures of `key`.
    fn num_requeues(&self, key: &K) -> u32;
}

/// The default limiter, with client-go's constants: delays of each key from 5 ms, doubling up to 1000 s, and at most 10
/// retries a second of all keys together, with a burst of 100.
pub fn controller_rate_limiter<K>() -> MaxOfLimiter<K>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
{
    MaxOfLimiter::new()
        .and(ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(1000)))
        .and(BucketLimiter::new(10.0, 100))
}

/// A limiter per key, with client-go's constants: delays from 1 ms, doubling up to 1000 s.
pub fn item_rate_limiter<K>() -> ExponentialLimiter<K>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
{
    ExponentialLimiter::new(Duration::from_millis(1), Duration::from_secs(1000))
}

macro_rules! delegate {
    ($($pointer:ident),*) => {$(
        impl<K, L: RateLimiter<K> + ?Sized> RateLimiter<K> for $pointer<L> {
            fn when(&self, key: &K) -> Duration {
                (**self).when(key)
            }

            fn forget(&self, key: &K) {
                (**self).forget(key);
            }

            fn num_requeues(&self, key: &K) -> u32 {
                (**self).num_requeues(key)
            }
        }
    )*};
}

delegate!(Arc, Box);
