//! The keys that workers hold.

use hashbrown::HashTable;

use crate::priority::Priority;
use crate::ready::{Ticket, widen};

/// Keys being processed. At most one worker holds a key, so each is here at most once.
pub(crate) struct InFlight<K> {
    keys: HashTable<Flight<K>>,
    /// How many of `keys` were added again and will be queued when their worker is done.
    dirty: usize,
}

struct Flight<K> {
    key: K,
    hash: u32,
    /// The priority to queue the key with when its worker is done; `None` if nobody added it again.
    again: Option<Priority>,
    /// When it was first added again, in nanoseconds of the queue's life; 0 if nobody did or nobody measures.
    since: u64,
    /// When the worker took it, likewise.
    started: u64,
}

/// A worker was done with a key.
pub(crate) struct Finished<K> {
    /// When the worker took it.
    pub(crate) started: u64,
    /// The key, if it must run once more.
    pub(crate) again: Option<Ticket<K>>,
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
    pub(crate) fn start(&mut self, hash: u32, key: K, started: u64) {
        let flight = Flight { key, hash, again: None, since: 0, started };
        self.keys.insert_unique(widen(hash), flight, |flight| widen(flight.hash));
    }

    /// Remembers that the key must run once more, if a worker holds it.
    pub(crate) fn mark(&mut self, ticket: &Ticket<K>) -> Added {
        if self.is_empty() {
            return Added::NotInFlight;
        }
        let Some(flight) = self.keys.find_mut(widen(ticket.hash), |flight| flight.key == ticket.key) else {
            return Added::NotInFlight;
        };
        if let Some(priority) = &mut flight.again {
            *priority = ticket.priority.max(*priority);
            return Added::Already;
        }
        flight.again = Some(ticket.priority);
        flight.since = ticket.since;
        self.dirty += 1;
        Added::Marked
    }

    /// The worker is done with `key`.
    pub(crate) fn finish(&mut self, hash: u32, key: &K) -> Finished<K> {
        let Ok(entry) = self.keys.find_entry(widen(hash), |flight| flight.key == *key) else {
            return Finished { started: 0, again: None };
        };
        let (Flight { key, hash, again, since, started }, _) = entry.remove();
        let again = again.map(|priority| Ticket { key, hash, priority, since });
        self.dirty -= usize::from(again.is_some());
        Finished { started, again }
    }

    /// Total and longest time in nanoseconds that the keys have been held.
    pub(crate) fn ages(&self, now: u64) -> (u64, u64) {
        self.keys
            .iter()
            .map(|flight| now.saturating_sub(flight.started))
            .fold((0, 0), |(sum, max), age| (sum.saturating_add(age), max.max(age)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_ages_saturates() {
        let mut in_flight = InFlight::new();
        (0..3).for_each(|key| in_flight.start(key, key, 0));
        assert_eq!(in_flight.ages(u64::MAX / 2), (u64::MAX, u64::MAX / 2));
    }
}
