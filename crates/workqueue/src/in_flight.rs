//! The keys that workers hold.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::priority::Priority;

/// Keys being processed. At most one worker holds a key, so each is here at most once.
pub(crate) struct InFlight<K> {
    keys: HashTable<Flight<K>>,
    /// How many of `keys` were added again and will be queued when their worker is done.
    dirty: usize,
}

struct Flight<K> {
    key: K,
    hash: u64,
    /// The priority to queue the key with when its worker is done; `None` if nobody added it again.
    again: Option<Again>,
    /// When the worker took it, in nanoseconds of the queue's life; 0 if nobody measures.
    started: u64,
}

/// A key was added while being processed.
#[derive(Clone, Copy)]
pub(crate) struct Again {
    pub(crate) priority: Priority,
    pub(crate) since: u64,
}

/// What adding a key that may be in flight came to.
pub(crate) enum Added {
    NotInFlight,
    /// It will run once more; this is the first add since it was taken.
    Marked,
    /// It was marked before.
    Already,
}

impl<K: Eq> InFlight<K> {
    pub(crate) fn new() -> Self {
        Self { keys: HashTable::new(), dirty: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// How many keys will be queued again when their worker is done.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    /// A worker takes `key`.
    pub(crate) fn start(&mut self, hash: u64, key: K, started: u64) {
        let flight = Flight { key, hash, again: None, started };
        self.keys.insert_unique(hash, flight, |flight| flight.hash);
    }

    /// Remembers that `key` must run once more, if a worker holds it.
    pub(crate) fn mark(&mut self, hash: u64, key: &K, again: Again) -> Added {
        match self.keys.find_mut(hash, |flight| flight.key == *key).map(|flight| &mut flight.again) {
            None => Added::NotInFlight,
            Some(Some(earlier)) => {
                earlier.priority = earlier.priority.max(again.priority);
                Added::Already
            }
            Some(unmarked) => {
                *unmarked = Some(again);
                self.dirty += 1;
                Added::Marked
            }
        }
    }

    /// The worker is done with `key`. Gives it back if it must run once more.
    pub(crate) fn finish(&mut self, hash: u64, key: &K) -> Option<(K, Again)> {
        let Entry::Occupied(entry) = self.keys.entry(hash, |flight| flight.key == *key, |flight| flight.hash)
        else {
            return None;
        };
        let (flight, _) = entry.remove();
        let again = flight.again?;
        self.dirty -= 1;
        Some((flight.key, again))
    }

    /// Total and longest time in nanoseconds that the keys have been held.
    pub(crate) fn ages(&self, now: u64) -> (u64, u64) {
        self.keys
            .iter()
            .map(|flight| now.saturating_sub(flight.started))
            .fold((0, 0), |(sum, max), age| (sum + age, max.max(age)))
    }
}
