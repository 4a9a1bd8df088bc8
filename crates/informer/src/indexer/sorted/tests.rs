use super::*;
use proptest::prelude::*;
use std::{collections::BTreeMap, panic::AssertUnwindSafe};

/// Compared by the first number only; the second one distinguishes equal values.
#[derive(Debug, Clone)]
pub(super) struct Numbered(pub(super) u16, pub(super) Arc<u32>);

impl PartialEq for Numbered {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Numbered {}
impl PartialOrd for Numbered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Numbered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

pub(super) struct Key(pub(super) u16);

impl equivalent::Equivalent<Numbered> for Key {
    fn equivalent(&self, entry: &Numbered) -> bool {
        self.0 == entry.0
    }
}
impl Comparable<Numbered> for Key {
    fn compare(&self, entry: &Numbered) -> Ordering {
        self.0.cmp(&entry.0)
    }
}

impl Node<Numbered> {
    /// Checks the invariants of a node and returns its height.
    pub(super) fn check(&self) -> usize {
        match self {
            Self::Leaf(entries) => {
                assert!(!entries.is_empty() && entries.len() <= LEAF && entries.is_sorted());
                0
            }
            Self::Inner(children) => {
                assert!(children.len() <= INNER && !children.is_empty());
                for child in children {
                    assert!(Arc::ptr_eq(&child.first.1, &child.node.first().1), "the very first entry");
                }
                let heights: Vec<usize> = children.iter().map(|child| child.node.check()).collect();
                assert!(heights.windows(2).all(|pair| pair[0] == pair[1]));
                heights[0] + 1
            }
        }
    }
}

pub(super) fn numbers<'a>(entries: impl Iterator<Item = &'a Numbered>) -> Vec<(u16, u32)> {
    entries.map(|entry| (entry.0, *entry.1)).collect()
}

proptest! {
    #[test]
    fn behaves_like_a_map(steps in prop::collection::vec((any::<u16>(), 0..5_u8), 1..1500), keys in 1..2000_u16) {
        let (mut set, mut model) = (SortedSet::new(), BTreeMap::new());
        let mut clones = Vec::new();
        for (n, (key, step)) in steps.into_iter().enumerate() {
            let (key, n) = (key % keys, n as u32);
            if step < 2 {
                let removed = set.remove(&Key(key));
                prop_assert_eq!(removed.map(|entry| *entry.1), model.remove(&key));
            } else {
                let new = Numbered(key, Arc::new(n));
                let known = set.get(&Key(key)).map(|entry| Arc::clone(&entry.1));
                let is_old = |entry: &Numbered| known.as_ref().is_some_and(|old| Arc::ptr_eq(old, &entry.1));
                let old = if step == 2 { set.replace(new, is_old) } else { set.insert(new) };
                prop_assert_eq!(old.map(|entry| *entry.1), model.insert(key, n));
            }
            if n % 300 == 0 {
                clones.push((set.clone(), model.clone()));
            }
        }
        clones.push((set, model));
        for (set, model) in clones {
            if let Some(root) = &set.root {
                root.check();
            }
            let all: Vec<(u16, u32)> = model.iter().map(|(key, n)| (*key, *n)).collect();
            prop_assert_eq!(set.len(), all.len());
            prop_assert_eq!(numbers(set.iter()), all);
            for key in (0..keys).step_by(37) {
                let rest: Vec<(u16, u32)> = model.range(key..).map(|(key, n)| (*key, *n)).collect();
                prop_assert_eq!(numbers(set.from(&Key(key))), rest);
                prop_assert_eq!(set.get(&Key(key)).map(|entry| *entry.1), model.get(&key).copied());
            }
        }
    }
}

proptest! {
    #[test]
    fn both_ends_meet(len in 0..5000_u16, ends in prop::collection::vec(any::<bool>(), 0..200)) {
        let mut set = SortedSet::new();
        for key in 0..len {
            set.insert(Numbered(key, Arc::new(0)));
        }
        let (mut iter, mut model) = (set.iter(), 0..len);
        for front in ends.iter().cycle().take(usize::from(len) + 2) {
            let (found, expected) =
                if *front { (iter.next(), model.next()) } else { (iter.next_back(), model.next_back()) };
            prop_assert_eq!(found.map(|entry| entry.0), expected);
            prop_assert_eq!(iter.len(), model.len());
        }
    }

    #[test]
    fn a_diff_is_exactly_what_changed(
        before in prop::collection::vec(any::<u16>(), 0..1500),
        steps in prop::collection::vec((any::<u16>(), any::<bool>()), 0..200),
        keys in 1..3000_u16,
    ) {
        let mut old = SortedSet::new();
        for key in before {
            old.insert(Numbered(key % keys, Arc::new(0)));
        }
        let mut new = old.clone();
        for (n, (key, insert)) in steps.into_iter().enumerate() {
            match insert {
                true => drop(new.insert(Numbered(key % keys, Arc::new(n as u32)))),
                false => drop(new.remove(&Key(key % keys))),
            }
        }
        let mut patched: BTreeMap<u16, Arc<u32>> = old.iter().map(|entry| (entry.0, Arc::clone(&entry.1))).collect();
        for change in old.diff(&new, |a, b| Arc::ptr_eq(&a.1, &b.1)) {
            match change {
                Change::Added(entry) => prop_assert!(patched.insert(entry.0, Arc::clone(&entry.1)).is_none()),
                Change::Replaced { old, new } => {
                    prop_assert!(!Arc::ptr_eq(&old.1, &new.1));
                    prop_assert!(patched.insert(new.0, Arc::clone(&new.1)).is_some_and(|known| Arc::ptr_eq(&known, &old.1)));
                }
                Change::Removed(entry) => {
                    prop_assert!(patched.remove(&entry.0).is_some_and(|known| Arc::ptr_eq(&known, &entry.1)));
                }
            }
        }
        let patched: Vec<(u16, u32)> = patched.into_iter().map(|(key, n)| (key, *n)).collect();
        prop_assert_eq!(patched, numbers(new.iter()));
    }
}

#[test]
fn a_diff_looks_only_at_what_is_not_shared() {
    let mut old = SortedSet::new();
    for key in 0..60_000 {
        old.insert(Numbered(key, Arc::new(0)));
    }
    let mut new = old.clone();
    new.insert(Numbered(30_000, Arc::new(1)));
    new.remove(&Key(50));
    new.insert(Numbered(60_001, Arc::new(1)));
    let looked = std::cell::Cell::new(0);
    let changes = old.diff(&new, |a, b| {
        looked.set(looked.get() + 1);
        Arc::ptr_eq(&a.1, &b.1)
    });
    assert_eq!(changes.count(), 3);
    assert!(looked.get() < 6 * LEAF, "{} of 60,000", looked.get());
}

#[test]
fn what_is_removed_or_replaced_is_gone() {
    let mut set = SortedSet::new();
    let entries: Vec<Arc<u32>> = (0..5000).map(Arc::new).collect();
    for (key, entry) in entries.iter().enumerate() {
        set.insert(Numbered(key as u16, Arc::clone(entry)));
    }
    for key in (0..5000).step_by(2) {
        set.remove(&Key(key));
    }
    for key in (1..5000).step_by(2) {
        set.insert(Numbered(key, Arc::new(7)));
    }
    assert!(entries.iter().all(|entry| Arc::strong_count(entry) == 1));
}

#[test]
fn ascending_entries_fill_their_leaves() {
    let mut set = SortedSet::new();
    for key in 0..10_000 {
        set.insert(Numbered(key, Arc::new(0)));
    }
    fn leaves(node: &Node<Numbered>) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Inner(children) => children.iter().map(|child| leaves(&child.node)).sum(),
        }
    }
    assert_eq!(leaves(set.root.as_ref().unwrap()), 10_000_usize.div_ceil(LEAF));
}

#[test]
fn a_panic_while_comparing_changes_nothing() {
    #[derive(Clone, PartialEq, Eq)]
    struct Fussy(u32);
    impl PartialOrd for Fussy {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Fussy {
        fn cmp(&self, other: &Self) -> Ordering {
            assert!(self.0 != 500 && other.0 != 500, "comparing");
            self.0.cmp(&other.0)
        }
    }
    let mut set = SortedSet::new();
    for number in (0..1000).step_by(2).filter(|number| *number != 500) {
        set.insert(Fussy(number));
    }
    assert!(std::panic::catch_unwind(AssertUnwindSafe(|| set.insert(Fussy(500)))).is_err());
    assert_eq!((set.len(), set.iter().count()), (499, 499));
}

#[test]
fn an_entry_that_is_known_to_be_replaced_is_not_compared_within_its_leaf() {
    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Incomparable(u32);
    impl PartialOrd for Incomparable {
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Incomparable {
        fn cmp(&self, _: &Self) -> Ordering {
            panic!("compared")
        }
    }
    let mut set = SortedSet::new();
    set.insert(Incomparable(1));
    assert_eq!(set.replace(Incomparable(2), |entry| entry.0 == 1), Some(Incomparable(1)));
    assert_eq!((set.len(), set.iter().next()), (1, Some(&Incomparable(2))));
}
