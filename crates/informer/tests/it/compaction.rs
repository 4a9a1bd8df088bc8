//! Compaction: removes the content of earlier states, and readers do not notice it.

use crate::support::{pass, secs, settle, source, started, watched};
use kube_informer::{Object, ObjectKey, Packing, SharedInformer, Stop, testing::FakeSource};
use serde_json::{Value, json};

/// An object with about a kilobyte of content that hardly compresses.
fn noisy(number: u64, version: u64) -> Value {
    let mut rng = fastrand::Rng::with_seed(number << 32 | version);
    let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(1200).collect();
    json!({"metadata": {"namespace": "ns", "name": format!("n{number}")}, "data": {"text": text, "version": version}})
}

fn check(object: &Object<Value>, number: u64, version: u64) {
    assert_eq!(object.decode().unwrap()["data"], noisy(number, version)["data"], "{object:?}");
}

async fn churn(source: &FakeSource, objects: u64, rounds: std::ops::Range<u64>) {
    for round in rounds {
        for number in 0..objects {
            source.put(noisy(number, round));
        }
        pass(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_is_bounded_and_what_is_held_stays_readable() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    churn(&source, 300, 0..1).await;
    let old = informer.lister().list();
    let held: Vec<Object<Value>> = old.iter().step_by(10).cloned().collect();
    churn(&source, 300, 1..10).await;
    let usage = informer.memory();
    assert!(usage.garbage <= usage.content / 4, "{usage:?}");
    for object in &old {
        check(object, object.name()[1..].parse().unwrap(), 0);
    }
    let with_old = informer.memory().content;
    drop(old);
    pass(1).await;
    let usage = informer.memory();
    assert!(usage.content < with_old * 2 / 3, "{usage:?}, {with_old} before");
    assert!(usage.garbage <= usage.content / 4, "dropping a snapshot is enough: {usage:?}");
    for object in &held {
        check(object, object.name()[1..].parse().unwrap(), 0);
    }
    for object in &informer.lister().list() {
        check(object, object.name()[1..].parse().unwrap(), 9);
    }
}

/// An object whose content has much in common with that of others.
fn alike(number: u64) -> Value {
    let lines = (0..40).map(|line| format!("setting-{}: {}", line * number % 97, line * number % 89));
    json!({"metadata": {"namespace": "ns", "name": format!("alike{number}")}, "data": lines.collect::<Vec<_>>()})
}

#[tokio::test(start_paused = true)]
async fn what_arrived_is_packed_again_although_others_change_all_the_time() {
    let source = source();
    (0..3000).for_each(|number| _ = source.put(alike(number)));
    let (informer, _) = watched(&source, |builder| builder).await;
    churn(&source, 100, 0..90).await;
    let during = informer.memory().content;
    churn(&source, 100, 90..200).await;
    let after = informer.memory().content;
    assert!(after < during * 9 / 10, "{after} of {during} bytes");
    for number in 0..3000 {
        let object = informer.lister().get(&ObjectKey::namespaced("ns", &format!("alike{number}"))).unwrap();
        assert_eq!(object.decode().unwrap()["data"], alike(number)["data"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_small_informer_is_small() {
    let source = source();
    for number in 0..10 {
        source.put(noisy(number, 0));
    }
    let informer = source.informer::<Value>(|builder| builder);
    started(&informer).await;
    let usage = informer.memory();
    assert_eq!(usage.objects, 10);
    assert!(usage.total() - usage.content < 32 << 10, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn the_report_follows_the_objects() {
    for packing in [Packing::Packed, Packing::Raw, Packing::Decoded] {
        let source = source();
        let informer = source.informer::<Value>(|builder| builder.packing(packing));
        started(&informer).await;
        let empty = informer.memory();
        assert_eq!((empty.objects, empty.records, empty.keys, empty.content), (0, 0, 0, 0), "{packing:?}");
        churn(&source, 50, 0..1).await;
        let full = informer.memory();
        assert_eq!((full.objects, full.keys > 50 * 5), (50, true), "{packing:?}: {full:?}");
        assert!(
            full.content > 50 * 900 && full.records > 50 * 100 && full.trees > 50 * 16,
            "{packing:?}: {full:?}"
        );
        (0..50).for_each(|number| _ = source.delete(&format!("ns/n{number}")));
        pass(1).await;
        let empty = informer.memory();
        assert_eq!((empty.objects, empty.records, empty.keys, empty.content), (0, 0, 0, 0), "{packing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_informer_that_is_stopped_can_be_read() {
    let source = source();
    let informer: SharedInformer<Value> = source.informer(|builder| builder);
    started(&informer).await;
    churn(&source, 50, 0..3).await;
    informer.synced(secs(1)).await.unwrap();
    informer.stop(Stop::Drop).await;
    settle().await;
    for object in &informer.lister().list() {
        check(object, object.name()[1..].parse().unwrap(), 2);
    }
}
