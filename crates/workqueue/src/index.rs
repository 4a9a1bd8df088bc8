//! Finding a key's number by its hash.

use hashbrown::HashTable;

use crate::ready::widen;

/// Numbers above which one table becomes many.
const ONE_TABLE: usize = 8 * 1024;

/// How many tables there are then.
const TABLES: usize = 256;

/// A table from hashes to numbers, which stand for keys that are stored elsewhere.
///
/// A large one is cut into many small tables. Each grows on its own, within the processor's cache: growing costs
/// half as much in all, and there is no moment at which an add has to wait for a million keys to be moved.
pub(crate) struct Index {
    /// One table, or [`TABLES`] of them.
    tables: Vec<HashTable<u32>>,
    len: usize,
}

impl Index {
    pub(crate) fn new() -> Self {
        Self { tables: vec![HashTable::new()], len: 0 }
    }

    /// The number under `hash` for which `is_it` holds.
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        self.tables[self.table(hash)].find(widen(hash), |&number| is_it(number)).copied()
    }

    /// Inserts a number that is not there; `rehash` tells the hash of any number that is.
    pub(crate) fn insert(&mut self, hash: u32, number: u32, rehash: impl Fn(u32) -> u32) {
        if self.len == ONE_TABLE && self.tables.len() == 1 {
            self.cut(&rehash);
        }
        let table = self.table(hash);
        self.tables[table].insert_unique(widen(hash), number, |&number| widen(rehash(number)));
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, hash: u32, number: u32) {
        let table = self.table(hash);
        if let Ok(entry) = self.tables[table].find_entry(widen(hash), |&other| other == number) {
            entry.remove();
            self.len -= 1;
        }
    }

    /// The tables choose a bucket by the lowest bits and tell its entries apart by the highest; this uses bits
    /// between them.
    fn table(&self, hash: u32) -> usize {
        (hash >> 16) as usize & (self.tables.len() - 1)
    }

    fn cut(&mut self, rehash: &impl Fn(u32) -> u32) {
        let one = std::mem::take(&mut self.tables);
        self.tables = (0..TABLES).map(|_| HashTable::with_capacity(2 * ONE_TABLE / TABLES)).collect();
        for &number in one.iter().flatten() {
            let hash = rehash(number);
            let table = self.table(hash);
            self.tables[table].insert_unique(widen(hash), number, |&number| widen(rehash(number)));
        }
    }
}
