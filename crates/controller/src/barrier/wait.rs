//! Waiting until the caches show the writes of a key.

use super::{Barrier, Expected, Pending, expected, identity};
use crate::{failure::chain, request::Target, time};
use kube_informer::{Object, ObjectKey, SharedInformer, WaitError};
use serde_json::Value;
use std::time::Duration;

/// A cache does not show what an earlier reconcile of the key wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cache of {resource} does not show an earlier write of {key}: {why}")]
#[non_exhaustive]
pub struct StaleCache {
    /// The resource.
    pub resource: String,
    /// The object that was written.
    pub key: ObjectKey,
    /// The known reason of the delay.
    pub why: String,
}

impl Barrier {
    /// Resolves when the caches show all writes of `owner`.
    pub(crate) async fn reached(
        &self,
        owner: &ObjectKey,
        client: &kube::Client,
        within: Duration,
    ) -> Result<(), StaleCache> {
        let Some(deadline) = time::from_now(within) else {
            return self.all_reached(owner, client, || Duration::MAX).await;
        };
        let remaining = || deadline.saturating_duration_since(tokio::time::Instant::now());
        self.all_reached(owner, client, remaining).await
    }

    async fn all_reached(
        &self,
        owner: &ObjectKey,
        client: &kube::Client,
        remaining: impl Fn() -> Duration,
    ) -> Result<(), StaleCache> {
        // The reconcile of a key is not running now, so no entries are added.
        while let Some(pending) = self.first(owner) {
            let cache = &self.caches[pending.cache];
            let shown = match &pending.expected {
                Expected::ServerState => {
                    let expected = self.resolve(&pending, client, remaining()).await?;
                    match expected {
                        Some(expected) => show(cache, &pending.key, &expected, remaining()).await,
                        None => Ok(()),
                    }
                }
                expected => show(cache, &pending.key, expected, remaining()).await,
            };
            shown.map_err(|error| pending.stale(cause(&error)))?;
            self.remove(owner, &[pending.id]);
        }
        Ok(())
    }

    /// Reads from the server what became of a write; `None` if the cache shows it already.
    async fn resolve(
        &self,
        pending: &Pending,
        client: &kube::Client,
        within: Duration,
    ) -> Result<Option<Expected>, StaleCache> {
        let cache = &self.caches[pending.cache];
        // Read before the request: if the server has no object, the cache must lose this one.
        let shown = cache.lister().get(&pending.key);
        let target = Target::new("get", &pending.kind, pending.key.clone());
        let get = async {
            let request = target.requests().map_err(|error| error.to_string())?;
            let request = request.get(pending.key.name(), &kube::api::GetParams::default());
            let request = request.map_err(|error| error.to_string())?;
            match client.request::<Value>(request).await {
                Ok(object) => Ok(Some(object)),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
                Err(error) => Err(chain(&error)),
            }
        };
        let found = time::timeout(within, get).await;
        let found = found.unwrap_or_else(|_| Err("no response".to_owned()));
        match found {
            Ok(Some(object)) => Ok(identity(&object).map(|(_, version)| expected(cache, &object, &version))),
            Ok(None) => Ok(shown.map(|object| Expected::Removed(object.uid()))),
            Err(why) => Err(pending.stale(format!("its outcome is unknown, and cannot be read: {why}"))),
        }
    }
}

impl Pending {
    fn stale(&self, why: String) -> StaleCache {
        StaleCache { resource: self.kind.to_string(), key: self.key.clone(), why }
    }
}

fn cause(error: &WaitError) -> String {
    match error {
        WaitError::Timeout { status, .. } => format!("its informer is {status}"),
        error => error.to_string(),
    }
}

/// Resolves when a cache shows what is expected of an object.
async fn show(
    cache: &SharedInformer<Value>,
    key: &ObjectKey,
    expected: &Expected,
    within: Duration,
) -> Result<(), WaitError> {
    let shown = match expected {
        Expected::ServerState => Ok(()),
        Expected::Version(version) => cache.reached_version(key, version, within).await,
        Expected::Excluded(version) => {
            let gone = |object: &Object<Value>| !object.resource_version().is_older_than(version);
            cache.wait_until(key, within, |object| object.is_none_or(gone)).await
        }
        Expected::Deleted(uid) => {
            let gone = |object: &Object<Value>| object.is_deleting() || object.uid() != *uid;
            cache.wait_until(key, within, |object| object.is_none_or(gone)).await
        }
        Expected::Removed(uid) => {
            cache.wait_until(key, within, |object| object.is_none_or(|object| object.uid() != *uid)).await
        }
    };
    match shown {
        // The cache does not cover the namespace: reconciles cannot read the object from it.
        Err(WaitError::OutOfScope { .. }) => Ok(()),
        shown => shown,
    }
}
