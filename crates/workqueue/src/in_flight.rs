//! Keys that workers hold.

use hashbrown::HashTable;

use crate::discarded::Discarded;
use crate::panics;
use crate::priority::Priority;
use crate::ready::{Ticket, widen};

/// Keys in flight, each at most once: a key has one worker at a time.
///
/// Unlike the other tables this one compares a key with all keys of the same hash, because no key may have two workers.
/// There are at most as many as there are workers.
pub(crate) struct InFlight<K> {
    keys: HashTable<Flight<K>>,
    /// Number of keys that were added again and will be queued when their worker is done.
    dirty: usize,
    next_id: FlightId,
}

/// Identifies one take of a key, so that it can be finished without comparing keys.
pub(crate) type FlightId = u64;

struct Flight<K> {
    id: FlightId,
    key: K,
    hash: u32,
    /// The priority to queue the key with when its worker is done; `None` if it was not added again.
    again: Option<Priority>,
    /// When it was first added again, in nanoseconds since the queue was built; 0 if it was not, or without metrics.
    since: u64,
    /// When the worker took it, in the same unit.
    started: u64,
}

/// Result of [`InFlight::finish`].
pub(crate) struct Finished<K> {
    /// When the worker took the key.
    pub(crate) started: u64,
    /// The key, if it must run once more.
    pub(crate) again: Option<Ticket<K>>,
}

/// Result of [`InFlight::mark`].
pub(crate) enum Added {
    NotInFlight,
    /// It will run once more; this is the first add since it was taken.
    Marked,
    /// It was marked already.
    Already,
}

impl<K: Eq> InFlight<K> {
    pub(crate) fn new() -> Self {
        Self { keys: HashTable::new(), dirty: 0, next_id: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Number of keys that will be queued again when their worker is done.
    pub(crate) fn dirty(&self) -> usize {
        self.dirty
    }

    /// A worker takes `key`.
    pub(crate) fn start(&mut self, hash: u32, key: K, started: u64) -> FlightId {
        let id = self.next_id;
        self.next_id += 1;
        let flight = Flight { id, key, hash, again: None, since: 0, started };
        self.keys.insert_unique(widen(hash), flight, |flight| widen(flight.hash));
        id
    }

    /// Marks a key to run once more, if a worker holds it.
    pub(crate) fn mark(&mut self, ticket: &Ticket<K>) -> Added {
        if self.is_empty() {
            return Added::NotInFlight;
        }
        let matches =
            |flight: &Flight<K>| flight.hash == ticket.hash && panics::equal(&flight.key, &ticket.key);
        let Some(flight) = self.keys.find_mut(widen(ticket.hash), matches) else {
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

    /// The worker is done with a key.
    pub(crate) fn finish(&mut self, hash: u32, id: FlightId, discarded: &mut Discarded<K>) -> Finished<K> {
        let Ok(entry) = self.keys.find_entry(widen(hash), |flight| flight.id == id) else {
            return Finished { started: 0, again: None };
        };
        let (Flight { key, hash, again, since, started, .. }, _) = entry.remove();
        let Some(priority) = again else {
            discarded.push(key);
            return Finished { started, again: None };
        };
        self.dirty -= 1;
        Finished { started, again: Some(Ticket { key, hash, priority, since }) }
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
        (0..3).for_each(|key| _ = in_flight.start(key, key, 0));
        assert_eq!(in_flight.ages(u64::MAX / 2), (u64::MAX, u64::MAX / 2));
    }
}
