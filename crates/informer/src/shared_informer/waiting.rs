//! Waiting for the cache: until it is synced, shows a write, or meets a condition.

use super::{Core, SharedInformer};
use crate::{
    indexer::Snapshot,
    scope::Partition,
    status::InformerStatus,
    time::{Elapsed, timeout},
};
use kube_informer_wire::{Object, ObjectKey, ResourceVersion};
use std::{fmt, time::Duration};

/// How long [`SharedInformer::reached`] waits.
const REACH: Duration = Duration::from_secs(30);

/// Caches that were not synced in time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SyncError {
    /// The caches, each with its status.
    pub unsynced: Vec<UnsyncedCache>,
}

/// A cache that was not synced in time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct UnsyncedCache {
    /// The resource.
    pub resource: String,
    /// The namespace, if it has its own.
    pub namespace: Option<String>,
    /// Its status.
    pub status: InformerStatus,
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not synced:")?;
        for cache in &self.unsynced {
            let namespace = cache.namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            write!(f, " {}{namespace} ({});", cache.resource, cache.status)?;
        }
        f.write_str(" has it been started, and may the caller list and watch it?")
    }
}

impl std::error::Error for SyncError {}

/// Something that was waited for did not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// It did not happen in time.
    #[error("{what} did not happen within {}s; the informer is {status}", after.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// For how long.
        after: Duration,
        /// The status of the informer.
        status: String,
    },
    /// The informer stopped.
    #[error("the informer stopped while waiting for {what}")]
    Stopped {
        /// What was waited for.
        what: String,
    },
    /// A task of the informer was aborted and is not restarted.
    #[error("the informer failed while waiting for {what}: {why}")]
    Failed {
        /// What was waited for.
        what: String,
        /// How it failed.
        why: String,
    },
    /// The informer does not cover the namespace.
    #[error("{what} cannot happen: the informer does not cover its namespace")]
    OutOfScope {
        /// What was waited for.
        what: String,
    },
    /// A selector of the informer excludes the object.
    #[error("{what} cannot happen: the informer's selector {selector:?} excludes it")]
    Excluded {
        /// What was waited for.
        what: String,
        /// The selector.
        selector: String,
    },
}

/// A cache is not ready to be relied on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{resource} is {status}")]
#[non_exhaustive]
pub struct NotReady {
    /// The resource.
    pub resource: String,
    /// The status of the informer.
    pub status: InformerStatus,
}

/// The reason why a cache no longer changes.
pub(crate) enum Ended {
    Stopped,
    /// A task was aborted and is not restarted.
    Failed(String),
}

impl<T: 'static> SharedInformer<T> {
    /// Resolves when the initial list of everything it covers is in the cache, or a restored state is proven to be that of the
    /// server ([`InformerStatus::Restored`]). `Duration::MAX` waits without limit, here
    /// and below. A task that panicked is waited for, because it restarts; tasks whose runtime was shut down do not, which
    /// is an error at once.
    pub async fn synced(&self, within: Duration) -> Result<(), SyncError> {
        let synced = self.core.until(|snapshot| snapshot.is_listed());
        match timeout(within, synced).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(SyncError { unsynced: self.core.unsynced() }),
        }
    }

    /// Resolves when the cache shows what a write returned, or something later: read your own writes.
    ///
    /// ```no_run
    /// # async fn example(pods: kube_informer::SharedInformer<k8s_openapi::api::core::v1::Pod>,
    /// #     api: kube::Api<k8s_openapi::api::core::v1::Pod>, pod: k8s_openapi::api::core::v1::Pod)
    /// #     -> Result<(), Box<dyn std::error::Error>> {
    /// let made = api.create(&kube::api::PostParams::default(), &pod).await?;
    /// pods.reached(&made).await?; // from here on the lister knows it
    /// # Ok(()) }
    /// ```
    ///
    /// Waits at most 30 s. An object that the informer's label selector excludes, or its field selector by name or namespace,
    /// is [`WaitError::Excluded`] immediately, unless the cache still shows it: then this waits until it is removed. Whether
    /// another field excludes an object is unknown here: such a wait times out.
    pub async fn reached<K: kube::Resource>(&self, written: &K) -> Result<(), WaitError> {
        let meta = written.meta();
        let key = ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        let version = ResourceVersion::from(meta.resource_version.as_deref().unwrap_or_default());
        if let (Some(selector), Some(partition)) = (self.core.selection.excludes(meta), self.partition(&key))
        {
            let snapshot = self.core.controller.indexer.snapshot();
            if snapshot.get(&key).is_none() && !shows(&snapshot, partition, &key, &version) {
                let what = format!("{} {key} at version {version}", self.kind());
                return Err(WaitError::Excluded { what, selector });
            }
        }
        self.reached_version(&key, &version, REACH).await
    }

    /// Resolves when the cache shows a version of an object, or something later. If a selector of the informer excludes the
    /// object, which a key does not show, this may time out; see [`reached`](Self::reached).
    pub async fn reached_version(
        &self,
        key: &ObjectKey,
        version: &ResourceVersion,
        within: Duration,
    ) -> Result<(), WaitError> {
        let what = || format!("{} {key} at version {version}", self.kind());
        let Some(partition) = self.partition(key) else {
            return Err(WaitError::OutOfScope { what: what() });
        };
        let reached = |snapshot: &Snapshot| shows(snapshot, partition, key, version);
        self.outcome(timeout(within, self.core.until(reached)).await, within, what)
    }

    /// Resolves when a condition on an object holds; `None` stands for an object that does not exist. Waits for the initial list
    /// of the object's namespace, not for other namespaces that the informer covers.
    pub async fn wait_until(
        &self,
        key: &ObjectKey,
        within: Duration,
        mut condition: impl FnMut(Option<&Object<T>>) -> bool,
    ) -> Result<(), WaitError> {
        let what = || format!("the condition on {} {key}", self.kind());
        let Some(partition) = self.partition(key) else {
            return Err(WaitError::OutOfScope { what: what() });
        };
        let holds = |snapshot: &Snapshot| {
            snapshot.is_partition_listed(partition) && condition(snapshot.get(key).map(Object::cast).as_ref())
        };
        self.outcome(timeout(within, self.core.until(holds)).await, within, what)
    }

    fn partition(&self, key: &ObjectKey) -> Option<Partition> {
        self.core.partitions.of_namespace(key.namespace())
    }

    fn outcome(
        &self,
        result: Result<Result<(), Ended>, Elapsed>,
        after: Duration,
        what: impl FnOnce() -> String,
    ) -> Result<(), WaitError> {
        match result {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Ended::Stopped)) => Err(WaitError::Stopped { what: what() }),
            Ok(Err(Ended::Failed(why))) => Err(WaitError::Failed { what: what(), why }),
            Err(_) => Err(WaitError::Timeout { what: what(), after, status: self.status().to_string() }),
        }
    }

    /// For health endpoints: whether the cache is filled and has not been failing for longer than `patience`. A
    /// task that panicked or was aborted is an error at once.
    pub fn ready(&self, patience: Duration) -> Result<(), NotReady> {
        let status = self.status();
        let failing =
            status.is_failed() || status.failing_since().is_some_and(|since| since.elapsed() > patience);
        if self.is_synced() && !failing && !self.is_stopped() {
            return Ok(());
        }
        Err(NotReady { resource: self.kind().to_string(), status })
    }
}

/// Whether a state shows a version of an object, or something later.
fn shows(snapshot: &Snapshot, partition: Partition, key: &ObjectKey, version: &ResourceVersion) -> bool {
    let not_older = |known: &ResourceVersion| known >= version;
    !snapshot.is_withdrawn(partition)
        && (snapshot.position(partition).is_some_and(not_older)
            || snapshot.is_confirmed(key)
                && snapshot.get(key).is_some_and(|object| not_older(object.resource_version())))
}

impl Core {
    /// Resolves when the condition holds of the cache, or with an error when it never will.
    pub(crate) async fn until(&self, mut condition: impl FnMut(&Snapshot) -> bool) -> Result<(), Ended> {
        let supervision = self.tasks.supervision();
        let holds = async {
            loop {
                let mut published = std::pin::pin!(self.controller.indexer.published());
                // Registered before the state is read, so that no publication in between is missed.
                published.as_mut().enable();
                if condition(&self.controller.indexer.snapshot()) {
                    return;
                }
                published.await;
            }
        };
        tokio::select! {
            biased;
            () = holds => Ok(()),
            () = supervision.stopping() => Err(Ended::Stopped),
            why = supervision.lost() => Err(Ended::Failed(why)),
        }
    }

    /// Partitions without a complete initial list, with their status.
    pub(crate) fn unsynced(&self) -> Vec<UnsyncedCache> {
        let snapshot = self.controller.indexer.snapshot();
        let unfilled = self.partitions.all().filter(|&partition| !snapshot.is_partition_listed(partition));
        unfilled
            .map(|partition| UnsyncedCache {
                resource: self.origin.kind().to_string(),
                namespace: self.partitions.namespace(partition).map(str::to_owned),
                status: self.partition_status(partition),
            })
            .collect()
    }
}
