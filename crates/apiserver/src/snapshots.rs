//! Snapshots of all objects, to return to between tests.

use kube_informer_wire::sync::lock;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use crate::api::Api;
use crate::storage::{Range, Storage, StorageError, Stored, Update, UpdateError, Updated, guaranteed_update};

/// The most snapshots with a name, because each may keep every object in memory.
const MAX_NAMED: usize = 100;

/// All objects of a server at one moment. Clones share them.
///
/// See [`LocalServer::restore`](crate::LocalServer::restore).
#[derive(Clone)]
pub struct ClusterSnapshot {
    items: Arc<[Arc<Stored>]>,
}

impl ClusterSnapshot {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl std::fmt::Debug for ClusterSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterSnapshot({} objects)", self.len())
    }
}

/// Snapshots by name, for clients over HTTP.
#[derive(Debug, Default)]
pub(crate) struct NamedSnapshots(Mutex<BTreeMap<String, ClusterSnapshot>>);

/// There are [`MAX_NAMED`] snapshots already.
#[derive(Debug, thiserror::Error)]
#[error("there are {MAX_NAMED} snapshots already: delete one first")]
pub(crate) struct TooManySnapshots;

impl NamedSnapshots {
    pub(crate) fn names(&self) -> Vec<String> {
        lock(&self.0).keys().cloned().collect()
    }

    pub(crate) fn get(&self, name: &str) -> Option<ClusterSnapshot> {
        lock(&self.0).get(name).cloned()
    }

    /// Stores a snapshot, in place of an older one with this name.
    pub(crate) fn set(&self, name: &str, snapshot: ClusterSnapshot) -> Result<(), TooManySnapshots> {
        let mut named = lock(&self.0);
        if named.len() >= MAX_NAMED && !named.contains_key(name) {
            return Err(TooManySnapshots);
        }
        named.insert(name.to_owned(), snapshot);
        Ok(())
    }

    /// Returns false if there was none.
    pub(crate) fn remove(&self, name: &str) -> bool {
        lock(&self.0).remove(name).is_some()
    }
}

/// Takes a snapshot of a store.
pub(crate) async fn take(storage: &dyn Storage) -> Result<ClusterSnapshot, StorageError> {
    let all = Range { prefix: "/".to_owned(), ..Range::default() };
    Ok(ClusterSnapshot { items: storage.list(&all).await?.items.into() })
}

/// Makes the stored objects those of a snapshot.
///
/// Objects are written and deleted directly, without finalizers and grace periods. Controllers pause meanwhile, so that none of them
/// acts on a half restored cluster. Objects of custom resources are deleted before their CRD, so that watchers receive the deletes.
pub(crate) async fn restore(api: &Api, snapshot: &ClusterSnapshot) -> Result<(), StorageError> {
    let mark = api.controllers.mark();
    let paused = api.controllers.pause().await;
    let definitions = api.resources.definitions_prefix();
    let result = replace(&*api.storage, &definitions, snapshot).await;
    drop(paused);
    api.controllers.reconcile(mark).await;
    result
}

async fn replace(
    storage: &dyn Storage,
    definitions: &str,
    snapshot: &ClusterSnapshot,
) -> Result<(), StorageError> {
    let is_definition = |stored: &&Arc<Stored>| stored.key.starts_with(definitions);
    let wanted: BTreeMap<&str, &Arc<Stored>> = snapshot.items.iter().map(|item| (&*item.key, item)).collect();
    let present = take(storage).await?;
    let surplus = present.items.iter().filter(|item| !wanted.contains_key(&*item.key));
    let (crds, others): (Vec<_>, Vec<_>) = surplus.partition(is_definition);
    for item in others.into_iter().chain(crds) {
        tokio::task::consume_budget().await;
        update(storage, item, || Update::Delete).await?;
    }
    let (crds, others): (Vec<_>, Vec<_>) = snapshot.items.iter().partition(is_definition);
    for item in crds.into_iter().chain(others) {
        tokio::task::consume_budget().await;
        match storage.create(&item.key, item.document.clone()).await {
            Err(StorageError::Exists(_)) => {
                update(storage, item, || Update::Write(item.document.clone())).await?
            }
            created => created.map(drop)?,
        }
    }
    Ok(())
}

/// Changes a stored object. One that is gone stays so: a client deleted it meanwhile.
async fn update(
    storage: &dyn Storage,
    item: &Stored,
    change: impl Fn() -> Update,
) -> Result<(), StorageError> {
    let updated: Result<Updated, UpdateError<Infallible>> =
        guaranteed_update(storage, &item.key, None, |_| Ok(change())).await;
    match updated {
        Ok(_) | Err(UpdateError::Storage(StorageError::NotFound)) => Ok(()),
        Err(UpdateError::Storage(error)) => Err(error),
        Err(UpdateError::Refused(never)) => match never {},
    }
}
