use super::*;
use proptest::prelude::*;
use std::{collections::BTreeMap, panic::AssertUnwindSafe};

/// Compared by the first number only; the second one tells who it is.
#[derive(Debug, Clone)]
struct Numbered(u16, Arc<u32>);

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

struct Key(u16);

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
    fn check(&self) -> usize {
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

fn numbers(set: Iter<'_, Numbered>) -> Vec<(u16, u32)> {
    set.map(|entry| (entry.0, *entry.1)).collect()
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
                let old = set.insert(Numbered(key, Arc::new(n)));
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
    #[derive(Clone, PartialEq, Eq, PartialOrd)]
    struct Fussy(u32);
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
