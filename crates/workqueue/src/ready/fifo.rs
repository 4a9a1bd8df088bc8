//! First in, first out, each key once.

use std::collections::VecDeque;

use super::{Ticket, narrow, widen};
use crate::index::Index;
use crate::priority::Priority;

/// Capacity below which memory is never given back.
const KEEP: usize = 1024;

/// A queue of distinct keys, built to be small: each key is stored once, in line, and the table that finds
/// it holds only its 4-byte place number.
pub(super) struct Fifo<K> {
    /// Queued keys, oldest first. The key at position `i` has place number `head + i`.
    keys: VecDeque<K>,
    /// The narrow hash of each key of `keys`.
    hashes: VecDeque<u32>,
    /// Place number of the front of `keys`; wraps around.
    head: u32,
    /// Place number of each key of `keys`, found by the key's hash.
    places: Index,
    /// When each key of `keys` was added, or `None` if nobody measures.
    times: Option<VecDeque<u64>>,
}

impl<K: Eq> Fifo<K> {
    pub(super) fn new(keep_times: bool) -> Self {
        Self {
            keys: VecDeque::new(),
            hashes: VecDeque::new(),
            head: 0,
            places: Index::new(),
            times: keep_times.then(VecDeque::new),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn push(&mut self, ticket: Ticket<K>) -> bool {
        let at = |place: u32| &self.keys[place.wrapping_sub(self.head) as usize];
        if self.places.find(ticket.hash, |place| *at(place) == ticket.key).is_some() {
            return false;
        }
        let place =
            self.head.wrapping_add(u32::try_from(self.keys.len()).expect("fewer than 2^32 queued keys"));
        self.places.insert(ticket.hash, place, hash_at(self.head, &self.hashes));
        self.keys.push_back(ticket.key);
        self.hashes.push_back(narrow(ticket.hash));
        if let Some(times) = &mut self.times {
            times.push_back(ticket.since);
        }
        true
    }

    pub(super) fn pop(&mut self) -> Option<Ticket<K>> {
        let key = self.keys.pop_front()?;
        let hash = widen(self.hashes.pop_front()?);
        self.places.remove(hash, self.head);
        self.head = self.head.wrapping_add(1);
        let since = self.times.as_mut().and_then(VecDeque::pop_front).unwrap_or(0);
        self.give_back_memory();
        Some(Ticket { key, hash, priority: Priority::default(), since })
    }

    /// A burst must not pin its memory for ever.
    fn give_back_memory(&mut self) {
        if self.keys.capacity() <= KEEP || self.keys.len() > self.keys.capacity() / 8 {
            return;
        }
        let room = self.keys.len() * 2;
        self.keys.shrink_to(room);
        self.hashes.shrink_to(room);
        if let Some(times) = &mut self.times {
            times.shrink_to(room);
        }
        self.places.shrink(hash_at(self.head, &self.hashes));
    }
}

/// The hash of the key at a place number.
fn hash_at(head: u32, hashes: &VecDeque<u32>) -> impl Fn(u32) -> u64 {
    move |place| widen(hashes[place.wrapping_sub(head) as usize])
}
