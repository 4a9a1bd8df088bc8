//! Transforms (promise 18 of docs/contract.md).

use crate::support::{Errors, cached, object, pass, secs, settle, source, started, watched};
use kube_informer::{Deleted, HandlerFuncs, IndexError, Limits, Object, Transform, WatchEvent};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

fn large(name: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "managedFields": [{"manager": "m"}], "labels": {"a": "1"}},
        "data": {"value": "1"}, "spec": {"template": {"x": 1}, "keep": true},
    })
}

fn content(informer: &kube_informer::SharedInformer<Value>, key: &str) -> Value {
    informer.lister().get(&key.parse().unwrap()).unwrap().view().unwrap()
}

#[tokio::test(start_paused = true)]
async fn dropped_fields_never_reach_the_cache() {
    for streaming in [true, false] {
        let source = source();
        source.put(large("listed"));
        let transform = Transform::drop_managed_fields().drop_field("spec.template").unwrap();
        let informer = source
            .informer::<Value>(|builder| builder.transform(transform.clone()).streaming_list(streaming));
        started(&informer).await;
        source.put(large("watched"));
        settle().await;
        for key in ["ns/listed", "ns/watched"] {
            let content = content(&informer, key);
            assert_eq!(content["spec"], json!({"keep": true}), "{key}");
            assert!(content["metadata"].get("managedFields").is_none(), "{key}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_passes_once_deletes_included_and_resyncs_not() {
    let source = source();
    source.put(object("a", 1));
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&calls);
    let transform = Transform::new().function(move |value| {
        let times = value["passed"].as_u64().unwrap_or(0) + 1;
        value["passed"] = times.into();
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let informer = source.informer::<Value>(|builder| builder.transform(transform).resync(secs(10)));
    let deleted: Arc<Mutex<Vec<Value>>> = Arc::default();
    let slot = Arc::clone(&deleted);
    informer.add_handler(HandlerFuncs::<Value>::new().on_delete(move |gone: &Deleted<Value>| {
        slot.lock().unwrap().push(gone.object().view().unwrap());
    }));
    started(&informer).await;
    pass(35).await;
    source.put(object("a", 2));
    source.delete("ns/a");
    settle().await;
    assert_eq!(calls.load(Ordering::Relaxed), 3, "a list item, a change, an end");
    assert_eq!(deleted.lock().unwrap()[0]["passed"], 1);
}

#[tokio::test(start_paused = true)]
async fn the_identity_cannot_be_changed_and_labels_are_read_after() {
    let source = source();
    let transform = Transform::new().function(|value| {
        value["metadata"]["name"] = "forged".into();
        value["metadata"]["namespace"] = "forged".into();
        value["metadata"]["uid"] = "forged".into();
        value["metadata"]["resourceVersion"] = "1".into();
        value["metadata"]["labels"] = json!({"b": "2"});
    });
    source.put(large("a"));
    let (informer, recorder) = watched(&source, |builder| builder.transform(transform)).await;
    source.put(large("a"));
    settle().await;
    assert_eq!(recorder.take(), ["~a@101>102"]);
    assert_eq!(cached(&informer), ["a@102"]);
    let object: Object<Value> = informer.lister().get(&"ns/a".parse().unwrap()).unwrap();
    assert_eq!(object.labels().get("b"), Some("2"));
    let content = content(&informer, "ns/a");
    assert_eq!(content["metadata"]["name"], "a", "nor does the content tell another story");
    assert_eq!(content["metadata"]["resourceVersion"], "102");
}

#[tokio::test(start_paused = true)]
async fn a_transform_that_fails_withholds_the_content_and_is_told() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("b", 1));
    source.put(object("c", 1));
    let errors = Errors::default();
    let transform = Transform::new().function(|value| match value["metadata"]["name"].as_str() {
        Some("b") => panic!("not at its best"),
        Some("c") => *value = json!([1, 2]),
        _ => {}
    });
    let informer = source.informer::<Value>(|builder| errors.hook(builder).transform(transform));
    started(&informer).await;
    assert_eq!(cached(&informer), ["a@101", "b@102", "c@103"], "each keeps its place");
    for key in ["ns/b", "ns/c"] {
        assert_withheld(&informer, key);
    }
    let told = errors.take();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("ns/b") && told[1].contains("ns/c"));
}

/// Content that the transform did not pass is not in the cache, and does not look as if it were empty.
fn assert_withheld(informer: &kube_informer::SharedInformer<Value>, key: &str) {
    let object = informer.lister().get(&key.parse().unwrap()).unwrap();
    assert!(object.is_content_withheld(), "{key}");
    assert!(object.json().is_err() && object.view::<Value>().is_err() && object.decode().is_err(), "{key}");
}

/// serde refuses half of a surrogate pair, which the wire does not look for. A transform may be there to keep a secret out
/// of the cache.
#[tokio::test(start_paused = true)]
async fn json_that_serde_refuses_does_not_get_past_a_function() {
    let (source, errors) = (source(), Errors::default());
    let transform = Transform::new().function(|value| drop(value.as_object_mut().unwrap().remove("data")));
    let informer = source.informer::<Value>(|builder| errors.hook(builder).transform(transform));
    let by_value = informer.index_field("data.password").unwrap();
    started(&informer).await;
    let raw = r#"{"metadata":{"namespace":"ns","name":"s","uid":"u","resourceVersion":"500","labels":{"a":"1"},
        "annotations":{"x":"\ud800"}},"data":{"password":"hunter2"}}"#;
    let origin = source.origin().clone();
    source.send(move || WatchEvent::Added(Object::parse(&origin, raw.into(), &Limits::default()).unwrap()));
    settle().await;
    assert_withheld(&informer, "ns/s");
    let object = informer.lister().get(&"ns/s".parse().unwrap()).unwrap();
    assert_eq!((object.resource_version().number(), object.labels().get("a")), (Some(500), Some("1")));
    assert_eq!(informer.omitted_by(&by_value), Ok(1), "an index leaves it out");
    let told = errors.take();
    assert!(told.len() == 1 && told[0].contains("the transform failed on ns/s"), "{told:?}");
    assert!(object.edit(|value| value["metadata"]["labels"]["a"] = "2".into()).is_err());
    object.edit_via_apply("me", |fields| fields["data"]["x"] = "1".into()).unwrap();
}

/// Dropping fields works on bytes, which need not be what serde accepts.
#[tokio::test(start_paused = true)]
async fn json_that_serde_refuses_can_lose_fields_all_the_same() {
    let (source, errors) = (source(), Errors::default());
    let transform = Transform::new().drop_field("data").unwrap();
    let informer = source.informer::<Value>(|builder| errors.hook(builder).transform(transform));
    started(&informer).await;
    let raw =
        r#"{"metadata":{"namespace":"ns","name":"s","resourceVersion":"500"},"data":{"x":1},"y":"\ud800"}"#;
    let origin = source.origin().clone();
    source.send(move || WatchEvent::Added(Object::parse(&origin, raw.into(), &Limits::default()).unwrap()));
    settle().await;
    let json = informer.lister().get(&"ns/s".parse().unwrap()).unwrap().json().unwrap();
    assert!(!String::from_utf8_lossy(&json).contains(r#""data""#) && errors.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_index_on_a_dropped_field_is_refused() {
    let source = source();
    let transform = Transform::new().drop_field("spec.template").unwrap();
    let informer = source.informer::<Value>(|builder| builder.transform(transform));
    for path in ["spec.template", "spec.template.x", "spec"] {
        assert!(matches!(informer.index_field(path), Err(IndexError::Dropped { .. })), "{path}");
    }
    informer.index_field("spec.keep").unwrap();
}
