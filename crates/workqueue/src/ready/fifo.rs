//! First-in, first-out queue of distinct keys.

use std::collections::VecDeque;
use std::hash::Hash;

use super::places::{Claim, Live, Places};
use super::{Hasher, Push, Ticket, hash_of};
use crate::discarded::Discarded;
use crate::priority::Priority;

/// Capacity up to which memory is kept.
const KEEP: usize = 1024;

/// A compact queue of distinct keys: each key is stored once, in line. The table that finds it stores four bytes of its
/// hash and its place number.
pub(super) struct Fifo<K> {
    /// Queued keys, oldest first. The key at position `i` has place number `head + i`.
    keys: VecDeque<K>,
    /// Place number of the first key; wraps around.
    head: u32,
    /// Place numbers by hash.
    places: Places,
    /// When each key of `keys` was added; `None` without metrics.
    times: Option<VecDeque<u64>>,
}

impl<K: Eq + Hash> Fifo<K> {
    pub(super) fn new(keep_times: bool) -> Self {
        Self { keys: VecDeque::new(), head: 0, places: Places::new(), times: keep_times.then(VecDeque::new) }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn push(&mut self, ticket: Ticket<K>, discarded: &mut Discarded<K>) -> Push {
        let live = self.live();
        let place = live.head.wrapping_add(live.len);
        let at = |place: u32| &self.keys[place.wrapping_sub(live.head) as usize];
        let push = match self.places.claim(ticket.hash, place, live, |place| *at(place) == ticket.key) {
            Claim::Duplicate => {
                discarded.push(ticket.key);
                return Push::Duplicate;
            }
            Claim::Recorded => Push::New,
            Claim::Crowded => Push::Crowded,
        };
        self.keys.push_back(ticket.key);
        if let Some(times) = &mut self.times {
            times.push_back(ticket.since);
        }
        push
    }

    pub(super) fn pop(&mut self, hasher: &Hasher) -> Option<Ticket<K>> {
        let key = self.keys.pop_front()?;
        self.head = self.head.wrapping_add(1);
        let since = self.times.as_mut().and_then(VecDeque::pop_front).unwrap_or(0);
        if self.keys.capacity() > KEEP && self.keys.len() <= self.keys.capacity() / 8 {
            self.shrink();
        }
        // The worker is about to read the key anyway, so hashing it again is cheaper than storing the hash of each key.
        let hash = hash_of(hasher, &key);
        Some(Ticket { key, hash, priority: Priority::default(), since })
    }

    fn live(&self) -> Live {
        let len = u32::try_from(self.keys.len()).expect("fewer than 2^32 queued keys");
        Live { head: self.head, len }
    }

    /// Releases the memory of a burst.
    #[cold]
    fn shrink(&mut self) {
        let room = self.keys.len() * 2;
        self.keys.shrink_to(room);
        if let Some(times) = &mut self.times {
            times.shrink_to(room);
        }
        self.places.shrink(self.live());
    }
}
