use super::*;
use crate::{
    fixtures::{object, object_of},
    scope::Scope,
};

fn indexer() -> Indexer {
    Indexer::new(Partitions::of_scope(&Scope::All))
}

fn keys(snapshot: &Snapshot) -> Vec<String> {
    snapshot.objects().map(|object| object.key().to_string()).collect()
}

/// By uid, which several objects may share in these tests.
fn by_uid(indexer: &Indexer) -> Index<String> {
    let handle = Index::new();
    let extract = Extract::Object(Arc::new(|object: &AnyObject| Some(vec![object.uid().to_string()])));
    let mut store = indexer.begin();
    store.add_index(Box::new(TypedIndex::new(handle, extract)));
    store.publish();
    handle
}

#[test]
fn what_is_put_is_found_and_what_is_removed_is_not() {
    let indexer = indexer();
    let mut store = indexer.begin();
    assert!(store.put(object("ns/a", 1)).is_none());
    assert!(store.put(object("b", 2)).is_none());
    assert!(store.put(object("ns/a", 3)).is_some_and(|old| old.resource_version() == &1.into()));
    assert!(store.remove(object("ns/none", 1).key()).is_none(), "nothing to remove, nothing wrong");
    store.publish();
    let snapshot = indexer.snapshot();
    assert_eq!((keys(&snapshot), snapshot.len()), (vec!["b".to_owned(), "ns/a".into()], 2));
    let mut store = indexer.begin();
    assert!(store.remove(object("ns/a", 9).key()).is_some());
    assert!(store.get(object("ns/a", 9).key()).is_none());
    store.publish();
    assert_eq!(keys(&indexer.snapshot()), ["b"]);
}

#[test]
fn a_transaction_is_seen_whole_or_not_at_all() {
    let indexer = indexer();
    let by_uid = by_uid(&indexer);
    let mut store = indexer.begin();
    store.put(object_of("ns/a", "u", 1));
    store.put(object_of("ns/b", "u", 2));
    store.reach(BTreeMap::from([(0, 7.into())]));
    let uid = object_of("ns/a", "u", 1).uid().to_string();
    let before = indexer.snapshot();
    assert_eq!((before.len(), before.position(0)), (0, None));
    assert_eq!(before.index(by_uid.id).unwrap().get(&uid).count(), 0);
    store.publish();
    let after = indexer.snapshot();
    assert_eq!((after.len(), after.position(0)), (2, Some(&7.into())));
    assert_eq!(after.index(by_uid.id).unwrap().get(&uid).count(), 2);
    assert_eq!(before.len(), 0, "a snapshot never changes");
}

#[test]
fn a_dropped_transaction_never_was() {
    let indexer = indexer();
    let mut store = indexer.begin();
    store.put(object("ns/a", 1));
    drop(store);
    assert_eq!(indexer.snapshot().len(), 0);
}

#[test]
fn every_index_covers_exactly_the_store() {
    let indexer = indexer();
    let early = by_uid(&indexer);
    let mut rng = fastrand::Rng::with_seed(3);
    for version in 0..500 {
        let mut store = indexer.begin();
        let key = format!("ns/{}", rng.u8(0..20));
        match rng.bool() {
            true => drop(store.put(object_of(&key, &format!("u{}", rng.u8(0..4)), version))),
            false => drop(store.remove(&key.parse().unwrap())),
        }
        store.publish();
    }
    let late = by_uid(&indexer);
    let snapshot = indexer.snapshot();
    for index in [early, late] {
        let index = snapshot.index::<String>(index.id).unwrap();
        let mut filed: Vec<String> = Vec::new();
        for value in index.values() {
            let objects: Vec<_> = index.get(&value).collect();
            assert!(!objects.is_empty(), "no empty values are kept");
            assert!(objects.iter().all(|object| object.uid().to_string() == value));
            assert!(objects.iter().all(|object| object.is_identical(snapshot.get(object.key()).unwrap())));
            filed.extend(objects.iter().map(|object| object.key().to_string()));
        }
        filed.sort();
        assert_eq!(filed, keys(&snapshot));
    }
}

#[test]
fn bytes_follow_the_objects() {
    let indexer = indexer();
    let mut store = indexer.begin();
    store.put(object("ns/a", 1));
    store.put(object("ns/a", 1_000_000));
    store.put(object("ns/b", 1));
    assert_eq!(
        store.publish().bytes(),
        object("ns/a", 1_000_000).heap_size() + object("ns/b", 1).heap_size()
    );
    let mut store = indexer.begin();
    store.remove(object("ns/a", 1).key());
    store.remove(object("ns/b", 1).key());
    assert_eq!(store.publish().bytes(), 0);
}

#[test]
fn a_namespace_is_a_stretch_of_the_store() {
    let indexer = indexer();
    let mut store = indexer.begin();
    for key in ["a/x", "a-b/x", "ab/x", "a/w", "a", "b/x"] {
        store.put(object(key, 1));
    }
    let snapshot = store.publish();
    let names =
        |namespace: &str| snapshot.namespace(namespace).map(|o| o.key().to_string()).collect::<Vec<_>>();
    assert_eq!(names("a"), ["a/w", "a/x"]);
    assert_eq!(names("a-b"), ["a-b/x"]);
    assert!(names("c").is_empty());
    assert_eq!(snapshot.after(None).map(|o| o.key().to_string()).as_deref(), Some("a"));
    assert_eq!(snapshot.after(Some(object("b/x", 1).key())).map(|o| o.key().clone()), None);
}

#[test]
fn filled_is_when_every_partition_is() {
    let indexer = Indexer::new(Partitions::of_scope(&Scope::namespaces(["x", "y"])));
    for partition in [1, 0] {
        assert!(!indexer.snapshot().is_filled());
        let mut store = indexer.begin();
        store.fill(partition);
        store.publish();
        assert!(indexer.snapshot().is_partition_filled(partition));
    }
    assert!(indexer.snapshot().is_filled());
}

/// Readers on other threads while one writes: never half a transaction.
#[test]
fn readers_never_see_half_a_change() {
    let indexer = Arc::new(indexer());
    let by_uid = by_uid(&indexer);
    let reader = std::thread::spawn({
        let indexer = Arc::clone(&indexer);
        move || {
            let mut last = 0;
            while last < 299 {
                let snapshot = indexer.snapshot();
                let versions: Vec<_> =
                    snapshot.objects().map(|object| object.resource_version().number()).collect();
                assert!(versions.windows(2).all(|pair| pair[0] == pair[1]), "{versions:?}");
                let indexed: usize =
                    snapshot.index::<String>(by_uid.id).map_or(0, |index| index.values().len());
                assert_eq!(indexed, versions.len());
                last = versions.first().copied().flatten().unwrap_or(0);
            }
        }
    });
    for version in 0..300 {
        let mut store = indexer.begin();
        for key in ["ns/a", "ns/b", "ns/c"] {
            store.put(object(key, version));
        }
        store.publish();
    }
    reader.join().unwrap();
}
