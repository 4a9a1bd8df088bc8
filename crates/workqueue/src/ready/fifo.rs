//! First-in, first-out queue of distinct keys.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;

use super::places::{Claim, Live, Places};
use super::ranked::Arrival;
use super::{Hasher, Push, Ticket, hash_of};
use crate::crowd::{Crowd, Order};
use crate::discarded::Discarded;
use crate::index::Lookup;
use crate::panics;
use crate::priority::Priority;

/// Capacity up to which memory is kept.
const KEEP: usize = 1024;

/// A compact queue of distinct keys: each key is stored once, in line. The table that finds it stores four bytes of its
/// hash and its place number.
pub(super) struct Fifo<K> {
    /// Queued keys, oldest first. The key at position `i` has place number `head + i`. The first one is not removed.
    keys: VecDeque<K>,
    /// Place numbers of keys that were removed from the middle. Their keys are discarded when they come to the front.
    removed: HashSet<u32>,
    /// Place number that counts as the first arrival.
    origin: u32,
    /// Place number of the first key; wraps around.
    head: u32,
    /// Place numbers by hash.
    places: Places,
    /// Place numbers of keys that `places` does not take. None of them is removed.
    crowd: Crowd<K>,
    /// When each key of `keys` was added; `None` without metrics.
    times: Option<VecDeque<u64>>,
}

impl<K: Eq + Hash> Fifo<K> {
    pub(super) fn new(keep_times: bool, order: Option<Order<K>>) -> Self {
        Self {
            keys: VecDeque::new(),
            removed: HashSet::new(),
            origin: 0,
            head: 0,
            places: Places::new(),
            crowd: Crowd::new(order),
            times: keep_times.then(VecDeque::new),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len() - self.removed.len()
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.crowd.order().is_some()
    }

    pub(super) fn push(&mut self, ticket: Ticket<K>, discarded: &mut Discarded<K>) -> Push {
        if self.keys.is_empty() {
            self.origin = self.head;
        }
        let live = self.live();
        let place = live.head.wrapping_add(live.len);
        let key_of = |place: u32| self.keys.get(place.wrapping_sub(live.head) as usize);
        let matches = |place: u32| key_of(place).is_some_and(|other| panics::equal(other, &ticket.key));
        let crowded = self.crowd.find(&ticket.key, key_of).is_some();
        let claim = match crowded {
            true => Claim::Duplicate,
            false => self.places.claim(ticket.hash, place, live, matches),
        };
        let push = match claim {
            Claim::Duplicate => {
                discarded.push(ticket.key);
                return Push::Duplicate;
            }
            Claim::Recorded => Push::New,
            Claim::Crowded if self.crowd.insert(place, &ticket.key, key_of) => Push::New,
            Claim::Crowded => Push::Crowded,
        };
        self.keys.push_back(ticket.key);
        if let Some(times) = &mut self.times {
            times.push_back(ticket.since);
        }
        push
    }

    /// Takes the first key. Keys whose `Hash` panics are discarded.
    pub(super) fn pop(&mut self, hasher: &Hasher, discarded: &mut Discarded<K>) -> Option<Ticket<K>> {
        loop {
            // The worker is about to read the key anyway, so hashing it again is cheaper than storing the hash of each key.
            let front = self.keys.front()?;
            let hash = panics::catch(|| hash_of(hasher, front));
            let (key, since) = self.pop_front()?;
            self.discard_removed(discarded);
            match hash {
                Ok(hash) => return Some(Ticket { key, hash, priority: Priority::default(), since }),
                Err(_) => discarded.push(key),
            }
        }
    }

    /// Finds the place of a key.
    pub(super) fn find(&self, hash: u32, key: &K) -> Lookup {
        if self.keys.is_empty() {
            return Lookup::Absent;
        }
        let live = self.live();
        let key_of = |place: u32| self.keys.get(place.wrapping_sub(live.head) as usize);
        if let Some(place) = self.crowd.find(key, key_of) {
            return Lookup::Found(place);
        }
        let matches = |place: u32| {
            !self.removed.contains(&place) && key_of(place).is_some_and(|other| panics::equal(other, key))
        };
        self.places.find(hash, live, matches)
    }

    /// Arrival of the first key. No key is pushed after the ranked queue is used, so arrivals do not wrap around.
    pub(super) fn first_arrival(&self) -> Option<Arrival> {
        (!self.keys.is_empty()).then(|| self.arrival(self.head))
    }

    /// Removes the key at a place. Returns its arrival, and since when it was queued.
    pub(super) fn remove(&mut self, place: u32, discarded: &mut Discarded<K>) -> (Arrival, u64) {
        let at = place.wrapping_sub(self.head) as usize;
        let since = self.times.as_ref().and_then(|times| times.get(at)).copied().unwrap_or(0);
        self.leave_crowd(place);
        self.removed.insert(place);
        let arrival = self.arrival(place);
        self.discard_removed(discarded);
        (arrival, since)
    }

    fn arrival(&self, place: u32) -> Arrival {
        u64::from(place.wrapping_sub(self.origin))
    }

    /// A key is no longer queued at a place.
    fn leave_crowd(&mut self, place: u32) {
        let (keys, head) = (&self.keys, self.head);
        self.crowd.remove(place, |place| keys.get(place.wrapping_sub(head) as usize));
    }

    fn pop_front(&mut self) -> Option<(K, u64)> {
        self.leave_crowd(self.head);
        let key = self.keys.pop_front()?;
        self.head = self.head.wrapping_add(1);
        let since = self.times.as_mut().and_then(VecDeque::pop_front).unwrap_or(0);
        if self.keys.capacity() > KEEP && self.keys.len() <= self.keys.capacity() / 8 {
            self.shrink();
        }
        Some((key, since))
    }

    /// Discards removed keys that came to the front.
    fn discard_removed(&mut self, discarded: &mut Discarded<K>) {
        while !self.removed.is_empty() && self.removed.remove(&self.head) {
            if let Some((key, _)) = self.pop_front() {
                discarded.push(key);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_burst_is_released_while_it_is_taken() {
        let (hasher, mut discarded) = (Hasher::default(), Discarded::default());
        for keys in [KEEP, 10 * KEEP] {
            let mut fifo = Fifo::new(false, None);
            for key in 0..keys {
                let hash = hash_of(&hasher, &key);
                fifo.push(Ticket { key, hash, priority: Priority::default(), since: 0 }, &mut discarded);
            }
            let burst = fifo.keys.capacity();
            while fifo.pop(&hasher, &mut discarded).is_some() {
                let capacity = fifo.keys.capacity();
                assert!(capacity <= KEEP || fifo.len() > capacity / 8, "{} of {capacity}", fifo.len());
            }
            assert_eq!(fifo.keys.capacity() == burst, burst <= KEEP, "a small queue keeps its memory");
        }
    }
}
