//! The keys that wait for a time.

mod heap;

use crate::index::Index;
use crate::priority::Priority;
use heap::{Heap, Node};

/// Keys with a due time, each at most once, taken in exact order of due time and, for equal times, of
/// arrival.
///
/// Inserting, moving to an earlier time, cancelling and taking are all logarithmic and none waits for
/// anything, whatever the number of keys.
pub(crate) struct DelayedKeys<K> {
    /// Who is due when; a node names a slot.
    heap: Heap,
    /// Keys by slot; `None` for a free slot.
    keys: Vec<Option<K>>,
    /// Hashes of the keys, by slot.
    hashes: Vec<u32>,
    /// Priorities by slot; shorter than `keys` if the rest has the default, empty if nobody uses priorities.
    priorities: Vec<Priority>,
    /// Free slots.
    free: Vec<u32>,
    /// Slot of each waiting key, found by the key's hash.
    slots: Index,
    /// Numbers arrivals; wraps around, which only matters to keys due at the same nanosecond.
    arrivals: u32,
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
            keys: Vec::new(),
            hashes: Vec::new(),
            priorities: Vec::new(),
            free: Vec::new(),
            slots: Index::new(),
            arrivals: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// When the first key is due.
    pub(crate) fn first_due(&self) -> Option<u64> {
        self.heap.first().map(|node| node.due)
    }

    /// When `key` is due, if it waits.
    pub(crate) fn due(&self, hash: u32, key: &K) -> Option<u64> {
        self.slot(hash, key).map(|slot| self.heap.due(slot))
    }

    /// Lets `key` wait until `due`. If it waits already, the earlier time and the higher priority win.
    pub(crate) fn insert(&mut self, hash: u32, key: K, due: u64, priority: Priority) {
        let arrival = self.arrivals;
        match self.slot(hash, &key) {
            Some(slot) => {
                self.set_priority(slot, self.priority(slot).max(priority));
                if due < self.heap.due(slot) {
                    self.arrivals = arrival.wrapping_add(1);
                    self.heap.advance(Node { due, arrival, slot });
                }
            }
            None => {
                self.arrivals = arrival.wrapping_add(1);
                let slot = self.occupy(hash, key, priority);
                self.heap.push(Node { due, arrival, slot });
            }
        }
    }

    /// Takes the first key if it is due at `now`.
    pub(crate) fn pop_due(&mut self, now: u64) -> Option<Due<K>> {
        if self.first_due()? > now {
            return None;
        }
        let Node { due, slot, .. } = self.heap.pop()?;
        let key = self.keys[slot as usize].take()?;
        let (hash, priority) = (self.hashes[slot as usize], self.priority(slot));
        self.vacate(hash, slot);
        Some(Due { key, hash, priority, at: due })
    }

    /// Forgets `key`; says whether it waited.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> bool {
        let Some(slot) = self.slot(hash, key) else { return false };
        self.heap.remove(slot);
        self.keys[slot as usize] = None;
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
            self.keys[slot].as_ref().map(|key| (key, node.due, turn, self.priority(node.slot)))
        })
    }

    fn slot(&self, hash: u32, key: &K) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        self.slots.find(hash, |slot| self.keys[slot as usize].as_ref() == Some(key))
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
        let slot = match self.free.pop() {
            Some(slot) => {
                self.keys[slot as usize] = Some(key);
                self.hashes[slot as usize] = hash;
                slot
            }
            None => {
                let slot = u32::try_from(self.keys.len()).expect("fewer than 2^32 delayed keys");
                self.keys.push(Some(key));
                self.hashes.push(hash);
                slot
            }
        };
        self.set_priority(slot, priority);
        self.slots.insert(hash, slot, |slot| self.hashes[slot as usize]);
        slot
    }

    /// Frees a slot whose key is gone. When nothing waits any more the memory of a burst is given back.
    fn vacate(&mut self, hash: u32, slot: u32) {
        self.slots.remove(hash, slot);
        if self.is_empty() && self.keys.len() > 1024 {
            self.clear();
        } else {
            self.free.push(slot);
        }
    }
}
