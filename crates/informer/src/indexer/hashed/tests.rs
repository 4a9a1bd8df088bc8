use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// A number whose hash has few bits, so that pages split deep and merge again.
pub(super) fn hash_of(&(key, _): &(u16, u32)) -> u64 {
    let spread = u64::from(key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    if key % 3 == 0 { spread & 0xFFF0_0000_0000_0000 } else { spread }
}

impl<E: Clone> Node<E> {
    /// Checks the invariants of a node and returns its entries.
    pub(super) fn check(&self, level: u32, prefix: u64, bits: u32, hash_of: &dyn Fn(&E) -> u64) -> usize {
        match self {
            Self::Page(page) => {
                assert_eq!(page.depth, bits);
                for entry in &page.entries {
                    let hash = hash_of(&entry.value);
                    assert_eq!(entry.tag, hash as u32);
                    assert_eq!(
                        hash.checked_shr(64 - bits).unwrap_or(0),
                        prefix.checked_shr(64 - bits).unwrap_or(0)
                    );
                }
                page.entries.len()
            }
            Self::Branch(branch) => {
                assert_eq!(bits, BRANCH_BITS * level);
                assert_eq!(branch.starts & 1, 1);
                assert_eq!(branch.starts.count_ones() as usize, branch.children.len());
                assert!(branch.children.len() > 1 || matches!(branch.children[0], Node::Branch(_)));
                let starts: Vec<u32> = (0..64).filter(|slot| branch.starts >> slot & 1 == 1).collect();
                let ends = starts.iter().skip(1).copied().chain([64]);
                starts
                    .iter()
                    .zip(ends)
                    .zip(&branch.children)
                    .map(|((&start, end), child)| {
                        let width = end - start;
                        assert!(width.is_power_of_two() && start % width == 0, "{start} {end}");
                        let own = BRANCH_BITS - width.trailing_zeros();
                        let prefix = prefix | u64::from(start) << (64 - BRANCH_BITS * (level + 1));
                        child.check(level + 1, prefix, bits + own, hash_of)
                    })
                    .sum()
            }
        }
    }
}

proptest! {
    #[test]
    fn behaves_like_a_map(steps in prop::collection::vec((any::<u16>(), 0..4_u8), 1..2000), keys in 1..3000_u16) {
        let (mut table, mut model) = (HashTable::new(), HashMap::new());
        let mut clones = Vec::new();
        for (n, (key, step)) in steps.into_iter().enumerate() {
            let (key, n) = (key % keys, n as u32);
            let hash = hash_of(&(key, 0));
            if step == 0 {
                let removed = table.remove(hash, |entry: &(u16, u32)| entry.0 == key);
                prop_assert_eq!(removed.map(|entry| entry.1), model.remove(&key));
            } else {
                let old = table.insert(hash, (key, n), |entry| entry.0 == key, hash_of);
                prop_assert_eq!(old.map(|entry| entry.1), model.insert(key, n));
            }
            if n % 500 == 0 {
                clones.push((table.clone(), model.clone()));
            }
        }
        clones.push((table, model));
        for (table, model) in clones {
            prop_assert_eq!(table.root.check(0, 0, 0, &hash_of), model.len());
            for (key, n) in model {
                prop_assert_eq!(table.get(hash_of(&(key, 0)), |entry| entry.0 == key), Some(&(key, n)));
            }
        }
    }
}

#[test]
fn entries_of_one_hash_are_told_apart() {
    let mut table = HashTable::new();
    for key in 0..1000_u32 {
        assert_eq!(table.insert(7, key, |entry| *entry == key, |_| 7), None);
    }
    assert!((0..1000).all(|key| table.get(7, |entry| *entry == key) == Some(&key)));
    assert!((0..1000).all(|key| table.remove(7, |entry| *entry == key) == Some(key)));
    assert_eq!(table.root.check(0, 0, 0, &|_| 7), 0);
}

#[test]
fn an_emptied_table_is_one_page() {
    let mut table = HashTable::new();
    let hash = |key: &u32| u64::from(*key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for key in 0..10_000_u32 {
        table.insert(hash(&key), key, |entry| *entry == key, hash);
    }
    for key in 0..10_000_u32 {
        table.remove(hash(&key), |entry| *entry == key);
    }
    assert!(matches!(table.root, Node::Page(_)));
}

#[test]
fn a_panic_while_comparing_changes_nothing() {
    let mut table = HashTable::new();
    for key in 0..100_u32 {
        table.insert(u64::from(key) << 56, key, |entry| *entry == key, |key| u64::from(*key) << 56);
    }
    let insert = std::panic::AssertUnwindSafe(|| {
        table.insert(5 << 56, 5, |_| panic!("comparing"), |_| panic!("hashing"))
    });
    assert!(std::panic::catch_unwind(insert).is_err());
    assert!((0..100).all(|key| table.get(u64::from(key) << 56, |entry| *entry == key) == Some(&key)));
}
