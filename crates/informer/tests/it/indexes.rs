//! Finding objects by something other than their name.

use crate::support::{Errors, object, settle, source, started, watched};
use kube_informer::{IndexMissing, Limits, Object, SharedInformer, WatchEvent, testing::FakeSource};
use serde::Deserialize;
use serde_json::{Value, json};

fn with_labels(name: &str, labels: Value) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "labels": labels}})
}

fn names(objects: &[Object<Value>]) -> Vec<&str> {
    objects.iter().map(Object::name).collect()
}

#[tokio::test(start_paused = true)]
async fn an_index_covers_everything_whenever_it_was_added() {
    let source = source();
    source.put(with_labels("a", json!({"app": "x"})));
    let informer = source.informer::<Value>(|builder| builder);
    let before = informer.index_label("app").unwrap();
    started(&informer).await;
    source.put(with_labels("b", json!({"app": "x"})));
    settle().await;
    let after = informer.index_label("app").unwrap();
    source.put(with_labels("c", json!({"app": "y"})));
    source.put(with_labels("d", json!({})));
    settle().await;
    for index in [before, after] {
        assert_eq!(names(&informer.lister().by(&index, "x").unwrap()), ["a", "b"]);
        assert_eq!(names(&informer.lister().by(&index, "y").unwrap()), ["c"]);
        assert_eq!(informer.lister().values(&index).unwrap(), ["x", "y"]);
    }
}

#[tokio::test(start_paused = true)]
async fn objects_move_between_values_and_empty_values_vanish() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    let index = informer
        .index(|object: &Object<Value>| {
            object.labels().iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>()
        })
        .unwrap();
    let values = |informer: &SharedInformer<Value>| informer.lister().values(&index).unwrap();
    source.put(with_labels("a", json!({"one": "", "two": ""})));
    source.put(with_labels("b", json!({"two": ""})));
    settle().await;
    assert_eq!(values(&informer), ["one", "two"]);
    assert_eq!(names(&informer.lister().by(&index, "two").unwrap()), ["a", "b"]);
    source.put(with_labels("a", json!({"two": "", "three": ""})));
    settle().await;
    assert_eq!(values(&informer), ["three", "two"]);
    source.delete("ns/a");
    settle().await;
    assert_eq!(values(&informer), ["two"], "no empty sets are kept");
    source.delete("ns/b");
    settle().await;
    assert!(values(&informer).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_index_shows_the_object_as_the_store_does() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    let index = informer.index(|_: &Object<Value>| Some(())).unwrap();
    source.put(object("a", 2));
    settle().await;
    let snapshot = informer.lister().snapshot();
    let indexed = snapshot.by(&index, &()).unwrap();
    assert!(indexed[0].is_identical(&snapshot.get(&"ns/a".parse().unwrap()).unwrap()));
}

#[derive(Deserialize)]
struct Slim {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    value: String,
}

#[tokio::test(start_paused = true)]
async fn what_an_index_cannot_read_is_left_out_and_counted() {
    let source = source();
    source.put(object("a", 1));
    source.put(json!({"metadata": {"namespace": "ns", "name": "odd"}, "data": 7}));
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let index = informer.index_view(|slim: &Slim| [slim.data.value.clone()]).unwrap();
    assert_eq!(informer.lister().values(&index).unwrap(), ["1"]);
    assert_eq!(informer.omitted_by(&index), Ok(1));
    source.put(object("odd", 3));
    settle().await;
    assert_eq!((informer.omitted_by(&index), recorder.take().len()), (Ok(0), 1));
    assert_eq!(informer.lister().values(&index).unwrap(), ["1", "3"]);
}

#[tokio::test(start_paused = true)]
async fn an_index_function_that_panics_harms_only_its_index() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("bad", 1));
    let errors = Errors::default();
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    let fragile = informer
        .index(|object: &Object<Value>| {
            assert_ne!(object.name(), "bad");
            Some(object.name().to_owned())
        })
        .unwrap();
    let sound = informer.index(|object: &Object<Value>| Some(object.name().to_owned())).unwrap();
    let recorder = crate::support::Recorder::default();
    informer.add_handler(recorder.clone());
    started(&informer).await;
    source.put(object("bad", 2));
    source.put(object("c", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+a@101!", "+bad@102!", "~bad@102>103", "+c@104"], "the pipeline goes on");
    assert_eq!(informer.lister().values(&fragile).unwrap(), ["a", "c"]);
    assert_eq!(informer.lister().values(&sound).unwrap(), ["a", "bad", "c"]);
    assert_eq!(informer.omitted_by(&fragile), Ok(1));
    assert_eq!(errors.take().len(), 2, "and the error hook is called");
    // Added to a running informer, it does no more harm.
    informer.index(|_: &Object<Value>| -> Option<u8> { panic!("never at its best") }).unwrap();
    source.put(object("d", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+d@105"]);
}

#[tokio::test(start_paused = true)]
async fn listers_answer_in_the_servers_order_from_one_state() {
    let source = source();
    for (namespace, name) in [("a", "x"), ("a-b", "x"), ("ab", "x"), ("a", "w")] {
        source.put(json!({"metadata": {"namespace": namespace, "name": name, "labels": {"ns": namespace}}}));
    }
    let (informer, _) = watched(&source, |builder| builder).await;
    let lister = informer.lister();
    let keys = |objects: Vec<Object<Value>>| objects.iter().map(|o| o.key().to_string()).collect::<Vec<_>>();
    assert_eq!(keys(lister.list().iter().cloned().collect()), ["a-b/x", "a/w", "a/x", "ab/x"]);
    let list = lister.list();
    let backwards: Vec<_> = list.iter().rev().map(|object| object.key().to_string()).collect();
    assert_eq!(
        (list.iter().len(), backwards),
        (4, ["ab/x", "a/x", "a/w", "a-b/x"].map(String::from).to_vec())
    );
    assert_eq!(keys(lister.in_namespace("a")), ["a/w", "a/x"]);
    assert!(lister.in_namespace("none").is_empty() && lister.in_namespace("").is_empty());
    assert_eq!(keys(lister.matching(&"ns in (a, ab)".parse().unwrap())), ["a/w", "a/x", "ab/x"]);
    assert_eq!(keys(lister.matching(&"".parse().unwrap())).len(), 4);
    assert!(lister.matching(&"ns=none".parse().unwrap()).is_empty());
    let snapshot = lister.snapshot();
    source.delete("a/x");
    settle().await;
    assert_eq!((snapshot.len(), lister.len()), (4, 3), "a snapshot does not change any more");
    assert!(lister.get(&"a/x".parse().unwrap()).is_none());
}

/// `data.bad` of this object is a lone surrogate, which cannot be decoded.
fn with_bad_field(source: &FakeSource, version: u64) -> Object<Value> {
    let json = format!(
        r#"{{"metadata":{{"namespace":"ns","name":"s","uid":"u","resourceVersion":"{version}"}},"data":{{"good":"g","bad":"\ud800"}}}}"#
    );
    Object::parse(source.origin(), json.into(), &Limits::default()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_field_that_cannot_be_decoded_hides_the_object_from_its_own_index_only() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    let good = informer.index_field("data.good").unwrap();
    let bad = informer.index_field("data.bad").unwrap();
    started(&informer).await;
    let object = with_bad_field(&source, 500);
    source.send(move || WatchEvent::Added(object.clone()));
    settle().await;
    assert_eq!(informer.lister().by(&good, "g").unwrap().len(), 1);
    assert_eq!((informer.omitted_by(&good), informer.omitted_by(&bad)), (Ok(0), Ok(1)));
}

#[tokio::test(start_paused = true)]
async fn an_index_over_a_bad_field_that_is_added_later_breaks_nothing() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let good = informer.index_field("data.good").unwrap();
    started(&informer).await;
    let added = with_bad_field(&source, 500);
    source.send(move || WatchEvent::Added(added.clone()));
    settle().await;
    let bad = informer.index_field("data.bad").unwrap();
    assert_eq!(informer.omitted_by(&bad), Ok(1));
    let deleted = with_bad_field(&source, 501);
    source.send(move || WatchEvent::Deleted(deleted.clone()));
    settle().await;
    assert!(informer.lister().by(&good, "g").unwrap().is_empty(), "a deleted object is in no index");
    assert_eq!((informer.omitted_by(&good), informer.omitted_by(&bad)), (Ok(0), Ok(0)));
    source.skip_versions(1000);
    source.put(object("later", 1));
    settle().await;
    assert!(informer.lister().get(&"ns/later".parse().unwrap()).is_some(), "the controller is alive");
    assert!(informer.status().is_live());
}

#[tokio::test(start_paused = true)]
async fn an_index_that_a_snapshot_lacks_is_an_error() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    let before = informer.lister().snapshot();
    let index = informer.index_field("data.value").unwrap();
    assert_eq!(before.by(&index, "1").unwrap_err(), IndexMissing::AddedLater);
    assert_eq!(before.values(&index).unwrap_err(), IndexMissing::AddedLater);
    assert_eq!(before.omitted_by(&index).unwrap_err(), IndexMissing::AddedLater);
    let with = informer.lister().snapshot();
    assert_eq!(names(&with.by(&index, "1").unwrap()), ["a"]);
    informer.remove_index(index).unwrap();
    assert_eq!(informer.lister().by(&index, "1").unwrap_err(), IndexMissing::Removed);
    assert_eq!(informer.remove_index(index).unwrap_err(), IndexMissing::Removed);
    assert_eq!(names(&with.by(&index, "1").unwrap()), ["a"], "a snapshot keeps its indexes");
    let (other, _) = watched(&source, |builder| builder).await;
    let foreign = other.index_field("data.value").unwrap();
    assert_eq!(informer.lister().values(&foreign).unwrap_err(), IndexMissing::Foreign);
}

#[tokio::test(start_paused = true)]
async fn equal_field_indexes_are_shared() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    let one = informer.index_field("data.value").unwrap();
    let other = informer.index_field("data.value").unwrap();
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
    assert_ne!(format!("{one:?}"), format!("{:?}", informer.index_field("data.else").unwrap()));
    informer.remove_index(one).unwrap();
    assert_eq!(names(&informer.lister().by(&other, "1").unwrap()), ["a"], "the other user keeps it");
    informer.remove_index(other).unwrap();
    informer.lister().by(&other, "1").unwrap_err();
    let again = informer.index_field("data.value").unwrap();
    source.put(object("b", 1));
    settle().await;
    assert_eq!(names(&informer.lister().by(&again, "1").unwrap()), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn the_field_of_a_removed_index_is_no_longer_read() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let index = informer.index_field("data.value").unwrap();
    started(&informer).await;
    let read = |name: &str| {
        let object = informer.lister().get(&format!("ns/{name}").parse().unwrap()).unwrap();
        object.packed_fields().map(<[_]>::to_vec)
    };
    assert_eq!(read("a"), Some(vec![vec![Value::from("1")]]));
    informer.remove_index(index).unwrap();
    source.put(object("b", 2));
    settle().await;
    assert_eq!(read("b"), None);
    // An index over the same field does not rely on what was read for the one before.
    let again = informer.index_field("data.value").unwrap();
    source.put(object("c", 3));
    settle().await;
    assert_eq!(informer.lister().values(&again).unwrap(), ["1", "2", "3"]);
    source.put(object("b", 5));
    source.delete("ns/a");
    settle().await;
    assert_eq!(informer.lister().values(&again).unwrap(), ["3", "5"]);
}
