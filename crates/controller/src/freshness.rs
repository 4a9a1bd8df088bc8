//! Proof that a cache shows everything that the server had stored at a moment.
//!
//! A process that just won leadership does not know what its predecessor wrote. Its cache may lag behind: watches of a stalled
//! connection look like watches of a quiet kind. So before the first reconcile, for each kind that is read:
//!
//! 1. A LIST of one object, without a resource version, returns the current version of the server.
//! 2. If the cache has not reached it, either an event of the kind is missing, or there was none: the version counts all kinds. A short
//!    WATCH from the version of the cache distinguishes the two: it returns the missing events, then a bookmark.
//! 3. The cache has to reach the last of these events.

use crate::{failure::BoxError, time};
use futures_util::StreamExt;
use kube_informer::{
    KubeSource, ListOptions, ListPart, ListWatch, ObjectKey, Origin, ResourceVersion, SharedInformer,
    WaitError, WatchEvent, WatchOptions,
};
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// Timeout of the watch. Servers send a bookmark two seconds before it.
const WATCH: Duration = Duration::from_secs(3);
/// Delay between two watches that prove nothing.
const RETRY: Duration = Duration::from_secs(1);
/// A name that no object has, to wait for the version of a namespace.
const NO_OBJECT: &str = "-";

/// A cache could not be proved to be current.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot prove that the cache of {resource} is current: {why}")]
pub(crate) struct Unproved {
    resource: String,
    why: String,
}

/// Resolves when the cache shows everything that the server had stored when this was called, with the version of the server then:
/// the newest one of several namespaces, `None` if the cache covers nothing.
pub(crate) async fn prove(
    cache: &SharedInformer<Value>,
    client: &kube::Client,
    within: Duration,
) -> Result<Option<ResourceVersion>, Unproved> {
    let all = async {
        let mut newest: Option<ResourceVersion> = None;
        for (namespace, _) in cache.namespace_statuses() {
            let proved = Partition::new(cache, client, namespace).prove().await?;
            if let Some(proved) = proved
                && newest.as_ref().is_none_or(|newest| newest.is_older_than(&proved))
            {
                newest = Some(proved);
            }
        }
        Ok(newest)
    };
    let proved: Result<_, BoxError> = match time::timeout(within, all).await {
        Ok(proved) => proved,
        Err(time::Elapsed) => {
            Err(format!("not within {within:?}; its informer is {}", cache.status()).into())
        }
    };
    proved.map_err(|error| Unproved { resource: cache.kind().to_string(), why: error.to_string() })
}

/// The part of a cache that has its own watch.
struct Partition<'a> {
    cache: &'a SharedInformer<Value>,
    source: KubeSource,
    namespace: Option<String>,
}

impl<'a> Partition<'a> {
    fn new(cache: &'a SharedInformer<Value>, client: &kube::Client, namespace: Option<String>) -> Self {
        let origin = Arc::new(Origin::new(cache.kind().clone()));
        let source = KubeSource::new(client.clone(), origin, namespace.as_deref())
            .labels(cache.label_selector())
            .fields(cache.field_selector())
            .shards(cache.shard_selector())
            .metadata_only();
        Self { cache, source, namespace }
    }

    async fn prove(&self) -> Result<Option<ResourceVersion>, BoxError> {
        if self.is_empty().await {
            return Ok(None);
        }
        let current = self.current().await?;
        tokio::select! {
            biased;
            reached = self.reached(&current) => reached?,
            last = self.last_event(&current) => self.reached(&last?).await?,
        }
        Ok(Some(current))
    }

    /// Whether the cache covers nothing.
    async fn is_empty(&self) -> bool {
        let key = ObjectKey::new(self.namespace.as_deref(), NO_OBJECT);
        let reached = self.cache.reached_version(&key, &ResourceVersion::unset(), Duration::ZERO).await;
        matches!(reached, Err(WaitError::OutOfScope { .. }))
    }

    /// The current version of the server.
    async fn current(&self) -> Result<ResourceVersion, BoxError> {
        let mut parts = self.source.list(ListOptions::new().limit(1)).await?;
        let mut version = None;
        while let Some(part) = parts.next().await {
            if let ListPart::Meta(meta) = part? {
                version = meta.resource_version.or(version);
            }
        }
        version.ok_or_else(|| "the server returned a list without a resource version".into())
    }

    /// The version of the last event before `current` that the cache does not show; the version of the cache if there is none.
    async fn last_event(&self, current: &ResourceVersion) -> Result<ResourceVersion, BoxError> {
        loop {
            let snapshot = self.cache.lister().snapshot();
            let shown = match &self.namespace {
                Some(namespace) => snapshot.namespace_version(namespace),
                None => snapshot.resource_version(),
            };
            if let Some(shown) = shown
                && let Some(last) = self.watch(shown, current).await?
            {
                return Ok(last);
            }
            time::sleep(RETRY).await;
        }
    }

    /// Watches from the version of the cache. `None` if the watch proves nothing: it ended early, or its version has expired.
    async fn watch(
        &self,
        shown: ResourceVersion,
        current: &ResourceVersion,
    ) -> Result<Option<ResourceVersion>, BoxError> {
        let options =
            WatchOptions::new().resource_version(shown.to_string()).allow_bookmarks(true).timeout(WATCH);
        let mut events = match self.source.watch(options).await {
            Ok(events) => events,
            Err(error) if error.is_expired() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut last = shown;
        while let Some(event) = events.next().await {
            match event? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    last = object.resource_version().clone();
                    if last >= *current {
                        return Ok(Some(last));
                    }
                }
                WatchEvent::Bookmark(bookmark) if bookmark.resource_version >= *current => {
                    return Ok(Some(last));
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) | WatchEvent::Malformed(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Resolves when the cache has reached a version.
    async fn reached(&self, version: &ResourceVersion) -> Result<(), BoxError> {
        let key = ObjectKey::new(self.namespace.as_deref(), NO_OBJECT);
        Ok(self.cache.reached_version(&key, version, Duration::MAX).await?)
    }
}
