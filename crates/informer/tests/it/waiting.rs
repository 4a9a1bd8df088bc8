//! Waiting for the cache.

use crate::support::{object, pass, secs, settle, source, watched};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{
    InformerBuilder, InformerStatus, ObjectKey, Scope, SharedInformer, Stop, WaitError, testing::Fault,
};
use serde_json::{Value, json};
use std::sync::Arc;

fn key(text: &str) -> ObjectKey {
    text.parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn who_is_not_synced_is_named_with_the_reason() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    let error = informer.synced(secs(1)).await.unwrap_err();
    assert!(error.to_string().contains("configmaps (starting)"), "{error}");
    for _ in 0..100 {
        source.fail_watch(Fault::forbidden()).fail_list(Fault::forbidden());
    }
    informer.start();
    let error = informer.synced(secs(20)).await.unwrap_err();
    assert!(matches!(error.unsynced[0].status, InformerStatus::Denied { .. }));
    assert!(error.to_string().contains("403") && error.to_string().contains("not allowed"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_write_is_waited_for_by_version() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    informer.reached_version(&key("ns/a"), &101.into(), secs(1)).await.unwrap();
    source.stall();
    let written = source.put(object("a", 2));
    let (a, version) = (key("ns/a"), written.into());
    let waiting = informer.reached_version(&a, &version, secs(60));
    let resume = async {
        pass(10).await;
        source.resume();
    };
    let (reached, ()) = tokio::join!(waiting, resume);
    reached.unwrap();
    assert_eq!(informer.lister().get(&key("ns/a")).unwrap().resource_version(), &written.into());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_already_gone_is_reached_too() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    let written = source.put(object("a", 1));
    source.delete("ns/a");
    settle().await;
    informer.reached_version(&key("ns/a"), &written.into(), secs(1)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_written_object_is_waited_for() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    source.put(object("a", 1));
    let mut written = ConfigMap::default();
    written.metadata.name = Some("a".into());
    written.metadata.namespace = Some("ns".into());
    written.metadata.resource_version = Some("101".into());
    informer.reached(&written).await.unwrap();
    assert_eq!(informer.lister().len(), 1);
    written.metadata.resource_version = Some("900".into());
    let error = informer.reached(&written).await.unwrap_err();
    assert!(matches!(error, WaitError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("ns/a at version 900"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn conditions_are_waited_for() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    informer.wait_until(&key("ns/a"), secs(1), |object| object.is_none()).await.unwrap();
    let a = key("ns/a");
    let appears = informer.wait_until(&a, secs(60), |object| {
        object.is_some_and(|object| object.decode().is_ok_and(|value| value["data"]["value"] == "2"))
    });
    let write = async {
        source.put(object("a", 1));
        pass(5).await;
        source.put(object("a", 2));
    };
    let (appeared, ()) = tokio::join!(appears, write);
    appeared.unwrap();
    let error = informer.wait_until(&key("ns/a"), secs(2), |object| object.is_none()).await.unwrap_err();
    assert!(matches!(error, WaitError::Timeout { .. }));
}

#[tokio::test(start_paused = true)]
async fn waiting_ends_with_the_informer() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    let a = key("ns/a");
    let waiting = informer.wait_until(&a, secs(600), |object| object.is_some());
    let (waited, ()) = tokio::join!(waiting, informer.stop(Stop::Drop));
    assert!(matches!(waited, Err(WaitError::Stopped { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_covered_cannot_be_waited_for() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder.scope(Scope::namespace("ns").unwrap()));
    informer.start();
    informer.synced(secs(5)).await.unwrap();
    let error = informer.reached_version(&key("other/a"), &1.into(), secs(1)).await.unwrap_err();
    assert!(matches!(error, WaitError::OutOfScope { .. }), "{error}");
    let error = informer.wait_until(&key("other/a"), secs(1), |object| object.is_none()).await.unwrap_err();
    assert!(matches!(error, WaitError::OutOfScope { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_condition_waits_for_the_namespace_of_its_object_only() {
    let (good, bad) = (source(), source());
    good.put(json!({"metadata": {"namespace": "good", "name": "a"}}));
    for _ in 0..100 {
        bad.fail_list(Fault::forbidden()).fail_watch(Fault::forbidden());
    }
    let informer: SharedInformer<Value> = InformerBuilder::new(Arc::clone(good.origin()))
        .scope(Scope::namespaces(["good", "bad"]).unwrap())
        .build(
            |namespace| {
                if namespace == Some("good") { good.source(namespace) } else { bad.source(namespace) }
            },
        );
    informer.start();
    informer.wait_until(&key("good/a"), secs(60), |object| object.is_some()).await.unwrap();
    let denied = informer.wait_until(&key("bad/a"), secs(60), |object| object.is_none()).await.unwrap_err();
    assert!(matches!(denied, WaitError::Timeout { .. }), "{denied}");
}

/// The object that a write of `ns/name` returned.
fn written(name: &str, version: u64, app: &str) -> ConfigMap {
    let mut written = ConfigMap::default();
    written.metadata.name = Some(name.into());
    written.metadata.namespace = Some("ns".into());
    written.metadata.labels = Some([("app".to_owned(), app.to_owned())].into());
    written.metadata.resource_version = Some(version.to_string());
    written
}

#[tokio::test(start_paused = true)]
async fn a_write_that_a_selector_excludes_is_not_waited_for() {
    let source = source();
    let begun = tokio::time::Instant::now();
    let (informer, _) = watched(&source, |builder| builder.label_selector("app=cart".parse().unwrap())).await;
    let excluded = informer.reached(&written("a", 900, "till")).await.unwrap_err();
    assert!(
        matches!(&excluded, WaitError::Excluded { selector, .. } if selector == "app=cart"),
        "{excluded}"
    );
    assert!(excluded.to_string().contains("ns/a at version 900"), "{excluded}");
    assert!(begun.elapsed() < secs(5), "at once");
    let selected = informer.reached(&written("a", 900, "cart")).await.unwrap_err();
    assert!(matches!(selected, WaitError::Timeout { .. }), "{selected}");
    let old = informer.reached(&written("a", 1, "till")).await;
    assert_eq!(old, Ok(()), "the cache shows that version");
}

/// A write that removes an object from the selection removes it from the cache, which is waited for.
#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_waited_for() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder.label_selector("app=cart".parse().unwrap())).await;
    let leaves = written("a", 102, "till");
    let reached = informer.reached(&leaves);
    let delete = async {
        pass(5).await;
        source.delete("ns/a");
    };
    let (reached, _) = tokio::join!(reached, delete);
    reached.unwrap();
    assert!(informer.lister().is_empty());
}

#[tokio::test(start_paused = true)]
async fn ready_means_filled_and_not_failing_for_long() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    informer.ready(secs(60)).unwrap_err();
    informer.start();
    informer.synced(secs(5)).await.unwrap();
    informer.ready(secs(60)).unwrap();
    for _ in 0..100 {
        source.fail_watch(Fault::Refuse);
    }
    source.break_connections();
    pass(30).await;
    informer.ready(secs(60)).expect("a short outage is none");
    pass(60).await;
    let error = informer.ready(secs(60)).unwrap_err();
    assert!(error.to_string().contains("configmaps is retrying"), "{error}");
}
