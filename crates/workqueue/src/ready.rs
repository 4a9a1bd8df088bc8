//! The keys that wait for a worker, in the order in which they will be taken.

mod fifo;
mod places;
mod ranked;

use std::hash::{BuildHasher, Hash};

use crate::priority::Priority;
use fifo::Fifo;
use ranked::Ranked;

/// The hasher of every table in this crate: fast, and seeded per process so that names chosen by strangers
/// cannot be made to collide.
pub(crate) type Hasher = hashbrown::DefaultHashBuilder;

/// Hash of `key` as all tables of one queue see it. Only 32 bits, so that it can be kept: looking at the key
/// again would mean a cache miss for each of a million keys.
pub(crate) fn hash_of<K: Hash>(hasher: &Hasher, key: &K) -> u32 {
    hasher.hash_one(key) as u32
}

/// A hash as hash tables want it: they look at its lowest and at its highest bits.
pub(crate) fn widen(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// One queued key and what travels with it.
pub(crate) struct Ticket<K> {
    pub(crate) key: K,
    /// Hash of `key` under the queue's hasher.
    pub(crate) hash: u32,
    pub(crate) priority: Priority,
    /// When the key was first added since it was last taken, in nanoseconds of the queue's life; kept only
    /// when somebody measures (see [`Ready::new`]), otherwise 0.
    pub(crate) since: u64,
}

/// Queued keys, each at most once.
///
/// Starts as a plain first-in first-out queue and becomes a ranked one the first time a priority other than
/// the default is used: a queue without priorities pays nothing for them.
pub(crate) struct Ready<K> {
    order: Order<K>,
    hasher: Hasher,
    /// Every how many takes the longest waiting key goes first, whatever its priority.
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

    /// Queues a key, unless it is queued already: then it keeps its place, or moves up to a higher priority.
    /// Says whether the key is new.
    pub(crate) fn push(&mut self, ticket: Ticket<K>) -> bool {
        if ticket.priority != Priority::default() {
            self.rank();
        }
        match &mut self.order {
            Order::Fifo(fifo) => fifo.push(ticket),
            Order::Ranked(ranked) => ranked.push(ticket),
        }
    }

    /// Takes the key whose turn it is.
    pub(crate) fn pop(&mut self) -> Option<Ticket<K>> {
        match &mut self.order {
            Order::Fifo(fifo) => fifo.pop(&self.hasher),
            Order::Ranked(ranked) => ranked.pop(&self.hasher),
        }
    }

    fn rank(&mut self) {
        if let Order::Fifo(fifo) = &mut self.order {
            let mut ranked = Ranked::new(self.hasher.clone(), self.oldest_every);
            while let Some(ticket) = fifo.pop(&self.hasher) {
                ranked.push(ticket);
            }
            self.order = Order::Ranked(ranked);
        }
    }
}
