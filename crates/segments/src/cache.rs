//! A bounded cache of bodies that are on disk.

use crate::{location::Location, store::lock};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex},
};

/// Bytes of an entry beside its content: in the map, in the queue, and of its allocation.
const ENTRY: usize = 2 * (size_of::<u64>() + size_of::<Entry>()) + size_of::<u64>() + 2 * size_of::<usize>();

/// Bodies that were written or read last, by their location. Locations are never reused: an entry is never wrong, and one
/// of a body that was moved is not found again and ages out.
pub(crate) struct Cache {
    max_bytes: usize,
    /// Held for one lookup or change, never while bytes are copied.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<u64, Entry>,
    /// Locations in the order in which they are looked at for eviction. An entry that was read since is passed over once.
    queue: VecDeque<u64>,
    /// Bytes of all entries.
    bytes: usize,
}

struct Entry {
    bytes: Arc<[u8]>,
    used: bool,
}

impl Entry {
    fn size(&self) -> usize {
        ENTRY + self.bytes.len()
    }
}

impl Cache {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, state: Mutex::default() }
    }

    pub(crate) fn get(&self, location: Location) -> Option<Arc<[u8]>> {
        let mut state = lock(&self.state);
        let entry = state.entries.get_mut(&location.bits())?;
        entry.used = true;
        Some(Arc::clone(&entry.bytes))
    }

    pub(crate) fn contains(&self, location: Location) -> bool {
        lock(&self.state).entries.contains_key(&location.bits())
    }

    /// Adds a body, unless it is there already, or alone would be a large part of the cache.
    pub(crate) fn put(&self, location: Location, bytes: &[u8]) {
        if ENTRY + bytes.len() > self.max_bytes / 2 || self.contains(location) {
            return;
        }
        let entry = Entry { bytes: bytes.into(), used: false };
        let mut state = lock(&self.state);
        state.bytes += entry.size();
        match state.entries.insert(location.bits(), entry) {
            Some(old) => state.bytes -= old.size(),
            None => state.queue.push_back(location.bits()),
        }
        state.evict(self.max_bytes);
    }

    /// Removes a body that was dropped.
    pub(crate) fn remove(&self, location: Location) {
        let mut state = lock(&self.state);
        if let Some(entry) = state.entries.remove(&location.bits()) {
            state.bytes -= entry.size();
            if state.queue.len() > 16 + 2 * state.entries.len() {
                let State { entries, queue, .. } = &mut *state;
                queue.retain(|location| entries.contains_key(location));
            }
        }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> usize {
        lock(&self.state).bytes
    }
}

impl State {
    fn evict(&mut self, max_bytes: usize) {
        while self.bytes > max_bytes {
            let Some(location) = self.queue.pop_front() else { return };
            match self.entries.get_mut(&location) {
                Some(entry) if entry.used => {
                    entry.used = false;
                    self.queue.push_back(location);
                }
                Some(_) => self.bytes -= self.entries.remove(&location).map_or(0, |entry| entry.size()),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(word: u32) -> Location {
        Location { segment: 1, word }
    }

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_read() {
        let cache = Cache::new(10 * (ENTRY + 100));
        for word in 0..1000 {
            cache.put(at(word), &[word as u8; 100]);
            assert!(cache.bytes() <= 10 * (ENTRY + 100));
            assert_eq!(cache.get(at(0)).as_deref(), Some(&[0; 100][..]), "read all the time");
        }
        assert!(cache.contains(at(999)) && !cache.contains(at(500)));
        cache.put(at(1), &[0; 1000]);
        assert!(!cache.contains(at(1)), "too large");
    }

    #[test]
    fn nothing_is_left_of_removed_bodies() {
        let cache = Cache::new(1 << 20);
        for word in 0..1000 {
            cache.put(at(word), &[1; 10]);
            cache.put(at(word), &[1; 10]);
            cache.remove(at(word));
        }
        assert_eq!(cache.bytes(), 0);
        assert!(lock(&cache.state).queue.len() < 32);
    }
}
