//! The objects that issued tokens are bound to.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::storage::{Change, Follower, Stored, TypeHead};

/// The objects that issued tokens are bound to and that still exist: service accounts, pods, nodes, secrets.
///
/// 1. An object counts from its `add` until it is deleted. An object of the same name that is created later is another one.
/// 2. Its size is bounded by the number of such objects, not of tokens.
#[derive(Debug, Default)]
pub(crate) struct BoundObjects(RwLock<Objects>);

#[derive(Debug, Default)]
struct Objects {
    /// The uids by storage key.
    keys: HashMap<String, String>,
    uids: HashSet<String>,
}

impl Objects {
    fn remove(&mut self, key: &str) {
        if let Some(uid) = self.keys.remove(key) {
            self.uids.remove(&uid);
        }
    }
}

impl BoundObjects {
    /// Adds an object, by its storage key.
    pub(super) fn add(&self, key: &str, uid: &str) {
        let mut objects = self.write();
        objects.remove(key);
        objects.keys.insert(key.to_owned(), uid.to_owned());
        objects.uids.insert(uid.to_owned());
    }

    /// Removes an object that was deleted before it was added.
    pub(super) fn remove(&self, key: &str) {
        self.write().remove(key);
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.read().uids.contains(uid)
    }

    fn read(&self) -> RwLockReadGuard<'_, Objects> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Objects> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for BoundObjects {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let mut objects = self.write();
        if objects.keys.is_empty() {
            return;
        }
        let head = TypeHead::new("", "");
        let has_uid = |stored: &Stored, uid: &str| {
            stored.to_value(&head).is_ok_and(|object| object["metadata"]["uid"] == uid)
        };
        let stored: HashMap<&str, &Arc<Stored>> = items.iter().map(|item| (&*item.key, item)).collect();
        let is_gone = |(key, uid): &(&String, &String)| {
            !stored.get(key.as_str()).is_some_and(|stored| has_uid(stored, uid))
        };
        let gone: Vec<String> = objects.keys.iter().filter(is_gone).map(|(key, _)| key.clone()).collect();
        gone.iter().for_each(|key| objects.remove(key));
    }

    fn change(&self, change: &Arc<Change>) {
        if change.current.is_none() && self.read().keys.contains_key(&**change.key()) {
            self.write().remove(change.key());
        }
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// The last known objects count until the reset that follows.
    fn lost(&self, _cause: &str) {}
}
