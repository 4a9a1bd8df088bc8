//! Methods of streams of changes.

use super::{
    predicates::{Predicate, PredicateConfig, PredicateFilter},
    reflector::{self, store::Writer},
    watcher,
};
use futures_util::{Stream, StreamExt};
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use std::future::ready;

/// Methods of streams of changes, such as those of [`watcher()`](super::watcher()).
pub trait WatchStreamExt: Stream {
    /// The stream itself: a [`watcher()`](super::watcher()) backs off by itself. For other streams this does nothing.
    #[must_use = "streams do nothing unless polled"]
    fn default_backoff(self) -> Self
    where
        Self: Sized,
    {
        self
    }

    /// The objects that exist, at first and after every change.
    fn applied_objects<K>(self) -> impl Stream<Item = watcher::Result<K>>
    where
        Self: Stream<Item = watcher::Result<watcher::Event<K>>> + Sized,
    {
        self.filter_map(|event| {
            ready(match event {
                Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => Some(Ok(object)),
                Ok(watcher::Event::Delete(_) | watcher::Event::Init | watcher::Event::InitDone) => None,
                Err(error) => Some(Err(error)),
            })
        })
    }

    /// The objects that exist, at first and after every change, and those that are deleted.
    fn touched_objects<K>(self) -> impl Stream<Item = watcher::Result<K>>
    where
        Self: Stream<Item = watcher::Result<watcher::Event<K>>> + Sized,
    {
        self.filter_map(|event| {
            ready(match event {
                Ok(
                    watcher::Event::Apply(object)
                    | watcher::Event::InitApply(object)
                    | watcher::Event::Delete(object),
                ) => Some(Ok(object)),
                Ok(watcher::Event::Init | watcher::Event::InitDone) => None,
                Err(error) => Some(Err(error)),
            })
        })
    }

    /// Changes every object, for example to drop fields before they are stored.
    fn modify<F, K>(self, mut change: F) -> impl Stream<Item = watcher::Result<watcher::Event<K>>>
    where
        Self: Stream<Item = watcher::Result<watcher::Event<K>>> + Sized,
        F: FnMut(&mut K),
    {
        self.map(move |event| event.map(|event| event.modify(&mut change)))
    }

    /// Leaves out objects whose property has not changed since they were seen last.
    fn predicate_filter<K, P>(self, predicate: P, config: PredicateConfig) -> PredicateFilter<Self, P>
    where
        Self: Stream<Item = watcher::Result<K>> + Sized,
        K: Resource + 'static,
        P: Predicate<K> + 'static,
    {
        PredicateFilter::new(self, predicate, config)
    }

    /// Writes the events into a store, before it passes them on.
    fn reflect<K>(self, writer: Writer<K>) -> impl Stream<Item = Self::Item>
    where
        Self: Stream<Item = watcher::Result<watcher::Event<K>>> + Sized,
        K: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        reflector::reflector(writer, self)
    }

    /// Like [`reflect`](Self::reflect): the [`Writer`] knows whether it has subscribers.
    fn reflect_shared<K>(self, writer: Writer<K>) -> impl Stream<Item = Self::Item>
    where
        Self: Stream<Item = watcher::Result<watcher::Event<K>>> + Sized,
        K: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
    {
        reflector::reflector(writer, self)
    }
}

impl<S: Stream + ?Sized> WatchStreamExt for S {}
