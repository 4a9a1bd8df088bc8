//! Waiting for the cache: until it is synced, until it shows a write, until an object is as wanted.

use super::{Core, SharedInformer};
use crate::{
    indexer::Snapshot,
    status::InformerStatus,
    time::{Elapsed, timeout},
};
use kube_informer_wire::{Object, ObjectKey, ResourceVersion};
use std::{fmt, time::Duration};

/// How long [`SharedInformer::reached`] waits.
const REACH: Duration = Duration::from_secs(30);

/// Caches that were not filled in time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SyncError {
    /// Which, and what they are doing instead.
    pub laggards: Vec<Laggard>,
}

/// A cache that was not filled in time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Laggard {
    /// The resource.
    pub resource: String,
    /// The namespace, if it has its own.
    pub namespace: Option<String>,
    /// What it is doing.
    pub status: InformerStatus,
}

impl fmt::Display for SyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not synced:")?;
        for laggard in &self.laggards {
            let namespace = laggard.namespace.as_ref().map(|name| format!(" in {name}")).unwrap_or_default();
            write!(f, " {}{namespace} ({});", laggard.resource, laggard.status)?;
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
        /// What the informer was doing.
        status: String,
    },
    /// The informer stopped.
    #[error("the informer stopped while waiting for {what}")]
    Stopped {
        /// What was waited for.
        what: String,
    },
    /// A task of the informer is gone and is not restarted.
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
}

/// Why a cache should not be relied on now.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{resource} is {status}")]
#[non_exhaustive]
pub struct NotReady {
    /// The resource.
    pub resource: String,
    /// What the informer is doing.
    pub status: InformerStatus,
}

/// Why the cache does not change any more.
pub(crate) enum Ended {
    Stopped,
    /// A task is gone and is not restarted.
    Failed(String),
}

impl<T: 'static> SharedInformer<T> {
    /// Resolves when the first list of everything it covers is in the cache. `Duration::MAX` waits without limit, here
    /// and below. A task that panicked is waited for, because it restarts; tasks whose runtime was shut down do not, which
    /// is an error at once.
    pub async fn synced(&self, within: Duration) -> Result<(), SyncError> {
        let synced = self.core.until(|snapshot| snapshot.is_filled());
        match timeout(within, synced).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(SyncError { laggards: self.core.laggards() }),
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
    pub async fn reached<K: kube::Resource>(&self, written: &K) -> Result<(), WaitError> {
        let meta = written.meta();
        let key = ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default());
        let version = ResourceVersion::from(meta.resource_version.as_deref().unwrap_or_default());
        self.reached_version(&key, &version, REACH).await
    }

    /// Resolves when the cache shows a version of an object, or something later.
    pub async fn reached_version(
        &self,
        key: &ObjectKey,
        version: &ResourceVersion,
        within: Duration,
    ) -> Result<(), WaitError> {
        let what = || format!("{} {key} at version {version}", self.kind());
        let Some(partition) = self.core.partitions.of_namespace(key.namespace()) else {
            return Err(WaitError::OutOfScope { what: what() });
        };
        let reached = |snapshot: &Snapshot| {
            let not_older = |known: &ResourceVersion| known >= version;
            snapshot.position(partition).is_some_and(not_older)
                || snapshot.get(key).is_some_and(|object| not_older(object.resource_version()))
        };
        self.outcome(timeout(within, self.core.until(reached)).await, within, what)
    }

    /// Resolves when an object is as wanted; `None` stands for an object that is not there.
    pub async fn wait_until(
        &self,
        key: &ObjectKey,
        within: Duration,
        mut condition: impl FnMut(Option<&Object<T>>) -> bool,
    ) -> Result<(), WaitError> {
        let holds = |snapshot: &Snapshot| {
            snapshot.is_filled() && condition(snapshot.get(key).map(Object::cast).as_ref())
        };
        let what = || format!("the condition on {} {key}", self.kind());
        self.outcome(timeout(within, self.core.until(holds)).await, within, what)
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

impl Core {
    /// Resolves when the condition holds of the cache, or with an error when it never will.
    pub(crate) async fn until(&self, mut condition: impl FnMut(&Snapshot) -> bool) -> Result<(), Ended> {
        let supervision = self.tasks.supervision();
        let holds = async {
            loop {
                let mut published = std::pin::pin!(self.controller.indexer.published());
                // Waits before it looks, so that nothing published in between is missed.
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

    /// Which partitions are not filled, and why.
    pub(crate) fn laggards(&self) -> Vec<Laggard> {
        let snapshot = self.controller.indexer.snapshot();
        let unfilled = self.partitions.all().filter(|&partition| !snapshot.is_partition_filled(partition));
        unfilled
            .map(|partition| Laggard {
                resource: self.origin.kind().to_string(),
                namespace: self.partitions.namespace(partition).map(str::to_owned),
                status: self.partition_status(partition),
            })
            .collect()
    }
}
