use super::*;
use crate::{fixtures::object, scope::Scope};
use std::cell::Cell;

const OBJECTS: usize = 20_000;

fn key(number: usize) -> ObjectKey {
    ObjectKey::namespaced(["a", "b"][number % 2], &format!("n{number:05}"))
}

/// A state of two partitions, none of whose objects is confirmed.
fn unconfirmed() -> Snapshot {
    let mut snapshot = Snapshot::new(0, Partitions::of_scope(&Scope::namespaces(["a", "b"]).unwrap()));
    let keys: Vec<_> = (0..OBJECTS).map(key).collect();
    for key in &keys {
        snapshot.put(object(key.as_str(), 1), &mut Vec::new());
    }
    for partition in [0, 1] {
        let own = keys.iter().filter(|key| snapshot.partitions.contains(partition, key)).cloned();
        snapshot.set_unconfirmed(partition, &own.collect::<Vec<_>>());
    }
    snapshot
}

/// Keys of leaves that both sets do not share.
fn unshared(old: &SortedSet<ObjectKey>, new: &SortedSet<ObjectKey>) -> usize {
    let compared = Cell::new(0);
    let removed = old.diff(new, |_, _| {
        compared.set(compared.get() + 1);
        true
    });
    removed.count() + compared.get()
}

#[test]
fn an_object_is_confirmed_without_a_copy_of_all_unconfirmed_keys() {
    let before = unconfirmed();
    let mut after = before.clone();
    after.put(object(key(500).as_str(), 2), &mut Vec::new());
    after.remove(&key(15_001));
    assert!(after.is_confirmed(&key(500)) && after.is_confirmed(&key(15_001)));
    assert!(!before.is_confirmed(&key(500)) && !after.is_confirmed(&key(501)));
    let unshared = unshared(&before.unconfirmed, &after.unconfirmed);
    assert!(unshared < 200, "{unshared} of {OBJECTS} keys copied for two changes");
}

#[test]
fn a_list_replaces_the_unconfirmed_keys_of_its_partition() {
    let mut snapshot = unconfirmed();
    snapshot.set_unconfirmed(0, &[key(8)]);
    assert_eq!(snapshot.unconfirmed.len(), OBJECTS / 2 + 1);
    assert!(
        snapshot.is_confirmed(&key(6)) && !snapshot.is_confirmed(&key(8)) && !snapshot.is_confirmed(&key(7))
    );
    snapshot.set_unconfirmed(1, &[]);
    snapshot.set_unconfirmed(0, &[]);
    assert!(snapshot.is_confirmed(&key(8)) && snapshot.is_confirmed(&key(7)));
}
