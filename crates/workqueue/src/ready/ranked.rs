//! Queue of distinct keys with priorities.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{Push, Ticket};
use crate::crowd::{Crowd, Order};
use crate::discarded::Discarded;
use crate::index::{Index, Lookup};
use crate::panics;
use crate::priority::Priority;

/// Number of slots up to which memory is kept.
const KEEP: usize = 1024;

/// Queued keys: highest priority first, first in, first out within a priority. Each key is stored once.
pub(super) struct Ranked<K> {
    /// Slots in the order of taking: priority, then arrival.
    by_rank: BTreeMap<(Reverse<Priority>, Arrival), u32>,
    /// Slots by arrival.
    by_age: BTreeMap<Arrival, u32>,
    slots: Vec<Option<Slot<K>>>,
    /// Free slots.
    free: Vec<u32>,
    /// Slots by hash.
    index: Index,
    /// Slots of keys that `index` does not take.
    crowd: Crowd<K>,
    next_arrival: Arrival,
}

/// Orders keys by when they were first added.
pub(super) type Arrival = u64;

/// Arrivals of keys that were queued before this queue was used are below this.
const FIRST_ARRIVAL: Arrival = 1 << 32;

struct Slot<K> {
    ticket: Ticket<K>,
    arrival: Arrival,
}

impl<K: Eq> Ranked<K> {
    pub(super) fn new(order: Option<Order<K>>) -> Self {
        Self {
            by_rank: BTreeMap::new(),
            by_age: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            index: Index::new(),
            crowd: Crowd::new(order),
            next_arrival: FIRST_ARRIVAL,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_rank.len()
    }

    /// Queues a key. A key that is queued already keeps its arrival, and moves up to a higher priority.
    pub(super) fn push(&mut self, ticket: Ticket<K>, discarded: &mut Discarded<K>) -> Push {
        let found = self.find(ticket.hash, &ticket.key);
        if let Lookup::Found(number) = found {
            self.raise(number, ticket.priority);
            discarded.push(ticket.key);
            return Push::Duplicate;
        }
        let arrival = self.next_arrival;
        self.next_arrival += 1;
        if self.insert(ticket, arrival, matches!(found, Lookup::Absent)) { Push::New } else { Push::Crowded }
    }

    /// Queues a key that arrived before all keys that were pushed here.
    pub(super) fn push_older(&mut self, ticket: Ticket<K>, arrival: Arrival) {
        let absent = matches!(self.find(ticket.hash, &ticket.key), Lookup::Absent);
        self.insert(ticket, arrival, absent);
    }

    /// Priority of the key that is taken next.
    pub(super) fn first_priority(&self) -> Option<Priority> {
        self.by_rank.first_key_value().map(|((Reverse(priority), _), _)| *priority)
    }

    /// Arrival of the oldest key.
    pub(super) fn first_arrival(&self) -> Option<Arrival> {
        self.by_age.first_key_value().map(|(arrival, _)| *arrival)
    }

    /// Takes the key with the highest priority.
    pub(super) fn pop(&mut self) -> Option<Ticket<K>> {
        let (_, number) = self.by_rank.first_key_value()?;
        self.remove(*number)
    }

    /// Takes the oldest key.
    pub(super) fn pop_oldest(&mut self) -> Option<Ticket<K>> {
        let (_, number) = self.by_age.first_key_value()?;
        self.remove(*number)
    }

    fn find(&self, hash: u32, key: &K) -> Lookup {
        if let Some(number) = self.crowd.find(key, |number| self.key(number)) {
            return Lookup::Found(number);
        }
        let matches =
            |number: u32| self.slot(number).is_some_and(|slot| panics::equal(&slot.ticket.key, key));
        self.index.find(hash, |number| self.hash(number), matches)
    }

    fn slot(&self, number: u32) -> Option<&Slot<K>> {
        self.slots[number as usize].as_ref()
    }

    fn key(&self, number: u32) -> Option<&K> {
        self.slot(number).map(|slot| &slot.ticket.key)
    }

    fn hash(&self, number: u32) -> u32 {
        self.slot(number).map_or(0, |slot| slot.ticket.hash)
    }

    /// Inserts a key that is absent, into the index if that takes it. Returns whether it can be found.
    fn insert(&mut self, ticket: Ticket<K>, arrival: Arrival, indexed: bool) -> bool {
        let (hash, priority) = (ticket.hash, ticket.priority);
        let slot = Some(Slot { ticket, arrival });
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 queued keys")
            }
        };
        self.by_age.insert(arrival, number);
        self.by_rank.insert((Reverse(priority), arrival), number);
        if indexed {
            let slots = &self.slots;
            let hash_of = |number: u32| slots[number as usize].as_ref().map_or(0, |slot| slot.ticket.hash);
            self.index.insert(hash, number, hash_of);
            return true;
        }
        let slots = &self.slots;
        let key_of = |number: u32| slots[number as usize].as_ref().map(|slot| &slot.ticket.key);
        key_of(number).is_some_and(|key| self.crowd.insert(number, key, key_of))
    }

    fn remove(&mut self, number: u32) -> Option<Ticket<K>> {
        let slots = &self.slots;
        self.crowd.remove(number, |number| slots[number as usize].as_ref().map(|slot| &slot.ticket.key));
        let Slot { ticket, arrival } = self.slots[number as usize].take()?;
        self.by_rank.remove(&(Reverse(ticket.priority), arrival));
        self.by_age.remove(&arrival);
        self.index.remove(ticket.hash, number);
        if self.by_rank.is_empty() && self.slots.len() > KEEP {
            *self = Self { next_arrival: self.next_arrival, ..Self::new(self.crowd.order()) };
        } else {
            self.free.push(number);
        }
        Some(ticket)
    }

    /// Moves a key up. It keeps its arrival, as if it had been added with the new priority.
    fn raise(&mut self, number: u32, priority: Priority) {
        let Some(Slot { ticket, arrival }) = &mut self.slots[number as usize] else { return };
        if priority > ticket.priority {
            self.by_rank.remove(&(Reverse(ticket.priority), *arrival));
            self.by_rank.insert((Reverse(priority), *arrival), number);
            ticket.priority = priority;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_burst_is_released_with_its_last_key() {
        for (keys, released) in [(KEEP, false), (KEEP + 1, true), (2 * KEEP, true)] {
            let mut ranked = Ranked::new(None);
            for key in 0..keys as u32 {
                let ticket = Ticket { key, hash: key, priority: Priority::HIGH, since: 0 };
                assert!(matches!(ranked.push(ticket, &mut Discarded::default()), Push::New));
            }
            while ranked.pop().is_some() {}
            assert_eq!((ranked.len(), ranked.slots.capacity() == 0), (0, released), "{keys} keys");
        }
    }
}
