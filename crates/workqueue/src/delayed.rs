//! Keys that are added at a later time.

mod heap;

use crate::crowd::{Crowd, Order};
use crate::discarded::Discarded;
use crate::index::{Index, Lookup};
use crate::panics;
use crate::priority::Priority;
use heap::{Heap, Node, Slots};

/// The due time of a key that never becomes due.
pub(crate) const NEVER: u64 = u64::MAX;

/// Keys with a due time, taken in exact order of due time and, for equal times, of arrival.
///
/// A key is delayed at most once, unless keys have no order and more than
/// [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) delayed keys share its hash: then it is not looked for, and may be delayed
/// several times.
///
/// Inserting, moving to an earlier time, cancelling and taking are logarithmic in the number of keys.
pub(crate) struct DelayedKeys<K> {
    /// Due times; a node names a slot.
    heap: Heap,
    slots: Vec<Slot<K>>,
    /// Priorities by slot. Slots beyond its end have the default priority.
    priorities: Vec<Priority>,
    /// Free slots.
    free: Vec<u32>,
    /// Slots by hash.
    index: Index,
    /// Slots of keys that `index` does not take.
    crowd: Crowd<K>,
    /// Number of the next arrival; wraps around, which only matters to keys due at the same nanosecond.
    arrivals: u32,
}

/// A delayed key, in one cache line.
struct Slot<K> {
    /// `None` if the slot is free.
    key: Option<K>,
    /// Hash of the key.
    hash: u32,
    /// Position of its node in the heap; meaningless if the slot is free.
    position: u32,
}

impl<K> Slots for Vec<Slot<K>> {
    fn position(&self, slot: u32) -> usize {
        self[slot as usize].position as usize
    }

    fn moved(&mut self, slot: u32, to: usize) {
        self[slot as usize].position = to as u32;
    }
}

/// A key that is due.
pub(crate) struct Due<K> {
    pub(crate) key: K,
    pub(crate) hash: u32,
    pub(crate) priority: Priority,
    /// The time it was due.
    pub(crate) at: u64,
}

/// A copy of a delayed key.
pub(crate) struct Copied<K> {
    pub(crate) key: K,
    pub(crate) due: u64,
    pub(crate) arrival: u32,
    pub(crate) priority: Priority,
}

impl<K: Eq> DelayedKeys<K> {
    pub(crate) fn new(order: Option<Order<K>>) -> Self {
        Self {
            heap: Heap::default(),
            slots: Vec::new(),
            priorities: Vec::new(),
            free: Vec::new(),
            index: Index::new(),
            crowd: Crowd::new(order),
            arrivals: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the first key is due; `None` if none ever is.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.heap.first().map(|node| node.due).filter(|due| *due != NEVER)
    }

    /// When `key` is due, if it is delayed.
    pub(crate) fn due(&self, hash: u32, key: &K) -> Option<u64> {
        match self.find(hash, key) {
            Lookup::Found(slot) => Some(self.due_of(slot)),
            Lookup::Absent | Lookup::Crowded => None,
        }
    }

    /// Delays `key` until `due`. If it is delayed already, the earlier time and the higher priority win.
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        key: K,
        due: u64,
        priority: Priority,
        discarded: &mut Discarded<K>,
    ) {
        let arrival = self.arrivals;
        let found = self.find(hash, &key);
        if let Lookup::Found(slot) = found {
            discarded.push(key);
            self.set_priority(slot, self.priority(slot).max(priority));
            if due < self.due_of(slot) {
                self.arrivals = arrival.wrapping_add(1);
                self.heap.advance(Node { due, arrival, slot }, &mut self.slots);
            }
            return;
        }
        self.arrivals = arrival.wrapping_add(1);
        let slot = self.occupy(hash, key, priority);
        if matches!(found, Lookup::Absent) {
            self.index.insert(hash, slot, |slot| self.slots[slot as usize].hash);
        } else {
            let key_of = |slot: u32| self.slots[slot as usize].key.as_ref();
            if let Some(key) = key_of(slot) {
                self.crowd.insert(slot, key, key_of);
            }
        }
        self.heap.push(Node { due, arrival, slot }, &mut self.slots);
    }

    /// Takes the first key if it is due at `now`.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<Due<K>> {
        if self.first_due()? > now {
            return None;
        }
        let Node { due, slot, .. } = self.heap.pop(&mut self.slots)?;
        self.leave_crowd(slot);
        let Slot { key, hash, .. } = &mut self.slots[slot as usize];
        let (key, hash) = (key.take()?, *hash);
        let priority = self.priority(slot);
        self.vacate(hash, slot);
        Some(Due { key, hash, priority, at: due })
    }

    /// Removes `key`, and returns whether it was delayed.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K, discarded: &mut Discarded<K>) -> bool {
        let Lookup::Found(slot) = self.find(hash, key) else { return false };
        self.heap.remove(self.slots.position(slot), &mut self.slots);
        self.leave_crowd(slot);
        if let Some(key) = self.slots[slot as usize].key.take() {
            discarded.push(key);
        }
        self.vacate(hash, slot);
        true
    }

    /// Removes all keys and releases their memory. Returns them, because the caller drops them without the lock.
    pub(crate) fn take_all(&mut self) -> Self {
        let empty = Self { arrivals: self.arrivals, ..Self::new(self.crowd.order()) };
        std::mem::replace(self, empty)
    }

    /// Copies of the keys in some slots from `slot` on, and the slot to continue at; `None` at the end. A key keeps its slot
    /// while it is delayed.
    pub(crate) fn copy(&self, slot: usize, slots: usize) -> (Vec<Copied<K>>, Option<usize>)
    where
        K: Clone,
    {
        let end = slot.saturating_add(slots).min(self.slots.len());
        let copy = |at: usize| {
            let Slot { key, position, .. } = &self.slots[at];
            let node = self.heap.node(*position as usize);
            // A key whose `Clone` panics is left out.
            let key = panics::catch(|| key.clone()).ok().flatten();
            key.map(|key| Copied {
                key,
                due: node.due,
                arrival: node.arrival,
                priority: self.priority(at as u32),
            })
        };
        let occupied = |at: &usize| self.slots[*at].key.is_some();
        let copied = (slot.min(end)..end).filter(occupied).filter_map(copy).collect();
        (copied, (end < self.slots.len()).then_some(end))
    }

    /// Number of the next arrival. Keys due at the same time are taken in order of arrival; numbers wrap around.
    pub(crate) fn next_arrival(&self) -> u32 {
        self.arrivals
    }

    /// Finds the slot of a key.
    fn find(&self, hash: u32, key: &K) -> Lookup {
        if self.is_empty() {
            return Lookup::Absent;
        }
        let slot = |slot: u32| &self.slots[slot as usize];
        if let Some(found) = self.crowd.find(key, |number| slot(number).key.as_ref()) {
            return Lookup::Found(found);
        }
        let matches = |number| slot(number).key.as_ref().is_some_and(|other| panics::equal(other, key));
        self.index.find(hash, |number| slot(number).hash, matches)
    }

    fn due_of(&self, slot: u32) -> u64 {
        self.heap.due(self.slots.position(slot))
    }

    fn priority(&self, slot: u32) -> Priority {
        self.priorities.get(slot as usize).copied().unwrap_or_default()
    }

    fn set_priority(&mut self, slot: u32, priority: Priority) {
        let slot = slot as usize;
        if slot >= self.priorities.len() && priority != Priority::default() {
            self.priorities.resize(slot + 1, Priority::default());
        }
        if let Some(entry) = self.priorities.get_mut(slot) {
            *entry = priority;
        }
    }

    fn occupy(&mut self, hash: u32, key: K, priority: Priority) -> u32 {
        let occupied = Slot { key: Some(key), hash, position: 0 };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = occupied;
                slot
            }
            None => {
                let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 delayed keys");
                self.slots.push(occupied);
                slot
            }
        };
        self.set_priority(slot, priority);
        slot
    }

    /// The key of a slot is about to be removed.
    fn leave_crowd(&mut self, slot: u32) {
        let slots = &self.slots;
        self.crowd.remove(slot, |slot| slots[slot as usize].key.as_ref());
    }

    /// Frees a slot whose key was removed. When the last key of a burst is removed, its memory is released.
    fn vacate(&mut self, hash: u32, slot: u32) {
        self.index.remove(hash, slot);
        if self.is_empty() && self.slots.len() > 1024 {
            self.take_all();
        } else {
            self.free.push(slot);
        }
    }
}

impl<K> DelayedKeys<K> {
    /// All keys, in no particular order.
    pub(crate) fn into_keys(self) -> impl Iterator<Item = K> {
        self.slots.into_iter().filter_map(|slot| slot.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BURST: usize = 1024;

    fn filled(keys: impl Iterator<Item = (u32, u64)>) -> DelayedKeys<u32> {
        let mut delayed = DelayedKeys::new(None);
        keys.for_each(|(key, due)| {
            delayed.insert(key, key, due, Priority::default(), &mut Discarded::default());
        });
        delayed
    }

    #[test]
    fn cancelled_keys_leave_the_others_in_order() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut expected: Vec<(u64, u32)> = (0..2_000).map(|key| (random.u64(..1_000), key)).collect();
        let mut delayed = filled(expected.iter().map(|(due, key)| (*key, *due)));
        expected.retain(|(_, key)| random.bool() || !delayed.cancel(*key, key, &mut Discarded::default()));
        expected.sort_unstable();
        let taken = std::iter::from_fn(|| delayed.pop_due(1_000)).map(|due| (due.at, due.key));
        assert_eq!(taken.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_memory_of_a_burst_is_released_with_its_last_key() {
        for (keys, released) in [(BURST, false), (BURST + 1, true), (2 * BURST, true)] {
            let mut delayed = filled((0..keys as u32).map(|key| (key, 1)));
            while delayed.pop_due(1).is_some() {}
            assert_eq!((delayed.len(), delayed.slots.capacity() == 0), (0, released), "{keys} keys");
        }
    }
}
