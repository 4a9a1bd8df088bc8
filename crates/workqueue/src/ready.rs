//! Keys that are ready to be taken, in the order in which they will be.

mod fifo;
mod places;
mod ranked;

use std::hash::{BuildHasher, Hash};

use crate::discarded::Discarded;
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
    /// More than [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) queued keys share its hash. The key is queued, and was
    /// not compared with all of them: it may be queued twice.
    Crowded,
    /// The key was queued already.
    Duplicate,
}

/// Queued keys, each at most once (but see [`Push::Crowded`]).
///
/// Starts as a plain first-in, first-out queue and becomes a ranked one when a priority other than the default is used
/// for the first time: a queue without priorities pays nothing for them.
pub(crate) struct Ready<K> {
    order: Order<K>,
    hasher: Hasher,
    /// Every n-th take serves the oldest key, whatever its priority.
    oldest_every: u32,
}

enum Order<K> {
    Fifo(Fifo<K>),
    Ranked(Ranked<K>),
}

impl<K: Clone + Eq + Hash> Ready<K> {
    pub(crate) fn new(hasher: Hasher, oldest_every: u32, keep_times: bool) -> Self {
        Self { order: Order::Fifo(Fifo::new(keep_times)), hasher, oldest_every }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.order {
            Order::Fifo(fifo) => fifo.len(),
            Order::Ranked(ranked) => ranked.len(),
        }
    }

    /// Queues a key. A key that is queued already keeps its place, or moves up to a higher priority.
    pub(crate) fn push(&mut self, ticket: Ticket<K>, discarded: &mut Discarded<K>) -> Push {
        if ticket.priority != Priority::default() {
            self.rank(discarded);
        }
        match &mut self.order {
            Order::Fifo(fifo) => fifo.push(ticket, discarded),
            Order::Ranked(ranked) => ranked.push(ticket, discarded),
        }
    }

    /// Takes the next key.
    pub(crate) fn pop(&mut self, discarded: &mut Discarded<K>) -> Option<Ticket<K>> {
        match &mut self.order {
            Order::Fifo(fifo) => fifo.pop(&self.hasher),
            Order::Ranked(ranked) => ranked.pop(&self.hasher, discarded),
        }
    }

    /// Changes to a ranked queue.
    fn rank(&mut self, discarded: &mut Discarded<K>) {
        if let Order::Fifo(fifo) = &mut self.order {
            let mut ranked = Ranked::new(self.oldest_every);
            while let Some(ticket) = fifo.pop(&self.hasher) {
                ranked.push(ticket, discarded);
            }
            self.order = Order::Ranked(ranked);
        }
    }
}
