//! Keys that are ready to be taken, in the order in which they will be.

mod fifo;
mod places;
mod ranked;

use std::hash::{BuildHasher, Hash};

use crate::crowd::Order;
use crate::discarded::Discarded;
use crate::index::Lookup;
use crate::priority::Priority;
use fifo::Fifo;
use ranked::Ranked;

/// The hasher of every table in this crate: fast, and seeded per process, so that names chosen by an attacker
/// do not collide on purpose.
pub(crate) type Hasher = hashbrown::DefaultHashBuilder;

/// Hash of `key` for all tables of one queue. Only 32 bits, so that tables can store it: hashing each of a million keys
/// again when a table grows would cost a cache miss each.
pub(crate) fn hash_of<K: Hash>(hasher: &Hasher, key: &K) -> u32 {
    hasher.hash_one(key) as u32
}

/// Expands a hash for a `HashTable`, which uses the lowest and the highest bits.
pub(crate) fn widen(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// A key with its metadata.
pub(crate) struct Ticket<K> {
    pub(crate) key: K,
    /// Hash of `key` under the queue's hasher.
    pub(crate) hash: u32,
    pub(crate) priority: Priority,
    /// When the key was first added since it was last taken, in nanoseconds since the queue was built; 0 without
    /// metrics.
    pub(crate) since: u64,
}

/// Result of adding a key to the ready ones.
pub(crate) enum Push {
    /// The key is queued.
    New,
    /// More than [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) queued keys share its hash, and keys have no order. The
    /// key is queued, and was not compared with all of them: it may be queued twice.
    Crowded,
    /// The key was queued already.
    Duplicate,
}

/// Queued keys, each at most once (but see [`Push::Crowded`]).
///
/// A queue without priorities is first in, first out, and pays nothing for priorities. Once a priority other than the default is
/// used, new keys go to a ranked queue beside it. Keys that were queued before stay where they are until they are taken or their
/// priority is raised: changing over costs nothing, however many there are. They are older than the ranked keys, but for those
/// that moved.
pub(crate) struct Ready<K> {
    fifo: Fifo<K>,
    ranked: Option<Ranked<K>>,
    hasher: Hasher,
    /// Every n-th take serves the oldest key, whatever its priority. A key with `m` older keys before it is therefore taken
    /// within `oldest_every * (m + 1)` takes.
    oldest_every: u32,
    takes: u32,
    order: Option<Order<K>>,
}

impl<K: Eq + Hash> Ready<K> {
    pub(crate) fn new(hasher: Hasher, order: Option<Order<K>>, oldest_every: u32, keep_times: bool) -> Self {
        Self { fifo: Fifo::new(keep_times, order), ranked: None, hasher, oldest_every, takes: 0, order }
    }

    pub(crate) fn len(&self) -> usize {
        self.fifo.len() + self.ranked.as_ref().map_or(0, Ranked::len)
    }

    /// Queues a key. A key that is queued already keeps its place, or moves up to a higher priority.
    pub(crate) fn push(&mut self, ticket: Ticket<K>, discarded: &mut Discarded<K>) -> Push {
        let plain = ticket.priority == Priority::default();
        match &mut self.ranked {
            None if plain => self.fifo.push(ticket, discarded),
            ranked => {
                let ranked = ranked.get_or_insert_with(|| Ranked::new(self.order));
                Self::push_ranked(&mut self.fifo, ranked, ticket, discarded)
            }
        }
    }

    fn push_ranked(
        fifo: &mut Fifo<K>,
        ranked: &mut Ranked<K>,
        ticket: Ticket<K>,
        discarded: &mut Discarded<K>,
    ) -> Push {
        match fifo.find(ticket.hash, &ticket.key) {
            Lookup::Found(place) if ticket.priority > Priority::default() => {
                let (arrival, since) = fifo.remove(place, discarded);
                ranked.push_older(Ticket { since, ..ticket }, arrival);
                Push::Duplicate
            }
            Lookup::Found(_) => {
                discarded.push(ticket.key);
                Push::Duplicate
            }
            Lookup::Absent => ranked.push(ticket, discarded),
            // With an order, the lookup covers all keys.
            Lookup::Crowded if fifo.is_ordered() => ranked.push(ticket, discarded),
            Lookup::Crowded => match ranked.push(ticket, discarded) {
                Push::New => Push::Crowded,
                push => push,
            },
        }
    }

    /// Takes the next key. Calls `Hash` of it; keys on which that panics are discarded.
    pub(crate) fn pop(&mut self, discarded: &mut Discarded<K>) -> Option<Ticket<K>> {
        let Some(ranked) = &mut self.ranked else { return self.fifo.pop(&self.hasher, discarded) };
        if self.fifo.len() + ranked.len() == 0 {
            return None;
        }
        self.takes = self.takes.wrapping_add(1);
        let oldest = self.takes.is_multiple_of(self.oldest_every);
        let from_ranked = match (self.fifo.first_arrival(), ranked.first_priority()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(fifo), Some(_)) if oldest => ranked.first_arrival().is_some_and(|ranked| ranked < fifo),
            (Some(_), Some(priority)) => priority > Priority::default(),
        };
        let popped = match from_ranked {
            true if oldest => ranked.pop_oldest(),
            true => ranked.pop(),
            false => self.fifo.pop(&self.hasher, discarded),
        };
        // All keys of the one may have been discarded.
        popped.or_else(|| ranked.pop())
    }
}
