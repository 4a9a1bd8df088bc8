//! Table from the hash of a queued key to its place in the queue.

use crate::MAX_KEYS_PER_HASH;
use crate::index::Lookup;

/// Slots of the smallest table. All sizes are powers of two.
const SMALLEST: usize = 64;

/// Number of keys above which one table is split into many.
const ONE_TABLE: usize = 8 * 1024;

/// Number of tables after the split.
const TABLES: usize = 256;

/// Place numbers of queued keys, by the hash of the key.
///
/// Taking a key removes nothing: a place number that is no longer in the queue is recognized as dead, and its slot is
/// reused or left out of the next rebuild. So taking a key costs nothing here. A lookup reads one cache line, because
/// hash and place are stored side by side.
///
/// A large table is split into many. Each is rebuilt on its own, within the processor's cache, so no add has to wait
/// until a million keys are moved.
///
/// A table holds at most [`MAX_KEYS_PER_HASH`] places of one hash value, which bounds every search.
pub(super) struct Places {
    /// One table, or [`TABLES`] of them.
    tables: Vec<Table>,
}

/// The range of place numbers that are in the queue; it wraps around.
#[derive(Clone, Copy)]
pub(super) struct Live {
    pub(super) head: u32,
    pub(super) len: u32,
}

impl Live {
    fn contains(self, place: u32) -> bool {
        place.wrapping_sub(self.head) < self.len
    }
}

/// Result of [`Places::claim`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// The key is queued already.
    Duplicate,
    /// The place is recorded.
    Recorded,
    /// Too many queued keys share the hash, and the key is none of those that are recorded. The place is not recorded.
    Crowded,
}

impl Places {
    pub(super) fn new() -> Self {
        Self { tables: vec![Table::default()] }
    }

    /// Records `place` under `hash`, unless `matches` holds for a live place of that hash.
    pub(super) fn claim(
        &mut self,
        hash: u32,
        place: u32,
        live: Live,
        matches: impl Fn(u32) -> bool,
    ) -> Claim {
        let split_above = if self.tables.len() == 1 { ONE_TABLE } else { usize::MAX };
        let at = self.table(hash);
        let table = &mut self.tables[at];
        if table.is_full() {
            table.rebuild(live);
            if table.used > split_above {
                self.split();
                return self.claim(hash, place, live, matches);
            }
        }
        table.claim(Slot::new(hash, place), live, matches)
    }

    /// Finds the live place of `hash` for which `matches` holds.
    pub(super) fn find(&self, hash: u32, live: Live, matches: impl Fn(u32) -> bool) -> Lookup {
        self.tables[self.table(hash)].find(tag(hash), live, matches)
    }

    /// Releases memory that the live places do not need.
    pub(super) fn shrink(&mut self, live: Live) {
        if live.len == 0 {
            *self = Self::new();
        }
        self.tables.iter_mut().for_each(|table| table.rebuild(live));
    }

    /// Index of the table for a hash. Tables choose a slot by the lowest bits of a hash; this uses the highest.
    fn table(&self, hash: u32) -> usize {
        (hash >> 24) as usize & (self.tables.len() - 1)
    }

    /// Distributes the only table over many. A poor hash distributes unevenly, so each new table is sized by what it
    /// receives.
    fn split(&mut self) {
        let one = std::mem::take(&mut self.tables);
        self.tables.resize_with(TABLES, Table::default);
        let mut counts = [0; TABLES];
        for slot in one.iter().flat_map(Table::slots) {
            counts[self.table(slot.tag())] += 1;
        }
        for (table, count) in self.tables.iter_mut().zip(counts) {
            *table = Table::with_slots((count * 2).max(4 * ONE_TABLE / TABLES));
        }
        for slot in one.iter().flat_map(Table::slots) {
            let at = self.table(slot.tag());
            self.tables[at].insert(slot);
        }
    }
}

/// A hash in the upper half and a place in the lower half; 0 if the slot was never used.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Slot(u64);

impl Slot {
    const FREE: Self = Self(0);

    fn new(hash: u32, place: u32) -> Self {
        Self(u64::from(tag(hash)) << 32 | u64::from(place))
    }

    fn tag(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn place(self) -> u32 {
        self.0 as u32
    }
}

/// A hash as it is stored: never 0. The bit that is lost chooses neither a table nor a slot.
fn tag(hash: u32) -> u32 {
    hash | 1
}

/// Open addressing with linear probing.
#[derive(Default)]
struct Table {
    /// At least one in four is free, so every search ends.
    slots: Box<[Slot]>,
    /// Number of slots that are not free, whether their place is live or dead.
    used: usize,
}

impl Table {
    fn with_slots(count: usize) -> Self {
        Self { slots: vec![Slot::FREE; count.next_power_of_two()].into(), used: 0 }
    }

    fn is_full(&self) -> bool {
        self.used >= self.slots.len() / 4 * 3
    }

    fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.iter().copied().filter(|slot| *slot != Slot::FREE)
    }

    fn first(&self, tag: u32) -> usize {
        (tag >> 1) as usize & (self.slots.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }

    /// See [`Places::claim`]. The table must not be full.
    fn claim(&mut self, new: Slot, live: Live, matches: impl Fn(u32) -> bool) -> Claim {
        let mut dead = None;
        let mut compared = 0;
        let mut at = self.first(new.tag());
        loop {
            let slot = self.slots[at];
            if slot == Slot::FREE {
                break;
            }
            if !live.contains(slot.place()) {
                dead.get_or_insert(at);
            } else if slot.tag() == new.tag() {
                if matches(slot.place()) {
                    return Claim::Duplicate;
                }
                compared += 1;
                if compared == MAX_KEYS_PER_HASH {
                    return Claim::Crowded;
                }
            }
            at = self.next(at);
        }
        self.used += usize::from(dead.is_none());
        self.slots[dead.unwrap_or(at)] = new;
        Claim::Recorded
    }

    /// See [`Places::find`].
    fn find(&self, tag: u32, live: Live, matches: impl Fn(u32) -> bool) -> Lookup {
        if self.slots.is_empty() {
            return Lookup::Absent;
        }
        let mut compared = 0;
        let mut at = self.first(tag);
        while self.slots[at] != Slot::FREE {
            let slot = self.slots[at];
            if slot.tag() == tag && live.contains(slot.place()) {
                if matches(slot.place()) {
                    return Lookup::Found(slot.place());
                }
                compared += 1;
                if compared == MAX_KEYS_PER_HASH {
                    return Lookup::Crowded;
                }
            }
            at = self.next(at);
        }
        Lookup::Absent
    }

    /// Inserts a place that is not in the table. The table must not be full.
    fn insert(&mut self, new: Slot) {
        let mut at = self.first(new.tag());
        while self.slots[at] != Slot::FREE {
            at = self.next(at);
        }
        self.slots[at] = new;
        self.used += 1;
    }

    /// Drops dead places, and doubles the room for live ones.
    fn rebuild(&mut self, live: Live) {
        let alive = |slot: &Slot| live.contains(slot.place());
        let count = self.slots().filter(alive).count();
        let old = std::mem::replace(self, Self::with_slots((count * 2).max(SMALLEST)));
        old.slots().filter(alive).for_each(|slot| self.insert(slot));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims a place for `number`, whose hash is `hash(number)`, in a queue of numbers.
    fn claim(
        places: &mut Places,
        queue: &mut Vec<u64>,
        head: u32,
        number: u64,
        hash: fn(u64) -> u32,
    ) -> Claim {
        let live = Live { head, len: queue.len() as u32 };
        let place = head.wrapping_add(live.len);
        let at = |place: u32| queue[place.wrapping_sub(head) as usize];
        let claim = places.claim(hash(number), place, live, |place| at(place) == number);
        if claim == Claim::Recorded {
            queue.push(number);
        }
        claim
    }

    fn spread(number: u64) -> u32 {
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    #[test]
    fn keys_are_found_after_growth_and_split() {
        let (mut places, mut queue) = (Places::new(), Vec::new());
        for number in 0..30_000 {
            assert_eq!(claim(&mut places, &mut queue, u32::MAX - 5, number, spread), Claim::Recorded);
        }
        assert_eq!(places.tables.len(), TABLES);
        for number in 0..30_000 {
            assert_eq!(claim(&mut places, &mut queue, u32::MAX - 5, number, spread), Claim::Duplicate);
        }
    }

    #[test]
    fn keys_of_one_hash_are_told_apart_up_to_the_bound() {
        let (mut places, mut queue) = (Places::new(), Vec::new());
        for number in 0..MAX_KEYS_PER_HASH as u64 {
            assert_eq!(claim(&mut places, &mut queue, 0, number, |_| 7), Claim::Recorded);
        }
        for number in 0..MAX_KEYS_PER_HASH as u64 {
            assert_eq!(claim(&mut places, &mut queue, 0, number, |_| 7), Claim::Duplicate);
        }
        assert_eq!(claim(&mut places, &mut queue, 0, u64::MAX, |_| 7), Claim::Crowded);
        assert_eq!(claim(&mut places, &mut queue, 0, u64::MAX, |_| 8), Claim::Recorded);
    }

    #[test]
    fn dead_places_are_not_found_and_their_slots_are_reused() {
        let mut places = Places::new();
        for place in 0..100_000 {
            let live = Live { head: place, len: 0 };
            assert_eq!(places.claim(spread(u64::from(place % 10)), place, live, |_| true), Claim::Recorded);
        }
        assert_eq!(places.tables[0].slots.len(), SMALLEST);
    }

    #[test]
    fn shrinking_keeps_live_places() {
        let (mut places, mut queue) = (Places::new(), Vec::new());
        for number in 0..30_000 {
            claim(&mut places, &mut queue, 0, number, spread);
        }
        queue.drain(..29_000);
        places.shrink(Live { head: 29_000, len: 1_000 });
        assert_eq!(claim(&mut places, &mut queue, 29_000, 29_500, spread), Claim::Duplicate);
        assert_eq!(claim(&mut places, &mut queue, 29_000, 3, spread), Claim::Recorded);
    }
}
