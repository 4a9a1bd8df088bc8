//! The keys that wait for a time.

mod heap;

use crate::index::Index;
use crate::priority::Priority;
use heap::{Heap, Node, Slots};

/// The due time of a key that never becomes due.
pub(crate) const NEVER: u64 = u64::MAX;

/// Keys with a due time, each at most once, taken in exact order of due time and, for equal times, of
/// arrival.
///
/// Inserting, moving to an earlier time, cancelling and taking are all logarithmic and none waits for
/// anything, whatever the number of keys.
pub(crate) struct DelayedKeys<K> {
    /// Who is due when; a node names a slot.
    heap: Heap,
    slots: Vec<Slot<K>>,
    /// Priorities by slot; shorter than `slots` if the rest has the default, empty if nobody uses priorities.
    priorities: Vec<Priority>,
    /// Free slots.
    free: Vec<u32>,
    /// Slot of each waiting key, found by the key's hash.
    index: Index,
    /// Numbers arrivals; wraps around, which only matters to keys due at the same nanosecond.
    arrivals: u32,
}

/// Room for one waiting key, in one line of memory.
struct Slot<K> {
    /// `None` if the slot is free.
    key: Option<K>,
    /// Hash of the key.
    hash: u32,
    /// Where its node stands in the heap; meaningless if the slot is free.
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

/// A key whose time has come.
pub(crate) struct Due<K> {
    pub(crate) key: K,
    pub(crate) hash: u32,
    pub(crate) priority: Priority,
    /// The time it was due.
    pub(crate) at: u64,
}

impl<K: Eq> DelayedKeys<K> {
    pub(crate) fn new() -> Self {
        Self {
            heap: Heap::default(),
            slots: Vec::new(),
            priorities: Vec::new(),
            free: Vec::new(),
            index: Index::new(),
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

    /// When `key` is due, if it waits.
    pub(crate) fn due(&self, hash: u32, key: &K) -> Option<u64> {
        self.slot(hash, key).map(|slot| self.due_of(slot))
    }

    /// Lets `key` wait until `due`. If it waits already, the earlier time and the higher priority win.
    pub(crate) fn insert(&mut self, hash: u32, key: K, due: u64, priority: Priority) {
        let arrival = self.arrivals;
        match self.slot(hash, &key) {
            Some(slot) => {
                self.set_priority(slot, self.priority(slot).max(priority));
                if due < self.due_of(slot) {
                    self.arrivals = arrival.wrapping_add(1);
                    self.heap.advance(Node { due, arrival, slot }, &mut self.slots);
                }
            }
            None => {
                self.arrivals = arrival.wrapping_add(1);
                let slot = self.occupy(hash, key, priority);
                self.heap.push(Node { due, arrival, slot }, &mut self.slots);
            }
        }
    }

    /// Takes the first key if it is due at `now`.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<Due<K>> {
        if self.first_due()? > now {
            return None;
        }
        let Node { due, slot, .. } = self.heap.pop(&mut self.slots)?;
        let Slot { key, hash, .. } = &mut self.slots[slot as usize];
        let (key, hash) = (key.take()?, *hash);
        let priority = self.priority(slot);
        self.vacate(hash, slot);
        Some(Due { key, hash, priority, at: due })
    }

    /// Forgets `key`; says whether it waited.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> bool {
        let Some(slot) = self.slot(hash, key) else { return false };
        self.heap.remove(self.slots.position(slot), &mut self.slots);
        self.slots[slot as usize].key = None;
        self.vacate(hash, slot);
        true
    }

    /// Forgets all keys, and gives their memory back.
    pub(crate) fn clear(&mut self) {
        *self = Self { arrivals: self.arrivals, ..Self::new() };
    }

    /// All waiting keys in no particular order, each with its due time and its turn: keys due at the same time
    /// go in order of their turns.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, u64, u32, Priority)> {
        self.heap.nodes().filter_map(|node| {
            let slot = node.slot as usize;
            let turn = node.arrival.wrapping_sub(self.arrivals);
            self.slots[slot].key.as_ref().map(|key| (key, node.due, turn, self.priority(node.slot)))
        })
    }

    fn slot(&self, hash: u32, key: &K) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        self.index.find(hash, |slot| self.slots[slot as usize].key.as_ref() == Some(key))
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
        self.index.insert(hash, slot, |slot| self.slots[slot as usize].hash);
        slot
    }

    /// Frees a slot whose key is gone. When nothing waits any more the memory of a burst is given back.
    fn vacate(&mut self, hash: u32, slot: u32) {
        self.index.remove(hash, slot);
        if self.is_empty() && self.slots.len() > 1024 {
            self.clear();
        } else {
            self.free.push(slot);
        }
    }
}
