//! One shared copy of equal values.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::{
    hash::{BuildHasher, Hash},
    sync::Arc,
};

/// Values of a shard, on average, before one more shard is added.
const SHARD: usize = 32;
/// New values between two shards that are swept: two values are looked at for each new one.
const SWEEP_EVERY: usize = SHARD / 2;
/// Shards that are removed at most when one is swept. If all its values are unused, four are superfluous.
const JOINS: usize = 8;
/// Bits of a hash below those that choose the shard. The lowest ones place a value within the shard.
const SHARD_BITS: u32 = 24;

/// Keeps one copy of each value in use.
///
/// 1. Unused values are removed shard by shard, while new ones arrive and by [`sweep_some`](Self::sweep_some): about as many
///    unused values are kept as used ones.
/// 2. Each operation looks at a bounded number of values: they are in many small tables, whose number follows that of the
///    values one by one (linear hashing).
pub(super) struct Interner<T: ?Sized> {
    /// Never empty. The value with a hash is in the one that [`shard_of`] returns.
    shards: Vec<HashTable<Arc<T>>>,
    hasher: DefaultHashBuilder,
    len: usize,
    /// The next shard to sweep. They take turns.
    next: usize,
    /// New values since a shard was swept.
    arrived: usize,
    /// Shards that the sweep of all of them has yet to look at.
    unswept: usize,
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    /// Number of values, used or not.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the shared copy if there is one.
    pub(super) fn find(&self, value: &T) -> Option<Arc<T>> {
        self.find_hashed(self.hasher.hash_one(value), value)
    }

    fn find_hashed(&self, hash: u64, value: &T) -> Option<Arc<T>> {
        let shard = &self.shards[shard_of(hash, self.shards.len())];
        shard.find(hash, |known| **known == *value).cloned()
    }

    /// Returns the shared copy.
    pub(super) fn intern(&mut self, value: Arc<T>) -> Arc<T> {
        let hash = self.hasher.hash_one(&*value);
        if let Some(known) = self.find_hashed(hash, &value) {
            return known;
        }
        self.insert(hash, Arc::clone(&value));
        self.arrived += 1;
        if self.arrived >= SWEEP_EVERY {
            self.arrived = 0;
            self.sweep_next();
        }
        if self.len > self.shards.len() * SHARD {
            self.split();
        }
        value
    }

    /// Begins to remove all values that are unused now.
    pub(super) fn begin_sweep(&mut self) {
        self.unswept = self.shards.len();
    }

    /// Sweeps up to `max` shards. Returns whether there are more.
    pub(super) fn sweep_some(&mut self, max: usize) -> bool {
        for _ in 0..max.min(self.unswept) {
            self.unswept -= 1;
            self.sweep_next();
        }
        self.unswept > 0
    }

    /// Bytes on the heap; `len` is the size of a value.
    pub(super) fn heap_size(&self, len: impl Fn(&T) -> usize) -> usize {
        let values = self.shards.iter().flatten().map(|value| 2 * size_of::<usize>() + len(value));
        let tables = self.shards.iter().map(HashTable::allocation_size);
        values.chain(tables).sum::<usize>() + self.shards.capacity() * size_of::<HashTable<Arc<T>>>()
    }

    fn insert(&mut self, hash: u64, value: Arc<T>) {
        let at = shard_of(hash, self.shards.len());
        let hasher = |value: &Arc<T>| self.hasher.hash_one(&**value);
        self.shards[at].insert_unique(hash, value, hasher);
        self.len += 1;
    }

    /// Removes the unused values of the next shard, and shards that are no longer needed.
    fn sweep_next(&mut self) {
        self.next = if self.next + 1 < self.shards.len() { self.next + 1 } else { 0 };
        let shard = &mut self.shards[self.next];
        let before = shard.len();
        shard.retain(|value| Arc::strong_count(value) > 1);
        self.len -= before - shard.len();
        let hasher = |value: &Arc<T>| self.hasher.hash_one(&**value);
        shard.shrink_to(2 * shard.len(), hasher);
        for _ in 0..JOINS {
            if self.shards.len() == 1 || self.len > self.shards.len() * SHARD / 4 {
                break;
            }
            self.join();
        }
    }

    /// Adds a shard, with values of the one that it divides.
    fn split(&mut self) {
        let divided = divided_by(self.shards.len());
        let values = std::mem::take(&mut self.shards[divided]);
        self.shards.push(HashTable::new());
        self.move_used(values);
    }

    /// Removes the last shard.
    fn join(&mut self) {
        let values = self.shards.pop().unwrap_or_default();
        self.move_used(values);
        if self.shards.len() < self.shards.capacity() / 4 {
            self.shards.shrink_to(2 * self.shards.len());
        }
    }

    fn move_used(&mut self, values: HashTable<Arc<T>>) {
        self.len -= values.len();
        for value in values.into_iter().filter(|value| Arc::strong_count(value) > 1) {
            self.insert(self.hasher.hash_one(&*value), value);
        }
    }
}

/// The shard of a hash. Only the values of one shard change theirs when a shard is added.
fn shard_of(hash: u64, shards: usize) -> usize {
    let bits = (hash >> SHARD_BITS) as usize;
    let at = bits & (shards.next_power_of_two() - 1);
    if at < shards { at } else { divided_by(at) }
}

/// The shard that had the values of a shard before that was added: its number without the highest bit.
fn divided_by(added: usize) -> usize {
    added & !(1 << added.ilog2())
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self {
            shards: vec![HashTable::new()],
            hasher: DefaultHashBuilder::default(),
            len: 0,
            next: 0,
            arrived: 0,
            unswept: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(numbers: std::ops::Range<usize>) -> impl Iterator<Item = Arc<str>> {
        numbers.map(|number| number.to_string().into())
    }

    impl Interner<str> {
        fn check(&self) {
            for (at, shard) in self.shards.iter().enumerate() {
                assert!(shard.len() <= 8 * SHARD, "{} values in one shard", shard.len());
                let is_here =
                    |value: &Arc<str>| shard_of(self.hasher.hash_one(&**value), self.shards.len()) == at;
                assert!(shard.iter().all(is_here));
            }
            assert_eq!(self.shards.iter().map(HashTable::len).sum::<usize>(), self.len);
        }

        fn sweep_all(&mut self) {
            self.begin_sweep();
            while self.sweep_some(7) {}
        }
    }

    #[test]
    fn equal_values_are_shared_and_unused_ones_removed() {
        let mut interner = Interner::<str>::default();
        let first = interner.intern("same".into());
        assert!(Arc::ptr_eq(&first, &interner.intern("same".into())));
        for text in texts(0..10_000) {
            interner.intern(text);
            assert!(interner.len <= 2 * SHARD, "{}", interner.len);
        }
        assert!(Arc::ptr_eq(&first, &interner.intern("same".into())), "a value in use stays");
        interner.check();
    }

    #[test]
    fn shards_are_small_however_many_values_there_are() {
        let mut interner = Interner::<str>::default();
        let used: Vec<_> = texts(0..20_000).map(|text| interner.intern(text)).collect();
        interner.check();
        assert_eq!(interner.len, used.len());
        for text in texts(20_000..120_000) {
            interner.intern(text);
            assert!(interner.len < 3 * used.len(), "{}", interner.len);
        }
        interner.sweep_all();
        interner.check();
        assert_eq!(interner.len, used.len());
        for (text, used) in texts(0..20_000).zip(&used) {
            assert!(Arc::ptr_eq(&interner.intern(text), used));
        }
    }

    #[test]
    fn a_step_of_a_sweep_is_bounded_and_all_steps_leave_nothing() {
        let mut interner = Interner::<str>::default();
        let used: Vec<_> = texts(0..50_000).map(|text| interner.intern(text)).collect();
        drop(used);
        interner.begin_sweep();
        let mut more = true;
        while more {
            let before = interner.len;
            more = interner.sweep_some(1);
            let removed = before - interner.len;
            assert!(removed <= (1 + JOINS) * 2 * SHARD, "{removed} removed in one step");
        }
        interner.sweep_all();
        assert_eq!((interner.len, interner.shards.len()), (0, 1));
        assert!(interner.heap_size(str::len) < 1000);
    }
}
