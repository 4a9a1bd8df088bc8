//! Names of pods that are being created.
//!
//! A cache lags behind, and a response can get lost after the server has created an object. A controller that counts the
//! pods in its cache, and creates missing ones with `generateName`, therefore creates too many sooner or later. So every pod
//! gets its name here *before* the create request, and the name stays in the list until the cache shows the pod. Until then
//! the controller uses the same name again, which the server accepts only once.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube_informer::{Object, Uid};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The letters that Kubernetes uses in generated names.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;

/// Names of pods that the cache does not show yet, by the uid of their set.
#[derive(Debug)]
pub(super) struct Intents(Mutex<State>);

#[derive(Debug)]
struct State {
    rng: fastrand::Rng,
    /// Invariant: no list is empty, so deleted sets leave no entry.
    pending: BTreeMap<Uid, Vec<String>>,
}

impl Intents {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(State { rng: fastrand::Rng::with_seed(seed), pending: BTreeMap::new() }))
    }

    /// Names of pods that may or may not exist.
    pub(super) fn pending(&self, set: &Uid) -> Vec<String> {
        self.lock().pending.get(set).cloned().unwrap_or_default()
    }

    /// Returns names for `count` missing pods, pending ones first. They are pending from now on; pending names beyond
    /// `count` are removed.
    pub(super) fn names(&self, set: &Object<ReplicaSet>, count: usize) -> Vec<String> {
        let State { rng, pending } = &mut *self.lock();
        let names = pending.entry(set.uid()).or_default();
        names.truncate(count);
        while names.len() < count {
            let suffix: String =
                (0..SUFFIX).map(|_| char::from(LETTERS[rng.usize(..LETTERS.len())])).collect();
            names.push(format!("{}-{suffix}", set.name()));
        }
        names.clone()
    }

    /// Removes a name, because the cache shows the pod.
    pub(super) fn settled(&self, set: &Uid, name: &str) {
        let pending = &mut self.lock().pending;
        if let Some(names) = pending.get_mut(set) {
            names.retain(|candidate| candidate != name);
            if names.is_empty() {
                pending.remove(set);
            }
        }
    }

    /// Removes all names of a set, because no pod is missing.
    pub(super) fn drop_all(&self, set: &Uid) {
        self.lock().pending.remove(set);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
