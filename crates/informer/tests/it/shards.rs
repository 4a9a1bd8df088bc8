//! Informers of one shard, on a server that ignores the shard selector and sends everything.

use crate::support::{Recorder, secs, settle, source, started};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_informer::{
    ObjectKey, ShardRange, SharedInformer, Uid, WaitError,
    testing::{FakeSource, Fault},
};
use serde_json::{Value, json};
use std::num::NonZeroU32;

const SHARDS: NonZeroU32 = NonZeroU32::new(2).unwrap();

/// A uid of a shard.
fn uid(shard: u32, number: u32) -> String {
    let uids = (0..).map(|n| format!("{n:08x}-36ce-4a0a-bd2f-{number:012x}"));
    let mut uids = uids.filter(|uid| ShardRange::index_of(Uid::from(uid.as_str()), SHARDS) == shard);
    uids.next().unwrap()
}

fn put(source: &FakeSource, name: &str, uid: &str, value: u32) {
    source.put(json!({"metadata": {"namespace": "ns", "name": name, "uid": uid}, "data": {"value": value.to_string()}}));
}

fn informer(source: &FakeSource, shard: u32) -> SharedInformer<Value> {
    let shard = ShardRange::nth(shard, SHARDS.get()).unwrap();
    source.informer(|builder| builder.shard_selector(shard.into()))
}

fn names(informer: &SharedInformer<Value>) -> Vec<String> {
    informer.lister().snapshot().iter().map(|object| object.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn objects_of_other_shards_are_dropped_when_they_arrive() {
    let source = source();
    put(&source, "a", &uid(0, 1), 1);
    put(&source, "b", &uid(1, 2), 1);
    let (low, high) = (informer(&source, 0), informer(&source, 1));
    let heard = Recorder::default();
    low.add_handler(heard.clone());
    for informer in [&low, &high] {
        started(informer).await;
    }
    assert_eq!((names(&low), names(&high)), (vec!["a".to_owned()], vec!["b".to_owned()]));
    heard.take();
    put(&source, "b", &uid(1, 2), 2);
    put(&source, "c", &uid(1, 3), 1);
    source.delete("ns/b");
    settle().await;
    assert_eq!((names(&low), names(&high)), (vec!["a".to_owned()], vec!["c".to_owned()]));
    assert_eq!(heard.take(), [""; 0], "nothing of its shard has changed");
    // The events of the other shard tell which version the stream has reached.
    assert_eq!(low.lister().snapshot().resource_version(), Some(source.version().into()));
    assert_eq!(low.lister().snapshot().lists(), 1);
    source.fail_watch(Fault::expired()).fail_watch(Fault::expired()).cut();
    put(&source, "d", &uid(0, 4), 1);
    put(&source, "e", &uid(1, 5), 1);
    tokio::time::sleep(secs(60)).await;
    assert_eq!(names(&low), ["a", "d"]);
    assert_eq!(names(&high), ["c", "e"]);
    assert_eq!(low.lister().snapshot().lists(), 2, "a list is not the sequence of the changes");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_recreated_in_another_shard_moves() {
    let source = source();
    put(&source, "a", &uid(0, 1), 1);
    let (low, high) = (informer(&source, 0), informer(&source, 1));
    for informer in [&low, &high] {
        started(informer).await;
    }
    source.delete("ns/a");
    put(&source, "a", &uid(1, 2), 2);
    settle().await;
    assert_eq!((names(&low), names(&high)), (Vec::<String>::new(), vec!["a".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_object_of_another_shard_is_an_error_at_once() {
    let source = source();
    put(&source, "a", &uid(0, 1), 1);
    let low = informer(&source, 0);
    started(&low).await;
    let written = |shard| ConfigMap {
        metadata: ObjectMeta {
            name: Some("new".to_owned()),
            namespace: Some("ns".to_owned()),
            uid: Some(uid(shard, 9)),
            resource_version: Some("1000000".to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let start = tokio::time::Instant::now();
    let error = low.reached(&written(1)).await.unwrap_err();
    assert!(
        matches!(&error, WaitError::Excluded { selector, .. } if selector.starts_with("shardRange(")),
        "{error}"
    );
    assert_eq!(start.elapsed(), secs(0));
    let error = low.reached(&written(0)).await.unwrap_err();
    assert!(matches!(error, WaitError::Timeout { .. }), "{error}");
    assert!(low.lister().get(&ObjectKey::namespaced("ns", "new")).is_none());
}
