//! Filters of streams by properties of objects.

use super::watcher;
use futures_util::Stream;
use kube::{Resource, ResourceExt, api::ObjectMeta};
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::time::Instant;

/// A property of objects. A [filtered](super::WatchStreamExt::predicate_filter) stream leaves out objects whose property is the
/// same as when the object was seen last.
///
/// ```
/// use futures_util::StreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer_controller::kube_runtime::{Predicate, PredicateConfig, WatchStreamExt, predicates};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let mut config = ConfigMap::default();
/// config.metadata.name = Some("a".to_owned());
/// let same = config.clone();
/// let mut relabelled = config.clone();
/// relabelled.metadata.labels = Some([("color".to_owned(), "red".to_owned())].into());
/// let changes = futures_util::stream::iter([Ok(config), Ok(same), Ok(relabelled)]);
/// let by = predicates::labels.combine(predicates::annotations);
/// assert_eq!(changes.predicate_filter(by, PredicateConfig::default()).count().await, 2);
/// # }
/// ```
pub trait Predicate<K> {
    /// A hash of the property; `None` if the object does not have it. Such objects are not left out.
    fn hash_property(&self, object: &K) -> Option<u64>;

    /// The property, or another one if an object does not have it.
    fn fallback<F: Predicate<K>>(self, other: F) -> Fallback<Self, F>
    where
        Self: Sized,
    {
        Fallback(self, other)
    }

    /// Both properties: an object is left out only if neither has changed.
    fn combine<F: Predicate<K>>(self, other: F) -> Combine<Self, F>
    where
        Self: Sized,
    {
        Combine(self, other)
    }
}

impl<K, F: Fn(&K) -> Option<u64>> Predicate<K> for F {
    fn hash_property(&self, object: &K) -> Option<u64> {
        self(object)
    }
}

/// See [`Predicate::fallback`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fallback<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Fallback<A, B> {
    fn hash_property(&self, object: &K) -> Option<u64> {
        self.0.hash_property(object).or_else(|| self.1.hash_property(object))
    }
}

/// See [`Predicate::combine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Combine<A, B>(A, B);

impl<K, A: Predicate<K>, B: Predicate<K>> Predicate<K> for Combine<A, B> {
    fn hash_property(&self, object: &K) -> Option<u64> {
        let both = (self.0.hash_property(object), self.1.hash_property(object));
        (both != (None, None)).then(|| hash(&both))
    }
}

fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The generation, which changes of the status do not change.
pub fn generation<K: Resource>(object: &K) -> Option<u64> {
    object.meta().generation.as_ref().map(hash)
}

/// The resource version.
pub fn resource_version<K: Resource>(object: &K) -> Option<u64> {
    object.meta().resource_version.as_ref().map(hash)
}

/// The labels.
pub fn labels<K: Resource>(object: &K) -> Option<u64> {
    Some(hash(object.labels()))
}

/// The annotations.
pub fn annotations<K: Resource>(object: &K) -> Option<u64> {
    Some(hash(object.annotations()))
}

/// The finalizers.
pub fn finalizers<K: Resource>(object: &K) -> Option<u64> {
    Some(hash(object.finalizers()))
}

/// Options of a filtered stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PredicateConfig {
    ttl: Duration,
}

impl PredicateConfig {
    /// Sets how long an object that is not seen is remembered; 1 hour by default.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}

impl Default for PredicateConfig {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60 * 60) }
    }
}

/// A stream without objects whose property is unchanged, see
/// [`predicate_filter`](super::WatchStreamExt::predicate_filter).
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct PredicateFilter<S, P> {
    stream: Pin<Box<S>>,
    seen: Seen<P>,
}

impl<S, P> PredicateFilter<S, P> {
    pub(super) fn new(stream: S, predicate: P, config: PredicateConfig) -> Self {
        let seen = Seen { predicate, config, properties: HashMap::new(), evicted: Instant::now() };
        Self { stream: Box::pin(stream), seen }
    }
}

// The stream is boxed, and nothing else is pinned.
impl<S, P> Unpin for PredicateFilter<S, P> {}

impl<S, K, P> Stream for PredicateFilter<S, P>
where
    S: Stream<Item = watcher::Result<K>>,
    K: Resource,
    P: Predicate<K>,
{
    type Item = watcher::Result<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            match ready!(self.stream.as_mut().poll_next(context)) {
                Some(Ok(object)) if !self.seen.is_changed(&object) => {}
                item => return Poll::Ready(item),
            }
        }
    }
}

/// The properties of the objects that were seen.
#[derive(Debug)]
struct Seen<P> {
    predicate: P,
    config: PredicateConfig,
    properties: HashMap<ObjectId, (u64, Instant)>,
    evicted: Instant,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct ObjectId(Option<String>, Option<String>, Option<String>);

impl From<&ObjectMeta> for ObjectId {
    fn from(meta: &ObjectMeta) -> Self {
        Self(meta.namespace.clone(), meta.name.clone(), meta.uid.clone())
    }
}

impl<P> Seen<P> {
    fn is_changed<K: Resource>(&mut self, object: &K) -> bool
    where
        P: Predicate<K>,
    {
        let Some(property) = self.predicate.hash_property(object) else { return true };
        let (now, ttl) = (Instant::now(), self.config.ttl);
        let is_fresh = |seen: Instant| now.saturating_duration_since(seen) < ttl;
        if !is_fresh(self.evicted) {
            self.properties.retain(|_, (_, seen)| is_fresh(*seen));
            self.evicted = now;
        }
        let last = self.properties.insert(object.meta().into(), (property, now));
        last.is_none_or(|(last, seen)| last != property || !is_fresh(seen))
    }
}
