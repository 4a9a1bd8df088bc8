//! Highest priority first, first in first out within a priority, and nobody waits for ever.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::Hash;

use hashbrown::HashMap;

use super::{Hasher, Ticket, hash_of};
use crate::priority::Priority;

/// Queued keys by priority.
///
/// Every `oldest_every`-th take serves the key that arrived first, whatever its priority. A key with `m`
/// older keys before it is therefore taken within `oldest_every * (m + 1)` takes.
pub(super) struct Ranked<K> {
    /// All queued keys in the order of taking: priority, then arrival.
    by_rank: BTreeMap<(Reverse<Priority>, Arrival), Waiting<K>>,
    /// The same keys by arrival.
    by_age: BTreeMap<Arrival, Priority>,
    /// Where each queued key stands in the two maps.
    places: HashMap<K, (Priority, Arrival), Hasher>,
    arrivals: Arrival,
    takes: u32,
    oldest_every: u32,
}

type Arrival = u64;

struct Waiting<K> {
    key: K,
    since: u64,
}

impl<K: Clone + Eq + Hash> Ranked<K> {
    pub(super) fn new(hasher: Hasher, oldest_every: u32) -> Self {
        Self {
            by_rank: BTreeMap::new(),
            by_age: BTreeMap::new(),
            places: HashMap::with_hasher(hasher),
            arrivals: 0,
            takes: 0,
            oldest_every,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn push(&mut self, ticket: Ticket<K>) -> bool {
        match self.places.get_mut(&ticket.key) {
            Some((priority, arrival)) => {
                if ticket.priority > *priority {
                    let old = std::mem::replace(priority, ticket.priority);
                    let arrival = *arrival;
                    self.lift(old, ticket.priority, arrival);
                }
                false
            }
            None => {
                let arrival = self.arrivals;
                self.arrivals += 1;
                self.places.insert(ticket.key.clone(), (ticket.priority, arrival));
                self.by_age.insert(arrival, ticket.priority);
                let waiting = Waiting { key: ticket.key, since: ticket.since };
                self.by_rank.insert((Reverse(ticket.priority), arrival), waiting);
                true
            }
        }
    }

    pub(super) fn pop(&mut self, hasher: &Hasher) -> Option<Ticket<K>> {
        let rank = self.next()?;
        let (Reverse(priority), arrival) = rank;
        let Waiting { key, since } = self.by_rank.remove(&rank)?;
        self.by_age.remove(&arrival);
        self.places.remove(&key);
        Some(Ticket { hash: hash_of(hasher, &key), key, priority, since })
    }

    fn next(&mut self) -> Option<(Reverse<Priority>, Arrival)> {
        if self.places.is_empty() {
            return None;
        }
        self.takes = self.takes.wrapping_add(1);
        if self.takes.is_multiple_of(self.oldest_every) {
            self.by_age.first_key_value().map(|(&arrival, &priority)| (Reverse(priority), arrival))
        } else {
            self.by_rank.first_key_value().map(|(&rank, _)| rank)
        }
    }

    /// Moves a key up; it keeps its arrival, so it stands where it would had it come with that priority.
    fn lift(&mut self, old: Priority, new: Priority, arrival: Arrival) {
        if let Some(waiting) = self.by_rank.remove(&(Reverse(old), arrival)) {
            self.by_rank.insert((Reverse(new), arrival), waiting);
            self.by_age.insert(arrival, new);
        }
    }
}
