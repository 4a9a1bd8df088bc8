//! Several namespaces, each a partition (promise 9 of docs/contract.md).

use crate::support::{Recorder, pass, secs, settle, source};
use futures_util::StreamExt;
use kube_informer::{InformerStatus, Scope, Stop, WaitError, WatchEvent, testing::Fault};
use serde_json::{Value, json};

fn in_namespace(namespace: &str, name: &str, value: u64) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name}, "data": {"value": value}})
}

fn names(informer: &kube_informer::SharedInformer<Value>) -> Vec<String> {
    informer.lister().list().iter().map(|object| object.key().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn each_namespace_is_listed_watched_and_versioned_alone() {
    let source = source();
    source.put(in_namespace("x", "a", 1));
    source.put(in_namespace("y", "b", 1));
    source.put(in_namespace("z", "c", 1));
    let informer = source.informer::<Value>(|builder| builder.scope(Scope::namespaces(["x", "y"]).unwrap()));
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    informer.start();
    informer.synced(secs(10)).await.unwrap();
    settle().await;
    assert_eq!(names(&informer), ["x/a", "y/b"], "and not z");
    assert_eq!(source.requests().len(), 2);
    source.put(in_namespace("y", "b", 2));
    settle().await;
    let snapshot = informer.lister().snapshot();
    assert_eq!(snapshot.namespace_version("x"), Some(103.into()));
    assert_eq!(snapshot.namespace_version("y"), Some(104.into()));
    assert_eq!((snapshot.namespace_version("z"), snapshot.resource_version()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn one_failing_namespace_holds_up_no_other() {
    let source = source();
    source.put(in_namespace("x", "a", 1));
    source.put(in_namespace("y", "b", 1));
    // The partitions start in order: the first request is that for x.
    source.fail_watch(Fault::forbidden()).fail_list(Fault::forbidden());
    let informer = source.informer::<Value>(|builder| builder.scope(Scope::namespaces(["x", "y"]).unwrap()));
    let recorder = Recorder::default();
    let registration = informer.add_handler(recorder.clone());
    informer.start();
    settle().await;
    assert_eq!(names(&informer), ["y/b"]);
    assert_eq!(recorder.take(), ["+b@102!"], "the objects of the other namespace are delivered");
    assert!(!informer.is_synced() && !registration.is_synced());
    let statuses = informer.namespace_statuses();
    assert!(matches!(&statuses[0], (Some(x), InformerStatus::Denied { .. }) if x == "x"), "{statuses:?}");
    assert!(statuses[1].1.is_live());
    assert!(matches!(informer.status(), InformerStatus::Denied { .. }), "the worst of them");
    let error = informer.synced(secs(0)).await.unwrap_err();
    assert_eq!(error.unsynced.len(), 1);
    assert_eq!(error.unsynced[0].namespace.as_deref(), Some("x"));
    pass(5).await;
    assert_eq!(recorder.take(), ["+a@101!"], "still an initial object");
    assert!(informer.is_synced() && registration.is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_one_namespace_does_not_touch_another() {
    let source = source();
    source.put(in_namespace("x", "a", 1));
    source.put(in_namespace("y", "b", 1));
    let informer = source.informer::<Value>(|builder| builder.scope(Scope::namespaces(["x", "y"]).unwrap()));
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    informer.start();
    informer.synced(secs(10)).await.unwrap();
    settle().await;
    recorder.take();
    source.delete_unnoticed("x/a");
    source.expire_history().cut();
    // Both namespaces are listed again.
    pass(10).await;
    assert_eq!(recorder.take(), ["-a@101?"]);
    assert_eq!(names(&informer), ["y/b"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_of_another_namespace_is_left_out() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder.scope(Scope::namespaces(["x", "y"]).unwrap()));
    informer.start();
    informer.synced(secs(10)).await.unwrap();
    let foreign = crate::support::encoded(&source, &json!({"metadata": {"namespace": "z", "name": "a"}}));
    source.send(|| WatchEvent::Added(foreign.clone()));
    source.put(in_namespace("x", "b", 1));
    settle().await;
    assert_eq!(names(&informer), ["x/b"]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_no_namespace_is_live_and_empty_and_asks_for_nothing() {
    let source = source();
    source.put(in_namespace("x", "a", 1));
    let informer = source.informer::<Value>(|builder| builder.scope(Scope::none()));
    let recorder = Recorder::default();
    let registration = informer.add_handler(recorder.clone());
    let mut changes = informer.status_changes();
    assert_eq!(changes.next().await, Some(InformerStatus::Starting));
    informer.start();
    informer.synced(secs(10)).await.unwrap();
    registration.synced().await.unwrap();
    pass(60).await;
    assert!(changes.next().await.is_some_and(|status| status.is_live()));
    assert!(informer.status().is_live() && informer.ready(secs(1)).is_ok());
    assert_eq!((names(&informer).len(), source.requests().len(), recorder.take().len()), (0, 0, 0));
    let absent = informer.wait_until(&"x/a".parse().unwrap(), secs(1), |object| object.is_none()).await;
    assert!(matches!(absent, Err(WaitError::OutOfScope { .. })), "{absent:?}");
    informer.stop(Stop::Drain).await;
    assert_eq!(informer.status(), InformerStatus::Stopped);
}
