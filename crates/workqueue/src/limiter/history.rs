//! Who failed how often, lately.

use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;
use tokio::time::Instant;

use crate::ready::Hasher;
use crate::sync::{Mutex, lock};
use crate::time;

/// Failure counts per key, bounded in time: a count that is not raised for the lifetime is gone after at
/// most twice that.
///
/// Two generations instead of a timestamp per key: the older one is dropped as a whole when it is a lifetime
/// old, so expiry costs nothing per key and needs no sweep.
pub(super) struct FailureHistory<K> {
    generations: Mutex<Generations<K>>,
    lifetime: Duration,
}

struct Generations<K> {
    /// Keys that failed since `since`.
    young: HashMap<K, u32, Hasher>,
    /// Keys that failed last in the lifetime before `since`; disjoint from `young`.
    old: HashMap<K, u32, Hasher>,
    since: Instant,
}

impl<K: Clone + Eq + Hash> FailureHistory<K> {
    pub(super) fn new(lifetime: Duration) -> Self {
        let hasher = Hasher::default();
        let (young, old) = (HashMap::with_hasher(hasher.clone()), HashMap::with_hasher(hasher));
        Self { generations: Mutex::new(Generations { young, old, since: time::now() }), lifetime }
    }

    /// Records a failure and says how many there were before.
    pub(super) fn record(&self, key: &K) -> u32 {
        let mut generations = lock(&self.generations);
        generations.turn(time::now(), self.lifetime);
        let Generations { young, old, .. } = &mut *generations;
        let failures = young.entry_ref(key).or_insert_with(|| old.remove(key).unwrap_or(0));
        let before = *failures;
        *failures = before.saturating_add(1);
        before
    }

    pub(super) fn forget(&self, key: &K) {
        let mut generations = lock(&self.generations);
        if generations.young.remove(key).is_none() {
            generations.old.remove(key);
        }
    }

    pub(super) fn count(&self, key: &K) -> u32 {
        let mut generations = lock(&self.generations);
        generations.turn(time::now(), self.lifetime);
        let Generations { young, old, .. } = &*generations;
        young.get(key).or_else(|| old.get(key)).copied().unwrap_or(0)
    }
}

impl<K> Generations<K> {
    fn turn(&mut self, now: Instant, lifetime: Duration) {
        let age = now.saturating_duration_since(self.since);
        if age < lifetime {
            return;
        }
        let hasher = self.young.hasher().clone();
        let young = std::mem::replace(&mut self.young, HashMap::with_hasher(hasher.clone()));
        let recent = age < lifetime.saturating_mul(2);
        self.old = if recent { young } else { HashMap::with_hasher(hasher) };
        self.since = now;
    }
}
