//! The writes of a key that its caches do not show yet.
//!
//! A reconcile that reads a cache without the effects of the previous reconcile acts twice: it creates a second child, or
//! deletes another one. So each write is remembered with the key whose reconcile made it, and the next reconcile of that key
//! starts when the caches show it.
//!
//! 1. A write is remembered before it is sent. Whatever ends it early (a timeout, a reset connection, a panic, a cancelled
//!    reconcile) leaves it with an unknown outcome, which one request resolves: the object is read from the server.
//! 2. Only caches of the controller are waited for, and only for objects in their scope that their selectors include. An object that a
//!    write excludes is waited for if the cache still shows it.
//! 3. A created or changed object is waited for by its version. An object that was deleted or recreated since has a newer one, so
//!    the wait ends.
//! 4. A deleted object is waited for until the cache does not show this uid, or shows that it is being deleted.
//! 5. An object that a write removed, because it was being deleted and has lost its last finalizer, is waited for until the cache
//!    does not show this uid. The response to such a write has the version from before it.

mod selection;
mod wait;

pub use wait::StaleCache;

use kube_informer::{Kind, ObjectKey, ResourceVersion, SharedInformer, Uid};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// The writes of all keys of a controller that its caches do not show yet.
pub(crate) struct Barrier {
    caches: Vec<SharedInformer<Value>>,
    /// Held for one lookup or change.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In the order of the writes. Invariant: no list is empty.
    pending: HashMap<ObjectKey, Vec<Pending>>,
    next_id: u64,
}

/// An effect that one cache does not show yet.
#[derive(Debug, Clone)]
struct Pending {
    id: u64,
    /// Index of the cache.
    cache: usize,
    kind: Kind,
    key: ObjectKey,
    expected: Expected,
}

/// The state that a cache has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    /// The outcome of the write is unknown: what the server shows.
    ServerState,
    /// This version of the object, or something later.
    Version(ResourceVersion),
    /// No version of the object older than this one, which the cache does not include.
    Excluded(ResourceVersion),
    /// Not this uid, unless it is being deleted.
    Deleted(Uid),
    /// Not this uid.
    Removed(Uid),
}

impl Barrier {
    pub(crate) fn new(caches: Vec<SharedInformer<Value>>) -> Arc<Self> {
        Arc::new(Self { caches, state: Mutex::default() })
    }

    /// Whether `owner` has writes that caches may not show.
    pub(crate) fn is_pending(&self, owner: &ObjectKey) -> bool {
        lock(&self.state).pending.contains_key(owner)
    }

    /// Remembers a write of an object that is about to be sent by the reconcile of `owner`.
    pub(crate) fn begin(self: &Arc<Self>, owner: &ObjectKey, kind: &Kind, key: &ObjectKey) -> Ticket {
        let ids = self.add(owner, kind, key, |_| Expected::ServerState);
        let (owner, kind, key) = (owner.clone(), kind.clone(), key.clone());
        Ticket { barrier: Arc::clone(self), owner, kind, key, ids }
    }

    /// Adds an effect for each cache of the kind.
    fn add(
        &self,
        owner: &ObjectKey,
        kind: &Kind,
        key: &ObjectKey,
        expected: impl Fn(&SharedInformer<Value>) -> Expected,
    ) -> Vec<u64> {
        // The server names the object: nothing is known before its response.
        if key.name().is_empty() {
            return Vec::new();
        }
        let caches = self.caches.iter().enumerate().filter(|(_, cache)| is_resource(cache.kind(), kind));
        let expected: Vec<_> = caches.map(|(index, cache)| (index, expected(cache))).collect();
        let mut state = lock(&self.state);
        let mut ids = Vec::new();
        for (cache, expected) in expected {
            let id = state.next_id;
            state.next_id += 1;
            ids.push(id);
            let pending = state.pending.entry(owner.clone()).or_default();
            if matches!(expected, Expected::Version(_)) {
                // A later version implies the earlier one.
                pending.retain(|known| {
                    !(known.cache == cache
                        && known.key == *key
                        && matches!(known.expected, Expected::Version(_)))
                });
            }
            pending.push(Pending { id, cache, kind: kind.clone(), key: key.clone(), expected });
        }
        ids
    }

    /// Gives up to wait for the writes of `owner`.
    pub(crate) fn forget(&self, owner: &ObjectKey) {
        lock(&self.state).pending.remove(owner);
    }

    fn first(&self, owner: &ObjectKey) -> Option<Pending> {
        lock(&self.state).pending.get(owner).and_then(|pending| pending.first().cloned())
    }

    fn remove(&self, owner: &ObjectKey, ids: &[u64]) {
        let mut state = lock(&self.state);
        if let Some(pending) = state.pending.get_mut(owner) {
            pending.retain(|entry| !ids.contains(&entry.id));
            if pending.is_empty() {
                state.pending.remove(owner);
            }
        }
    }
}

/// Whether two kinds are one resource, in whichever version.
fn is_resource(a: &Kind, b: &Kind) -> bool {
    (&a.group, &a.plural) == (&b.group, &b.plural)
}

/// A write that is remembered. It has an unknown outcome until it is settled.
#[must_use = "a write has an unknown outcome until it is settled"]
pub(crate) struct Ticket {
    barrier: Arc<Barrier>,
    owner: ObjectKey,
    kind: Kind,
    key: ObjectKey,
    ids: Vec<u64>,
}

impl Ticket {
    /// The write did not change anything.
    pub(crate) fn settle_unchanged(&mut self) {
        self.barrier.remove(&self.owner, &std::mem::take(&mut self.ids));
    }

    /// The server responded with the object as it is after the write.
    pub(crate) fn settle_written(&mut self, object: &Value) {
        let Some((key, version)) = identity(object) else { return };
        if is_removed(object) {
            let uid = Uid::from(object["metadata"]["uid"].as_str().unwrap_or_default());
            self.barrier.add(&self.owner, &self.kind, &key, |_| Expected::Removed(uid));
            return self.settle_unchanged();
        }
        let expected = |cache: &SharedInformer<Value>| expected(cache, object, &version);
        self.barrier.add(&self.owner, &self.kind, &key, expected);
        self.settle_unchanged();
    }

    /// The object with this uid was deleted, or is being deleted.
    pub(crate) fn settle_deleted(&mut self, uid: Uid) {
        self.barrier.add(&self.owner, &self.kind, &self.key, |_| Expected::Deleted(uid));
        self.settle_unchanged();
    }
}

/// Key and version of an object of the server; `None` if it has none, so that its outcome stays unknown.
fn identity(object: &Value) -> Option<(ObjectKey, ResourceVersion)> {
    let meta = &object["metadata"];
    let name = meta["name"].as_str()?;
    let version = ResourceVersion::from(meta["resourceVersion"].as_str()?);
    Some((ObjectKey::new(meta["namespace"].as_str(), name), version))
}

/// Whether the server removed an object with the write whose response it is: it was being deleted, and nothing keeps it any more.
fn is_removed(object: &Value) -> bool {
    let meta = &object["metadata"];
    let kept = meta["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty());
    // A pod ends first.
    let ending = meta["deletionGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds > 0);
    !meta["deletionTimestamp"].is_null() && !kept && !ending
}

/// The state that a cache has to show after a write that left `object`.
fn expected(cache: &SharedInformer<Value>, object: &Value, version: &ResourceVersion) -> Expected {
    match selection::includes(cache, object) {
        true => Expected::Version(version.clone()),
        false => Expected::Excluded(version.clone()),
    }
}
