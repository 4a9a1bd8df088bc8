//! Builder of a queue.

use std::fmt;
use std::hash::Hash;

use crate::crowd::Order;
use crate::limiter::{JitterLimiter, RateLimiter, controller_rate_limiter};
use crate::metrics::Metrics;
use crate::queue::WorkQueue;
use crate::shared::Shared;

/// Builds a [`WorkQueue`].
///
/// ```
/// use std::time::Duration;
/// use kube_workqueue::{ExponentialLimiter, WorkQueue};
///
/// let queue = WorkQueue::builder()
///     .name("replicasets")
///     .rate_limiter(ExponentialLimiter::new(Duration::from_millis(10), Duration::from_secs(60)))
///     .jitter(0.1)
///     .build();
/// queue.add(7);
/// ```
#[must_use]
pub struct Builder<K> {
    name: String,
    limiter: Option<Box<dyn RateLimiter<K>>>,
    jitter: f64,
    seed: Option<u64>,
    metrics: Option<bool>,
    oldest_every: u32,
    order: Option<Order<K>>,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Builder<K> {
    pub(crate) fn new() -> Self {
        Self {
            name: String::new(),
            limiter: None,
            jitter: 0.0,
            seed: None,
            metrics: None,
            oldest_every: 16,
            order: None,
        }
    }

    /// Sets the name in logs and metrics.
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Sets the limiter that decides how long a retry is delayed. The default is [`controller_rate_limiter`].
    pub fn rate_limiter(self, limiter: impl RateLimiter<K> + 'static) -> Self {
        Self { limiter: Some(Box::new(limiter)), ..self }
    }

    /// Lengthens each delay of the rate limiter by a random part of up to `factor` of it, so that keys that failed
    /// together are not retried together.
    pub fn jitter(self, factor: f64) -> Self {
        Self { jitter: factor, ..self }
    }

    /// Sets the seed of the jitter: the same seed gives the same delays.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// Turns metrics on or off. By default, as in client-go, a queue has metrics if it has a name. Install the metrics
    /// recorder before the queue is built.
    pub fn metrics(self, on: bool) -> Self {
        Self { metrics: Some(on), ..self }
    }

    /// Lets every `n`-th take serve the oldest key, whatever its priority, so that low priorities do not starve: a key
    /// with `m` older keys before it is taken within `n * (m + 1)` takes. The default is 16; 0 counts as 1. Without
    /// priorities it has no effect.
    pub fn oldest_every(self, n: u32) -> Self {
        Self { oldest_every: n.max(1), ..self }
    }

    /// Uses `Ord` of keys to tell keys of one hash value apart beyond
    /// [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH): all promises of the queue then hold for any number of them, and an
    /// operation takes a logarithmic number of comparisons with them. For keys whose `Hash` is poor; other keys gain nothing.
    ///
    /// `Ord` must agree with `Eq`. It runs under the lock of the queue and must not use the queue.
    ///
    /// ```
    /// use kube_workqueue::WorkQueue;
    ///
    /// #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    /// struct Key(u32);
    ///
    /// impl std::hash::Hash for Key {
    ///     fn hash<H: std::hash::Hasher>(&self, _: &mut H) {} // one hash value for all keys
    /// }
    ///
    /// let queue = WorkQueue::builder().ordered().build();
    /// (0..1000).chain(0..1000).for_each(|n| queue.add(Key(n)));
    /// assert_eq!(queue.len(), 1000);
    /// ```
    pub fn ordered(self) -> Self
    where
        K: Ord,
    {
        Self { order: Some(K::cmp), ..self }
    }

    /// Builds the queue.
    pub fn build(self) -> WorkQueue<K> {
        let mut limiter = self.limiter.unwrap_or_else(|| Box::new(controller_rate_limiter()));
        if self.jitter > 0.0 {
            let seed = self.seed.unwrap_or_else(|| fastrand::u64(..));
            limiter = Box::new(JitterLimiter::new(limiter, self.jitter, seed));
        }
        let measure = self.metrics.unwrap_or(!self.name.is_empty());
        let metrics = measure.then(|| Metrics::new(&self.name));
        WorkQueue::new(Shared::new(self.name, limiter, metrics, self.oldest_every, self.order))
    }
}

impl<K> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("jitter", &self.jitter)
            .field("seed", &self.seed)
            .field("metrics", &self.metrics)
            .field("oldest_every", &self.oldest_every)
            .field("ordered", &self.order.is_some())
            .finish_non_exhaustive()
    }
}
