//! Table from the hash of a key to its number.

use hashbrown::HashTable;

use crate::MAX_KEYS_PER_HASH;
use crate::ready::widen;

/// Number of entries above which one table is split into many.
const ONE_TABLE: usize = 8 * 1024;

/// Number of tables after the split.
const TABLES: usize = 256;

/// Maps hashes to numbers, which stand for keys that are stored elsewhere. Holds at most [`MAX_KEYS_PER_HASH`] numbers of
/// one hash, which bounds every search.
///
/// A large table is split into many small ones. Each grows on its own, within the processor's cache: growing costs half
/// as much in all, and no add has to wait until a million keys are moved.
pub(crate) struct Index {
    /// One table, or [`TABLES`] of them.
    tables: Vec<HashTable<u32>>,
    len: usize,
}

/// Result of [`Index::find`].
pub(crate) enum Lookup {
    Found(u32),
    Absent,
    /// The key is none of those in the table, and the table takes no more keys of this hash.
    Crowded,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self { tables: vec![HashTable::new()], len: 0 }
    }

    /// Finds the number under `hash` for which `matches` holds. `hash_of` returns the hash of a number in the table.
    pub(crate) fn find(
        &self,
        hash: u32,
        hash_of: impl Fn(u32) -> u32,
        matches: impl Fn(u32) -> bool,
    ) -> Lookup {
        let mut compared = 0;
        let found = self.tables[self.table(hash)].find(widen(hash), |&number| {
            let same_hash = hash_of(number) == hash;
            compared += usize::from(same_hash);
            same_hash && matches(number)
        });
        match found {
            Some(&number) => Lookup::Found(number),
            None if compared < MAX_KEYS_PER_HASH => Lookup::Absent,
            None => Lookup::Crowded,
        }
    }

    /// Inserts a number that [`find`](Index::find) found to be absent.
    pub(crate) fn insert(&mut self, hash: u32, number: u32, hash_of: impl Fn(u32) -> u32) {
        if self.len == ONE_TABLE && self.tables.len() == 1 {
            self.split(&hash_of);
        }
        let table = self.table(hash);
        self.tables[table].insert_unique(widen(hash), number, |&number| widen(hash_of(number)));
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, hash: u32, number: u32) {
        let table = self.table(hash);
        if let Ok(entry) = self.tables[table].find_entry(widen(hash), |&other| other == number) {
            entry.remove();
            self.len -= 1;
        }
    }

    /// Index of the table for a hash. Tables choose a bucket by the lowest bits and tell its entries apart by the
    /// highest; this uses the bits between them.
    fn table(&self, hash: u32) -> usize {
        (hash >> 16) as usize & (self.tables.len() - 1)
    }

    fn split(&mut self, hash_of: &impl Fn(u32) -> u32) {
        let one = std::mem::take(&mut self.tables);
        self.tables = (0..TABLES).map(|_| HashTable::with_capacity(2 * ONE_TABLE / TABLES)).collect();
        for &number in one.iter().flatten() {
            let hash = hash_of(number);
            let table = self.table(hash);
            self.tables[table].insert_unique(widen(hash), number, |&number| widen(hash_of(number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_until_it_is_removed() {
        let (mut index, hash_of) = (Index::new(), |number: u32| number % 3);
        let find = |index: &Index, number| index.find(hash_of(number), hash_of, |other| other == number);
        (0..90).for_each(|number| index.insert(hash_of(number), number, hash_of));
        for number in 0..90 {
            assert!(matches!(find(&index, number), Lookup::Found(found) if found == number));
            index.remove(hash_of(number), number);
            assert!(matches!(find(&index, number), Lookup::Absent), "{number}");
        }
        assert_eq!(index.len, 0);
    }
}
