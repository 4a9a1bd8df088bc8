//! Queue of distinct keys with priorities.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::Hash;

use hashbrown::HashTable;

use super::{Hasher, Push, Ticket, hash_of, widen};
use crate::MAX_KEYS_PER_HASH;
use crate::discarded::Discarded;
use crate::priority::Priority;

/// Queued keys: highest priority first, first in, first out within a priority.
///
/// Every `oldest_every`-th take serves the key that arrived first, whatever its priority. A key with `m` older keys
/// before it is therefore taken within `oldest_every * (m + 1)` takes.
pub(super) struct Ranked<K> {
    /// All queued keys in the order of taking: priority, then arrival.
    by_rank: BTreeMap<(Reverse<Priority>, Arrival), Queued<K>>,
    /// The same keys by arrival.
    by_age: BTreeMap<Arrival, Priority>,
    /// Place of a key in the two maps, by hash: at most [`MAX_KEYS_PER_HASH`] keys of one hash.
    places: HashTable<Place<K>>,
    arrivals: Arrival,
    takes: u32,
    oldest_every: u32,
}

type Arrival = u64;

struct Queued<K> {
    key: K,
    since: u64,
}

struct Place<K> {
    key: K,
    hash: u32,
    priority: Priority,
    arrival: Arrival,
}

impl<K: Clone + Eq + Hash> Ranked<K> {
    pub(super) fn new(oldest_every: u32) -> Self {
        Self {
            by_rank: BTreeMap::new(),
            by_age: BTreeMap::new(),
            places: HashTable::new(),
            arrivals: 0,
            takes: 0,
            oldest_every,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_rank.len()
    }

    pub(super) fn push(&mut self, ticket: Ticket<K>, discarded: &mut Discarded<K>) -> Push {
        let Ticket { key, hash, priority, since } = ticket;
        let mut compared = 0;
        let found = self.places.find_mut(widen(hash), |place| {
            let same_hash = place.hash == hash;
            compared += usize::from(same_hash);
            same_hash && place.key == key
        });
        if let Some(place) = found {
            if priority > place.priority {
                let old = std::mem::replace(&mut place.priority, priority);
                let arrival = place.arrival;
                self.raise(old, priority, arrival);
            }
            discarded.push(key);
            return Push::Duplicate;
        }
        let arrival = self.arrivals;
        self.arrivals += 1;
        let crowded = compared >= MAX_KEYS_PER_HASH;
        if !crowded {
            let place = Place { key: key.clone(), hash, priority, arrival };
            self.places.insert_unique(widen(hash), place, |place| widen(place.hash));
        }
        self.by_age.insert(arrival, priority);
        self.by_rank.insert((Reverse(priority), arrival), Queued { key, since });
        if crowded { Push::Crowded } else { Push::New }
    }

    pub(super) fn pop(&mut self, hasher: &Hasher, discarded: &mut Discarded<K>) -> Option<Ticket<K>> {
        let rank = self.next()?;
        let (Reverse(priority), arrival) = rank;
        let Queued { key, since } = self.by_rank.remove(&rank)?;
        self.by_age.remove(&arrival);
        let hash = hash_of(hasher, &key);
        if let Ok(place) = self.places.find_entry(widen(hash), |place| place.arrival == arrival) {
            discarded.push(place.remove().0.key);
        }
        Some(Ticket { key, hash, priority, since })
    }

    fn next(&mut self) -> Option<(Reverse<Priority>, Arrival)> {
        if self.by_rank.is_empty() {
            return None;
        }
        self.takes = self.takes.wrapping_add(1);
        if self.takes.is_multiple_of(self.oldest_every) {
            self.by_age.first_key_value().map(|(&arrival, &priority)| (Reverse(priority), arrival))
        } else {
            self.by_rank.first_key_value().map(|(&rank, _)| rank)
        }
    }

    /// Moves a key up. It keeps its arrival, as if it had been added with the new priority.
    fn raise(&mut self, old: Priority, new: Priority, arrival: Arrival) {
        if let Some(queued) = self.by_rank.remove(&(Reverse(old), arrival)) {
            self.by_rank.insert((Reverse(new), arrival), queued);
            self.by_age.insert(arrival, new);
        }
    }
}
