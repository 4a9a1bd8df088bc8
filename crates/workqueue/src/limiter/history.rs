//! Failure counts of keys.

use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashTable;
use tokio::time::Instant;

use crate::MAX_KEYS_PER_HASH;
use crate::panics;
use crate::ready::{Hasher, hash_of, widen};
use crate::sync::{Mutex, lock};
use crate::time;

/// Failure counts per key. A count stays until it is forgotten. With a lifetime, a count that does not change for that
/// long expires, after at most twice the lifetime.
///
/// Expiry uses two generations instead of a timestamp per key: the older one is dropped as a whole when it is a lifetime
/// old, so expiry costs nothing per key.
pub(super) struct FailureHistory<K> {
    generations: Mutex<Generations<K>>,
    hasher: Hasher,
    lifetime: Option<Duration>,
}

struct Generations<K> {
    /// Keys that failed since `since`.
    young: Counts<K>,
    /// Keys that failed last in the lifetime before `since`; disjoint from `young`.
    old: Counts<K>,
    since: Instant,
}

impl<K: Clone + Eq + Hash> FailureHistory<K> {
    pub(super) fn new(lifetime: Option<Duration>) -> Self {
        let generations = Generations { young: Counts::new(), old: Counts::new(), since: time::now() };
        Self { generations: Mutex::new(generations), hasher: Hasher::default(), lifetime }
    }

    /// Records a failure, and returns the number of failures before it.
    pub(super) fn record(&self, key: &K) -> u32 {
        let hash = hash_of(&self.hasher, key);
        let (known, expired) = self.with_current(|generations| generations.young.increment(hash, key));
        drop(expired);
        if let Some(before) = known {
            return before;
        }
        // Cloned, and dropped, without the lock: both may run code of the user.
        let copy = key.clone();
        let ((before, removed), expired) = self.with_current(|generations| generations.insert(hash, copy));
        drop((removed, expired));
        before
    }

    pub(super) fn forget(&self, key: &K) {
        let hash = hash_of(&self.hasher, key);
        let removed = {
            let mut generations = lock(&self.generations);
            let Generations { young, old, .. } = &mut *generations;
            young.remove(hash, key).or_else(|| old.remove(hash, key))
        };
        drop(removed);
    }

    pub(super) fn count(&self, key: &K) -> u32 {
        let hash = hash_of(&self.hasher, key);
        let count = |generations: &mut Generations<K>| {
            let Generations { young, old, .. } = generations;
            young.get(hash, key).or_else(|| old.get(hash, key)).unwrap_or(0)
        };
        let (count, expired) = self.with_current(count);
        drop(expired);
        count
    }

    /// Runs an operation under the lock, after expiry. The caller drops the expired counts.
    fn with_current<R>(&self, operation: impl FnOnce(&mut Generations<K>) -> R) -> (R, Expired<K>) {
        let mut generations = lock(&self.generations);
        let expired = self.lifetime.map(|lifetime| generations.expire(time::now(), lifetime));
        (operation(&mut generations), expired.unwrap_or_default())
    }
}

/// Tables that were dropped as a whole.
type Expired<K> = [Option<Counts<K>>; 2];

impl<K> Generations<K> {
    fn expire(&mut self, now: Instant, lifetime: Duration) -> Expired<K> {
        let age = now.saturating_duration_since(self.since);
        if age < lifetime {
            return [None, None];
        }
        self.since = now;
        let young = std::mem::replace(&mut self.young, Counts::new());
        if age < lifetime.saturating_mul(2) {
            [Some(std::mem::replace(&mut self.old, young)), None]
        } else {
            [Some(young), Some(std::mem::replace(&mut self.old, Counts::new()))]
        }
    }
}

impl<K: Eq> Generations<K> {
    /// Counts a failure of a key that may be in either generation, and returns the number before it, with the keys to be
    /// dropped without the lock.
    fn insert(&mut self, hash: u32, key: K) -> (u32, [Option<K>; 2]) {
        if let Some(before) = self.young.increment(hash, &key) {
            return (before, [Some(key), None]);
        }
        let old = self.old.remove(hash, &key);
        let (before, old_key) = old.map_or((0, None), |old| (old.failures, old.key));
        (before, [self.young.insert(hash, key, before.saturating_add(1)), old_key])
    }
}

/// Counts by key. At most [`MAX_KEYS_PER_HASH`] keys of one hash have a count of their own; further ones share a count.
struct Counts<K>(HashTable<Count<K>>);

struct Count<K> {
    /// `None` for the shared count of a hash.
    key: Option<K>,
    hash: u32,
    failures: u32,
}

impl<K> Counts<K> {
    fn new() -> Self {
        Self(HashTable::new())
    }
}

impl<K: Eq> Counts<K> {
    fn get(&self, hash: u32, key: &K) -> Option<u32> {
        let own = self.0.find(widen(hash), |count| count.is_of(hash, key));
        let count = own.or_else(|| self.0.find(widen(hash), |count| count.is_shared(hash)));
        count.map(|count| count.failures)
    }

    /// Adds one to the count of a key, and returns it as it was before.
    fn increment(&mut self, hash: u32, key: &K) -> Option<u32> {
        let count = match self.0.find_entry(widen(hash), |count| count.is_of(hash, key)) {
            Ok(own) => own.into_mut(),
            Err(absent) => absent.into_table().find_mut(widen(hash), |count| count.is_shared(hash))?,
        };
        let before = count.failures;
        count.failures = before.saturating_add(1);
        Some(before)
    }

    /// Inserts a count for a key that has none. Returns the key if its count is shared.
    fn insert(&mut self, hash: u32, key: K, failures: u32) -> Option<K> {
        let of_hash = self.0.iter_hash(widen(hash)).filter(|count| count.hash == hash).count();
        let (own, rest) = if of_hash < MAX_KEYS_PER_HASH { (Some(key), None) } else { (None, Some(key)) };
        let count = Count { key: own, hash, failures };
        self.0.insert_unique(widen(hash), count, |count| widen(count.hash));
        rest
    }

    /// Removes the count of a key, or the shared one if it has none of its own.
    fn remove(&mut self, hash: u32, key: &K) -> Option<Count<K>> {
        let entry = match self.0.find_entry(widen(hash), |count| count.is_of(hash, key)) {
            Ok(own) => own,
            Err(absent) => absent.into_table().find_entry(widen(hash), |count| count.is_shared(hash)).ok()?,
        };
        Some(entry.remove().0)
    }
}

impl<K: Eq> Count<K> {
    fn is_of(&self, hash: u32, key: &K) -> bool {
        self.hash == hash && self.key.as_ref().is_some_and(|own| panics::equal(own, key))
    }

    fn is_shared(&self, hash: u32) -> bool {
        self.hash == hash && self.key.is_none()
    }
}
