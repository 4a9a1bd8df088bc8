use super::*;
use crate::indexer::sorted::{
    Change,
    tests::{Key, Numbered, numbers},
};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

fn numbered(keys: impl IntoIterator<Item = u16>) -> Vec<Numbered> {
    keys.into_iter().zip(0..).map(|(key, n)| Numbered(key, Arc::new(n))).collect()
}

fn inserted(entries: &[Numbered]) -> SortedSet<Numbered> {
    let mut set = SortedSet::new();
    entries.iter().for_each(|entry| _ = set.insert(entry.clone()));
    set
}

/// The sizes of all nodes, the children of a node after it.
fn shape(node: &Node<Numbered>) -> Vec<usize> {
    let below = match node {
        Node::Leaf(_) => &[][..],
        Node::Inner(children) => children,
    };
    [node.len()].into_iter().chain(below.iter().flat_map(|child| shape(&child.node))).collect()
}

/// Checks that both have the same entries in the same nodes.
fn check_same(built: &SortedSet<Numbered>, inserted: &SortedSet<Numbered>) {
    built.root.iter().for_each(|root| _ = root.check());
    assert_eq!(built.len(), inserted.len());
    assert_eq!(numbers(built.iter()), numbers(inserted.iter()));
    assert_eq!(built.root.as_deref().map(shape), inserted.root.as_deref().map(shape));
    assert_eq!(inserted.diff(built, |a, b| Arc::ptr_eq(&a.1, &b.1)).count(), 0);
}

#[test]
fn ascending_entries_make_the_nodes_that_inserting_them_makes() {
    let full = LEAF * INNER;
    let around = |len: usize| len.saturating_sub(1)..=len + 1;
    let lens = [0, LEAF, 2 * LEAF, full, 2 * full, full + LEAF].into_iter().flat_map(around);
    for len in lens.chain([60_000]) {
        let entries = numbered(0..len as u16);
        let (built, inserted) = (SortedSet::from_sorted(entries.iter().cloned()), inserted(&entries));
        check_same(&built, &inserted);
        assert!(built.heap_size() <= inserted.heap_size());
    }
    let third_level = (LEAF * INNER * INNER + 1) as u32;
    let set = SortedSet::from_sorted(0..third_level);
    assert!(set.iter().copied().eq(0..third_level));
    assert_eq!(set.get(&(third_level - 1)), Some(&(third_level - 1)));
}

#[test]
fn ascending_entries_take_no_more_room_than_they_need() {
    let mut set = SortedSet::from_sorted(numbered(0..(3 * LEAF as u16 + 5)));
    let node = 2 * size_of::<usize>() + size_of::<Node<Numbered>>();
    let entries = (3 * LEAF + 5) * size_of::<Numbered>() + 4 * size_of::<Child<Numbered>>();
    assert_eq!(set.heap_size(), 5 * node + entries);
    set = SortedSet::from_sorted(Vec::new());
    assert_eq!((set.heap_size(), set.len(), set.root.is_none()), (0, 0, true));
}

proptest! {
    #[test]
    fn any_entries_make_the_set_that_inserting_them_makes(
        ascending in 0..5000_u16,
        rest in prop::collection::vec(any::<u16>(), 0..300),
        steps in prop::collection::vec((any::<u16>(), any::<bool>()), 0..1000),
    ) {
        let keys = (0..ascending).map(|key| key * 3);
        let entries = numbered(keys.chain(rest.into_iter().map(|key| key % 16_000)));
        let (built, model) = (SortedSet::from_sorted(entries.iter().cloned()), inserted(&entries));
        check_same(&built, &model);
        // Changed in the same way from here on, while the first state of both is kept.
        let (mut later, mut expected) = (built.clone(), model.clone());
        for (n, (key, insert)) in steps.into_iter().enumerate() {
            let key = key % 16_000;
            let entry = Numbered(key, Arc::new(100_000 + n as u32));
            let (a, b) = match insert {
                true => (later.insert(entry.clone()), expected.insert(entry)),
                false => (later.remove(&Key(key)), expected.remove(&Key(key))),
            };
            prop_assert_eq!(a.map(|entry| *entry.1), b.map(|entry| *entry.1));
            prop_assert_eq!(later.get(&Key(key)).is_some(), insert);
        }
        check_same(&later, &expected);
        check_same(&built, &model);
        let changes = |old: &SortedSet<Numbered>, new: &SortedSet<Numbered>| {
            let change = |change: Change<'_, Numbered>| match change {
                Change::Added(new) => (None, Some(*new.1)),
                Change::Replaced { old, new } => (Some(*old.1), Some(*new.1)),
                Change::Removed(old) => (Some(*old.1), None),
            };
            old.diff(new, |a, b| Arc::ptr_eq(&a.1, &b.1)).map(change).collect::<Vec<_>>()
        };
        prop_assert_eq!(changes(&built, &later), changes(&model, &expected));
    }
}

#[test]
fn a_builder_says_whether_entries_ascend() {
    let mut builder = SetBuilder::new();
    for key in [1, 5, 7] {
        builder.push(key);
        assert!(builder.is_ascending());
    }
    builder.push_greater(8);
    builder.push(8);
    assert!(!builder.is_ascending(), "an equal one is not greater");
    builder.push(9);
    assert_eq!(builder.finish().iter().copied().collect::<Vec<_>>(), [1, 5, 7, 8, 9]);
}

#[test]
fn a_panic_while_comparing_adds_nothing() {
    #[derive(Clone, PartialEq, Eq)]
    struct Fussy(u32);
    impl PartialOrd for Fussy {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Fussy {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            assert!(self.0 != 500 && other.0 != 500, "comparing");
            self.0.cmp(&other.0)
        }
    }
    for last in [1000, 0] {
        let mut builder = SetBuilder::new();
        (0..500).chain(501..700).chain([last]).for_each(|number| builder.push(Fussy(number)));
        assert_eq!(builder.is_ascending(), last > 700);
        assert!(catch_unwind(AssertUnwindSafe(|| builder.push(Fussy(500)))).is_err());
        assert_eq!(builder.is_ascending(), last > 700);
        builder.push(Fussy(2000));
        let set = builder.finish();
        assert_eq!((set.len(), set.iter().count()), (set.len(), 700 + usize::from(last > 700)));
    }
}
