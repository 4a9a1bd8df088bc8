//! Finding objects by something other than their name.

use crate::support::{Errors, object, settle, source, started, watched};
use kube_informer::{Object, SharedInformer};
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
        assert_eq!(names(&informer.lister().by(&index, &"x".to_owned())), ["a", "b"]);
        assert_eq!(names(&informer.lister().by(&index, &"y".to_owned())), ["c"]);
        assert_eq!(informer.lister().values(&index), ["x", "y"]);
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
    let values = |informer: &SharedInformer<Value>| informer.lister().values(&index);
    source.put(with_labels("a", json!({"one": "", "two": ""})));
    source.put(with_labels("b", json!({"two": ""})));
    settle().await;
    assert_eq!(values(&informer), ["one", "two"]);
    assert_eq!(names(&informer.lister().by(&index, &"two".to_owned())), ["a", "b"]);
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
    let indexed = snapshot.by(&index, &());
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
    assert_eq!(informer.lister().values(&index), ["1"]);
    assert_eq!(informer.unreadable_in(&index), 1);
    source.put(object("odd", 3));
    settle().await;
    assert_eq!((informer.unreadable_in(&index), recorder.take().len()), (0, 1));
    assert_eq!(informer.lister().values(&index), ["1", "3"]);
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
    assert_eq!(informer.lister().values(&fragile), ["a", "c"]);
    assert_eq!(informer.lister().values(&sound), ["a", "bad", "c"]);
    assert_eq!(informer.unreadable_in(&fragile), 1);
    assert_eq!(errors.take().len(), 2, "and it is told");
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
