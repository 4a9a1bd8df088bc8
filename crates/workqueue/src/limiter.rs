//! How long a failed key has to wait.

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

/// Decides how long a key waits before it is tried again.
///
/// Limiters are called without any lock of the queue. They keep their own state, so one limiter behind an
/// [`Arc`] can serve several queues.
///
/// ```
/// use std::time::Duration;
/// use kube_workqueue::RateLimiter;
///
/// /// Everybody waits a second.
/// struct Calm;
///
/// impl<K> RateLimiter<K> for Calm {
///     fn when(&self, _key: &K) -> Duration { Duration::from_secs(1) }
///     fn forget(&self, _key: &K) {}
///     fn num_requeues(&self, _key: &K) -> u32 { 0 }
/// }
/// ```
pub trait RateLimiter<K>: Send + Sync {
    /// Records one more failure of `key` and says how long it must wait.
    fn when(&self, key: &K) -> Duration;

    /// Forgets the failures of `key`.
    fn forget(&self, key: &K);

    /// How many failures of `key` are on record.
    fn num_requeues(&self, key: &K) -> u32;
}

/// The limiter for controllers, with client-go's constants: each key from 5 ms doubling to 1000 s, and all
/// keys together 10 a second with a burst of 100.
pub fn controller_rate_limiter<K>() -> MaxOfLimiter<K>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
{
    MaxOfLimiter::new()
        .and(ExponentialLimiter::new(Duration::from_millis(5), Duration::from_secs(1000)))
        .and(BucketLimiter::new(10.0, 100))
}

/// The limiter that looks only at each key, with client-go's constants: from 1 ms doubling to 1000 s.
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
