//! First in, first out, each key once.

use std::collections::VecDeque;
use std::hash::Hash;

use hashbrown::HashTable;

use super::{Hasher, Ticket, hash_of};
use crate::priority::Priority;

/// Capacity below which memory is never given back.
const KEEP: usize = 1024;

/// A queue of distinct keys, built to be small: each key is stored once, in line, and the table that finds
/// it holds only its 4-byte place number.
pub(super) struct Fifo<K> {
    /// Queued keys, oldest first. The key at position `i` has place number `head + i`.
    keys: VecDeque<K>,
    /// Place number of the front of `keys`; wraps around.
    head: u32,
    /// Place number of each key of `keys`, found by the key's hash.
    places: HashTable<u32>,
    /// When each key of `keys` was added, or `None` if nobody measures.
    times: Option<VecDeque<u64>>,
}

impl<K: Eq + Hash> Fifo<K> {
    pub(super) fn new(keep_times: bool) -> Self {
        Self {
            keys: VecDeque::new(),
            head: 0,
            places: HashTable::new(),
            times: keep_times.then(VecDeque::new),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn push(&mut self, ticket: Ticket<K>, hasher: &Hasher) -> bool {
        let (head, keys) = (self.head, &self.keys);
        let at = |place: u32| &keys[place.wrapping_sub(head) as usize];
        if self.places.find(ticket.hash, |&place| *at(place) == ticket.key).is_some() {
            return false;
        }
        if self.places.len() == self.places.capacity() {
            self.rebuild(self.keys.len() * 2, hasher);
        }
        let place =
            self.head.wrapping_add(u32::try_from(self.keys.len()).expect("fewer than 2^32 queued keys"));
        let (head, keys) = (self.head, &self.keys);
        let at = |place: u32| &keys[place.wrapping_sub(head) as usize];
        self.places.insert_unique(ticket.hash, place, |&place| hash_of(hasher, at(place)));
        self.keys.push_back(ticket.key);
        if let Some(times) = &mut self.times {
            times.push_back(ticket.since);
        }
        true
    }

    pub(super) fn pop(&mut self, hasher: &Hasher) -> Option<Ticket<K>> {
        let key = self.keys.pop_front()?;
        let hash = hash_of(hasher, &key);
        let front = self.head;
        if let Ok(entry) = self.places.find_entry(hash, |&place| place == front) {
            entry.remove();
        }
        self.head = self.head.wrapping_add(1);
        let since = self.times.as_mut().and_then(VecDeque::pop_front).unwrap_or(0);
        self.give_back_memory(hasher);
        Some(Ticket { key, hash, priority: Priority::default(), since })
    }

    /// Makes a table of the given capacity, walking the keys in line: far kinder to the processor's cache
    /// than growing in table order, which visits the keys at random.
    fn rebuild(&mut self, capacity: usize, hasher: &Hasher) {
        let mut places = HashTable::with_capacity(capacity.max(8));
        for (place, key) in (self.head..=u32::MAX).chain(0..).zip(&self.keys) {
            let hash = hash_of(hasher, key);
            places.insert_unique(hash, place, |_| hash);
        }
        self.places = places;
    }

    /// A burst must not pin its memory for ever.
    fn give_back_memory(&mut self, hasher: &Hasher) {
        if self.keys.capacity() <= KEEP || self.keys.len() > self.keys.capacity() / 8 {
            return;
        }
        let room = self.keys.len() * 2;
        self.keys.shrink_to(room);
        if let Some(times) = &mut self.times {
            times.shrink_to(room);
        }
        self.rebuild(room, hasher);
    }
}
