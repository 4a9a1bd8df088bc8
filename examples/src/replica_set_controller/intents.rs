//! Names of pods whose creation was begun.
//!
//! A cache is always a little behind, and an answer can get lost after the server has done what it was asked. A
//! controller that counts pods in its cache and creates what is missing under names that the server makes up will therefore,
//! sooner or later, make one too many. So every pod gets its name here *before* it is asked for, and the name stays on the
//! list until the cache shows the pod. As long as it is on the list, the same name is asked for again, which the server grants once.

use k8s_openapi::api::apps::v1::ReplicaSet;
use kube_informer::{Object, Uid};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Letters of generated names, as the server chooses them: no vowels, so that no words come up.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;

/// Creations that were begun and are not in the cache yet, by the uid of their set.
#[derive(Debug)]
pub(super) struct Intents(Mutex<State>);

#[derive(Debug)]
struct State {
    rng: fastrand::Rng,
    /// Invariant: no empty lists, so that sets that are gone leave nothing behind.
    pending: BTreeMap<Uid, Vec<String>>,
}

impl Intents {
    pub(super) fn new(seed: u64) -> Self {
        Self(Mutex::new(State { rng: fastrand::Rng::with_seed(seed), pending: BTreeMap::new() }))
    }

    /// The names whose fate is not known.
    pub(super) fn pending(&self, set: &Uid) -> Vec<String> {
        self.lock().pending.get(set).cloned().unwrap_or_default()
    }

    /// Names for `count` pods that are missing: those already on the list first. From here on they are on it; what is on it
    /// beyond `count` is no longer wanted and taken off.
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

    /// The cache shows the pod.
    pub(super) fn settled(&self, set: &Uid, name: &str) {
        let pending = &mut self.lock().pending;
        if let Some(names) = pending.get_mut(set) {
            names.retain(|candidate| candidate != name);
            if names.is_empty() {
                pending.remove(set);
            }
        }
    }

    /// No pod is missing.
    pub(super) fn drop_all(&self, set: &Uid) {
        self.lock().pending.remove(set);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
