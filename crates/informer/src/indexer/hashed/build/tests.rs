use super::*;
use crate::indexer::hashed::tests::hash_of;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

type Pair = (u16, u32);

fn inserted(entries: &[Pair], hash_of: impl Fn(&Pair) -> u64) -> HashTable<Pair> {
    let mut table = HashTable::new();
    for entry in entries {
        table.insert(hash_of(entry), *entry, |known| known.0 == entry.0, &hash_of);
    }
    table
}

fn built(entries: &[Pair], hash_of: impl Fn(&Pair) -> u64) -> HashTable<Pair> {
    HashTable::from_distinct(entries.iter().map(|entry| (hash_of(entry), *entry)).collect())
}

/// The pages by depth and entries, with the branches that they are in.
fn pages(node: &Node<Pair>, path: &[usize], pages: &mut BTreeMap<Vec<usize>, (u32, BTreeSet<Pair>)>) {
    match node {
        Node::Page(page) => {
            let entries = page.entries.iter().map(|entry| entry.value).collect();
            assert!(pages.insert(path.to_vec(), (page.depth, entries)).is_none());
        }
        Node::Branch(branch) => {
            for (at, child) in branch.children.iter().enumerate() {
                self::pages(child, &[path, &[at]].concat(), pages);
            }
        }
    }
}

fn check_same(built: &HashTable<Pair>, inserted: &HashTable<Pair>, hash_of: impl Fn(&Pair) -> u64) {
    let pages = |table: &HashTable<Pair>| {
        let mut found = BTreeMap::new();
        pages(&table.root, &[], &mut found);
        found
    };
    built.root.check(0, 0, 0, &hash_of);
    assert_eq!(pages(built), pages(inserted));
}

proptest! {
    #[test]
    fn distinct_entries_make_the_pages_that_inserting_them_makes(
        keys in prop::collection::btree_set(any::<u16>(), 0..3000),
        bits in 0..=64_u32,
        steps in prop::collection::vec((any::<u16>(), any::<bool>()), 0..1000),
    ) {
        // Few bits of the hash: many entries have the same one.
        let hash_of = |entry: &Pair| hash_of(entry) & u64::MAX.checked_shl(64 - bits).unwrap_or(0);
        let entries: Vec<Pair> = keys.into_iter().map(|key| (key, 0)).collect();
        let (mut table, mut model) = (built(&entries, hash_of), inserted(&entries, hash_of));
        check_same(&table, &model, hash_of);
        prop_assert!(table.heap_size() <= model.heap_size());
        let first = table.clone();
        for (n, (key, insert)) in steps.into_iter().enumerate() {
            let key = if n % 2 == 0 { key } else { entries.get(n).map_or(key, |entry| entry.0) };
            let (entry, is_it) = ((key, n as u32 + 1), |known: &Pair| known.0 == key);
            let hash = hash_of(&entry);
            let (a, b) = match insert {
                true => (
                    table.insert(hash, entry, is_it, hash_of),
                    model.insert(hash, entry, is_it, hash_of),
                ),
                false => (table.remove(hash, is_it), model.remove(hash, is_it)),
            };
            prop_assert_eq!(a, b);
            prop_assert_eq!(table.get(hash, is_it), model.get(hash, is_it));
        }
        check_same(&table, &model, hash_of);
        for entry in &entries {
            prop_assert_eq!(first.get(hash_of(entry), |known| known.0 == entry.0), Some(entry));
        }
    }
}

#[test]
fn entries_of_one_hash_share_a_page() {
    for shared in [0, 7, u64::MAX] {
        // Some entries of other hashes, so that the page is not the only one.
        let hash_of = |entry: &Pair| if entry.0 < 1000 { shared } else { hash_of(&(entry.0, 0)) };
        let entries: Vec<Pair> = (0..1100).map(|key| (key, 0)).collect();
        let mut table = built(&entries, hash_of);
        check_same(&table, &inserted(&entries, hash_of), hash_of);
        for entry in &entries {
            assert_eq!(table.remove(hash_of(entry), |known| known == entry), Some(*entry));
        }
        assert_eq!(table.root.check(0, 0, 0, &hash_of), 0);
    }
}

#[test]
fn a_table_of_nothing_is_an_empty_one() {
    let mut table = built(&[], hash_of);
    check_same(&table, &HashTable::new(), hash_of);
    assert_eq!(table.insert(5, (1, 1), |_| false, hash_of), None);
    assert_eq!(table.get(5, |_| true), Some(&(1, 1)));
}
