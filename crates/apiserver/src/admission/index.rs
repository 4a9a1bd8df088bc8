//! The objects of one resource in memory, for plugins that look at them with every write.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::registry::{Object, Resource};
use crate::storage::{Change, Follower, Storage, StorageError, Stored};

/// The objects of one resource, as of the last change that the store reported.
#[derive(Debug)]
pub(super) struct Index {
    resource: Arc<Resource>,
    /// By storage key. Locked for one operation, never over an await.
    objects: RwLock<BTreeMap<Arc<str>, Arc<Object>>>,
}

impl Index {
    pub(super) fn new(resource: Arc<Resource>) -> Arc<Self> {
        Arc::new(Self { resource, objects: RwLock::default() })
    }

    /// Follows the store from now on.
    pub(super) async fn start(self: &Arc<Self>, storage: &dyn Storage) -> Result<(), StorageError> {
        let follower: Arc<dyn Follower> = Arc::clone(self) as _;
        storage.follow(&self.resource.storage_prefix(), Arc::downgrade(&follower)).await
    }

    pub(super) fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Returns the objects of a namespace, in order of their names.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<Arc<Object>> {
        let prefix = format!("{}{namespace}/", self.resource.storage_prefix());
        let objects = self.read();
        let from = objects.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        from.take_while(|(key, _)| key.starts_with(&prefix)).map(|(_, object)| Arc::clone(object)).collect()
    }

    /// Returns all objects, in order of their keys.
    pub(super) fn all(&self) -> Vec<Arc<Object>> {
        self.read().values().map(Arc::clone).collect()
    }

    /// Returns an object that is known here.
    pub(super) fn known(&self, namespace: Option<&str>, name: &str) -> Option<Arc<Object>> {
        self.read().get(self.resource.storage_key(namespace, name).as_str()).map(Arc::clone)
    }

    /// Returns an object. One that is not known here is read from the store, which may be newer.
    pub(super) async fn get(
        &self,
        storage: &dyn Storage,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Arc<Object>>, StorageError> {
        if let Some(object) = self.known(namespace, name) {
            return Ok(Some(object));
        }
        let key = self.resource.storage_key(namespace, name);
        Ok(storage.get(&key).await?.and_then(|stored| self.decode(&stored)))
    }

    /// Objects that cannot be decoded have no effect.
    fn decode(&self, stored: &Stored) -> Option<Arc<Object>> {
        self.resource.decode(stored).ok().map(Arc::new)
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<Arc<str>, Arc<Object>>> {
        self.objects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<Arc<str>, Arc<Object>>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Index {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let decoded = items.iter().filter_map(|stored| Some((Arc::clone(&stored.key), self.decode(stored)?)));
        *self.write() = decoded.collect();
    }

    fn change(&self, change: &Arc<Change>) {
        let current = change.current.as_deref().and_then(|stored| self.decode(stored));
        let mut objects = self.write();
        match current {
            Some(object) => objects.insert(Arc::clone(change.key()), object),
            None => objects.remove(change.key()),
        };
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// The last known objects stay in effect until the reset that follows.
    fn lost(&self, _cause: &str) {}
}
