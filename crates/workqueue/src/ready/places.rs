//! Finding the place of a queued key.

/// Slots of the smallest table. A power of two, as are all sizes.
const SMALLEST: usize = 64;

/// Keys above which one table becomes many.
const ONE_TABLE: usize = 8 * 1024;

/// How many tables there are then.
const TABLES: usize = 256;

/// Place numbers by the hashes of the keys that stand there.
///
/// Nothing is removed when a key is taken: a place number that is no longer in the queue is seen to be dead, and
/// its slot is used again or left out when the table is next rebuilt. So taking a key costs nothing here, and a
/// lookup reads one line of memory, because hash and place stand side by side.
///
/// A large table is cut into many. Each is rebuilt on its own, within the processor's cache, and there is no moment
/// at which an add has to wait for a million keys to be moved.
pub(super) struct Places {
    /// One table, or [`TABLES`] of them.
    tables: Vec<Table>,
}

/// A range of place numbers that wraps around: the live ones.
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

/// Whether a key was there, or has been given the place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Taken,
    Made,
}

impl Places {
    pub(super) fn new() -> Self {
        Self { tables: vec![Table::default()] }
    }

    /// Files `place` under `hash`, unless `is_it` holds for a live place under that hash.
    pub(super) fn claim(&mut self, hash: u32, place: u32, live: Live, is_it: impl Fn(u32) -> bool) -> Claim {
        let cut_at = if self.tables.len() == 1 { ONE_TABLE } else { usize::MAX };
        let at = self.table(hash);
        let table = &mut self.tables[at];
        if table.is_full() {
            table.rebuild(live);
            if table.used > cut_at {
                self.cut();
                return self.claim(hash, place, live, is_it);
            }
        }
        table.claim(Slot::new(hash, place), live, is_it)
    }

    /// Gives back the memory that is not needed for what is there.
    pub(super) fn shrink(&mut self, live: Live) {
        if live.len == 0 {
            *self = Self::new();
        }
        self.tables.iter_mut().for_each(|table| table.rebuild(live));
    }

    /// Tables choose a slot by the lowest bits of a hash; this uses the highest.
    fn table(&self, hash: u32) -> usize {
        (hash >> 24) as usize & (self.tables.len() - 1)
    }

    fn cut(&mut self) {
        let one = std::mem::take(&mut self.tables);
        self.tables.resize_with(TABLES, || Table::with_slots(4 * ONE_TABLE / TABLES));
        for slot in one.iter().flat_map(Table::slots) {
            let at = self.table(slot.tag());
            self.tables[at].insert(slot);
        }
    }
}

/// A hash in the upper half and a place in the lower; 0 if it was never used.
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

/// A hash as it is stored: never 0. The bit it loses chooses neither a table nor a slot.
fn tag(hash: u32) -> u32 {
    hash | 1
}

/// Open addressing: a key stands in the first slot that was not free when it came, counted from where its hash
/// points to.
#[derive(Default)]
struct Table {
    /// At least one in four is free, so that every search ends.
    slots: Box<[Slot]>,
    /// How many slots are not free, be their place live or dead.
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
    fn claim(&mut self, new: Slot, live: Live, is_it: impl Fn(u32) -> bool) -> Claim {
        let mut dead = None;
        let mut at = self.first(new.tag());
        loop {
            let slot = self.slots[at];
            if slot == Slot::FREE {
                break;
            }
            if !live.contains(slot.place()) {
                dead.get_or_insert(at);
            } else if slot.tag() == new.tag() && is_it(slot.place()) {
                return Claim::Taken;
            }
            at = self.next(at);
        }
        self.used += usize::from(dead.is_none());
        self.slots[dead.unwrap_or(at)] = new;
        Claim::Made
    }

    /// Inserts what is known not to be there. The table must not be full.
    fn insert(&mut self, new: Slot) {
        let mut at = self.first(new.tag());
        while self.slots[at] != Slot::FREE {
            at = self.next(at);
        }
        self.slots[at] = new;
        self.used += 1;
    }

    /// Leaves out what is dead, and makes room for as much as is live.
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

    /// A queue of numbers whose hashes are `hash(number)`.
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
        if claim == Claim::Made {
            queue.push(number);
        }
        claim
    }

    fn spread(number: u64) -> u32 {
        (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
    }

    #[test]
    fn keys_are_found_through_growth_and_the_cut() {
        let (mut places, mut queue) = (Places::new(), Vec::new());
        for number in 0..30_000 {
            assert_eq!(claim(&mut places, &mut queue, u32::MAX - 5, number, spread), Claim::Made);
        }
        assert_eq!(places.tables.len(), TABLES);
        for number in 0..30_000 {
            assert_eq!(claim(&mut places, &mut queue, u32::MAX - 5, number, spread), Claim::Taken);
        }
    }

    #[test]
    fn keys_that_share_a_hash_are_told_apart() {
        let (mut places, mut queue) = (Places::new(), Vec::new());
        for number in 0..100 {
            assert_eq!(claim(&mut places, &mut queue, 0, number, |_| 7), Claim::Made);
        }
        for number in 0..100 {
            assert_eq!(claim(&mut places, &mut queue, 0, number, |_| 7), Claim::Taken);
        }
    }

    #[test]
    fn the_dead_are_not_found_and_their_slots_are_used_again() {
        let mut places = Places::new();
        for place in 0..100_000 {
            let live = Live { head: place, len: 0 };
            assert_eq!(places.claim(spread(u64::from(place % 10)), place, live, |_| true), Claim::Made);
        }
        assert_eq!(places.tables[0].slots.len(), SMALLEST);
    }

    #[test]
    fn shrinking_keeps_the_living() {
        let (mut places, mut queue) = (Places::new(), Vec::new());
        for number in 0..30_000 {
            claim(&mut places, &mut queue, 0, number, spread);
        }
        queue.drain(..29_000);
        places.shrink(Live { head: 29_000, len: 1_000 });
        assert_eq!(claim(&mut places, &mut queue, 29_000, 29_500, spread), Claim::Taken);
        assert_eq!(claim(&mut places, &mut queue, 29_000, 3, spread), Claim::Made);
    }
}
