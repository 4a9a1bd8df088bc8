use super::*;
use crate::{
    fixtures::{object, object_of},
    scope::Scope,
};

fn indexer() -> Indexer {
    Indexer::new(Partitions::of_scope(&Scope::all()))
}

fn keys(snapshot: &Snapshot) -> Vec<String> {
    snapshot.objects().map(|object| object.key().to_string()).collect()
}

/// By uid, which several objects may share in these tests.
fn by_uid(indexer: &Indexer) -> Index<String> {
    let uid = |object: &AnyObject| Some(vec![object.uid().to_string()]);
    let (id, _) = indexer.add_index(&NewIndex::Function(Extract::Function(Arc::new(uid))), || ());
    Index::new(id)
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
    assert_eq!(before.index::<String>(by_uid.id).unwrap().get(&uid).count(), 0);
    store.publish();
    let after = indexer.snapshot();
    assert_eq!((after.len(), after.position(0)), (2, Some(&7.into())));
    assert_eq!(after.index::<String>(by_uid.id).unwrap().get(&uid).count(), 2);
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
    assert_eq!(store.publish().bytes(), object("ns/a", 1_000_000).own_size() + object("ns/b", 1).own_size());
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
    let snapshot = snapshot.contents();
    assert_eq!(snapshot.after(None).map(|o| o.key().to_string()).as_deref(), Some("a"));
    assert_eq!(snapshot.after(Some(object("b/x", 1).key())).map(|o| o.key().clone()), None);
}

#[test]
fn filled_is_when_every_partition_is() {
    let indexer = Indexer::new(Partitions::of_scope(&Scope::namespaces(["x", "y"]).unwrap()));
    for partition in [1, 0] {
        assert!(!indexer.snapshot().is_listed());
        let mut store = indexer.begin();
        store.mark_listed(partition);
        store.publish();
        assert!(indexer.snapshot().is_partition_listed(partition));
    }
    assert!(indexer.snapshot().is_listed());
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
                let indexed: usize = snapshot.index::<String>(by_uid.id).unwrap().values().len();
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

/// `data.one` and `data.two` of an object: a text, missing, or something that cannot be decoded.
fn with_fields(key: &str, version: u64, rng: &mut fastrand::Rng) -> AnyObject {
    let mut field = |name: &str| match rng.u8(0..4) {
        0 => String::new(),
        1 => format!(r#""{name}":"\ud800","#),
        value => format!(r#""{name}":"{value}","#),
    };
    let data = format!("{}{}", field("one"), field("two"));
    let name = key.strip_prefix("ns/").unwrap();
    let meta =
        format!(r#"{{"namespace":"ns","name":"{name}","uid":"{name}","resourceVersion":"{version}"}}"#);
    crate::fixtures::parse_text(&format!(
        r#"{{"metadata":{meta},"data":{{{}}}}}"#,
        data.trim_end_matches(',')
    ))
}

fn field_index(indexer: &Indexer, path: &str) -> Index<String> {
    let text = |found: &[serde_json::Value]| {
        found.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let (id, _) = indexer.add_index(&NewIndex::Field(path.parse().unwrap(), text), || ());
    Index::new(id)
}

/// The content of an index: its values with the versions of their objects, and how many it omits.
fn content(snapshot: &Snapshot, index: Index<String>) -> (Vec<(String, Vec<String>)>, usize) {
    let of = |value: &String| {
        let objects = snapshot.index::<String>(index.id).unwrap().get(value);
        objects.map(|object| format!("{}@{}", object.key(), object.resource_version())).collect()
    };
    let values = snapshot.index::<String>(index.id).unwrap().values();
    let omitted = snapshot.omitted(index.id).unwrap();
    (values.iter().map(|value| (value.clone(), of(value))).collect(), omitted)
}

/// Objects come and go, packed with the fields of this moment or not, while indexes over good and bad fields are added and
/// removed. An index is always what a new one would be.
#[test]
fn an_index_does_not_depend_on_when_it_was_added() {
    let packer = kube_informer_wire::Packer::new(kube_informer_wire::Packing::Packed);
    for seed in 0..50 {
        let (indexer, mut rng) = (indexer(), fastrand::Rng::with_seed(seed));
        let mut indexes: Vec<(&str, Index<String>)> = Vec::new();
        for version in 0..60 {
            match rng.u8(0..8) {
                0 => {
                    let path = ["data.one", "data.two", "metadata.name"][rng.usize(0..3)];
                    indexes.push((path, field_index(&indexer, path)));
                }
                1 if !indexes.is_empty() => {
                    let (_, index) = indexes.swap_remove(rng.usize(0..indexes.len()));
                    indexer.remove_index(index.id, || ()).unwrap();
                }
                _ => {
                    let key = format!("ns/{}", rng.u8(0..6));
                    let mut store = indexer.begin();
                    if rng.u8(0..4) == 0 {
                        store.remove(&key.parse().unwrap());
                    } else {
                        let object = with_fields(&key, version, &mut rng);
                        let fields = Arc::clone(indexer.snapshot().fields());
                        let packed = rng.bool();
                        store.put(if packed { packer.pack_with(object, &fields) } else { object });
                    }
                    store.publish();
                }
            }
            let snapshot = indexer.snapshot();
            let fresh = self::indexer();
            let mut store = fresh.begin();
            for object in snapshot.objects() {
                let json = String::from_utf8(object.json().unwrap().to_vec()).unwrap();
                store.put(crate::fixtures::parse_text(&json));
            }
            store.publish();
            for (path, index) in &indexes {
                let new = field_index(&fresh, path);
                assert_eq!(
                    content(&snapshot, *index),
                    content(&fresh.snapshot(), new),
                    "{path} of seed {seed}"
                );
            }
        }
    }
}

/// A value whose comparison or drop panics on demand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bomb(pub(super) String);

impl Ord for Bomb {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        assert!(!self.0.contains("ord") && !other.0.contains("ord"), "on purpose");
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Bomb {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl std::borrow::Borrow<str> for Bomb {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(!self.0.contains("drop"), "on purpose");
    }
}

/// Panics of `Ord` and of drops cost the object its place in the index; the index stays right about all others.
#[test]
fn values_that_panic_cost_their_own_object_only() {
    let indexer = indexer();
    let by_name = |object: &AnyObject| Some(vec![Bomb(object.name().to_owned())]);
    let new = NewIndex::Function(Extract::Function(Arc::new(by_name)));
    let (id, _) = indexer.add_index(&new, || ());
    let mut rng = fastrand::Rng::with_seed(1);
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    for version in 0..2000 {
        let name = match rng.u8(0..40) {
            n @ 0..2 => format!("ord{n}"),
            n @ 2..4 => format!("drop{n}"),
            n => format!("n{n}"),
        };
        let mut store = indexer.begin();
        if rng.bool() {
            versions.insert(name.clone(), version);
            store.put(object(&format!("ns/{name}"), version));
        } else {
            versions.remove(&name);
            store.remove(&format!("ns/{name}").parse().unwrap());
        }
        let panicked = store.panicked.clone();
        store.publish();
        assert_eq!(panicked.is_empty(), !name.contains("ord") || !versions.contains_key(&name), "{name}");
        let snapshot = indexer.snapshot();
        let index = snapshot.index::<Bomb>(id).unwrap();
        let sound = versions.keys().filter(|name| !name.contains("ord"));
        for name in sound.clone() {
            let found: Vec<_> = index.get(name.as_str()).collect();
            assert_eq!(found.len(), 1, "{name}");
            assert_eq!(found[0].resource_version(), &versions[name].into());
        }
        assert_eq!(snapshot.omitted(id).unwrap(), versions.len() - sound.count());
    }
}
