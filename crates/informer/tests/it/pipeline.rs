//! From the source to handlers and listers.

use crate::support::{Recorder, object, secs, settle, source, started};
use kube_informer::Stop;
use serde_json::Value;

#[tokio::test(start_paused = true)]
async fn initial_list_then_changes_in_order() {
    let source = source();
    source.put(object("b", 1));
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    let registration = informer.add_handler(recorder.clone());
    started(&informer).await;
    registration.synced().await.unwrap();
    assert_eq!(recorder.take(), ["+a@102!", "+b@101!"]);
    source.put(object("a", 2));
    source.put(object("c", 1));
    source.delete("ns/b");
    settle().await;
    assert_eq!(recorder.take(), ["~a@102>103", "+c@104", "-b@105"]);
    let names: Vec<_> = informer.lister().list().iter().map(|o| o.key().to_string()).collect();
    assert_eq!(names, ["ns/a", "ns/c"]);
    assert_eq!(source.requests().len(), 1, "one streaming list is all it takes");
    informer.stop(Stop::Drain).await;
}

#[tokio::test(start_paused = true)]
async fn a_relist_reports_what_was_missed() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    started(&informer).await;
    recorder.take();
    source.put_unnoticed(object("a", 2));
    source.delete_unnoticed("ns/b");
    source.put_unnoticed(object("d", 1));
    source.expire_history().cut();
    tokio::time::sleep(secs(5)).await;
    settle().await;
    assert_eq!(recorder.take(), ["-b@102?", "~a@101>104", "+d@106"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_gets_a_replay_and_then_everything() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    started(&informer).await;
    let recorder = Recorder::default();
    let registration = informer.add_handler(recorder.clone());
    source.put(object("a", 2));
    registration.synced().await.unwrap();
    settle().await;
    assert_eq!(recorder.take(), ["+a@101!", "~a@101>102"]);
    registration.remove().await;
    source.put(object("a", 3));
    settle().await;
    assert!(recorder.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_restored_behind_our_back_is_noticed_although_it_says_nothing() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("b", 1));
    let before = source.objects();
    source.put(object("a", 2));
    source.put(object("c", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    started(&informer).await;
    recorder.take();
    // The backup has an older version, and its history goes another way from there.
    source.restore(102, before);
    source.put(object("b", 7));
    tokio::time::sleep(secs(120)).await;
    settle().await;
    assert_eq!(recorder.take(), ["-c@104?", "~a@103>101", "~b@102>103"]);
    source.put(object("b", 8));
    settle().await;
    assert_eq!(recorder.take(), ["~b@103>104"], "the new history is followed from here on");
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_is_noticed_although_something_ends_each_watch_after_a_minute() {
    let source = source();
    source.put(object("a", 1));
    let before = source.objects();
    source.put(object("b", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    started(&informer).await;
    recorder.take();
    source.restore(101, before);
    for _ in 0..3 {
        tokio::time::sleep(secs(60)).await;
        source.cut();
    }
    settle().await;
    assert_eq!(recorder.take(), ["-b@102?"]);
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_from_before_is_no_proof_that_the_server_is_where_it_was() {
    let source = source();
    source.put(object("a", 1));
    let before = source.objects();
    source.put(object("b", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    started(&informer).await;
    recorder.take();
    source.restore(101, before);
    tokio::time::sleep(secs(60)).await;
    source.bookmark();
    tokio::time::sleep(secs(60)).await;
    settle().await;
    assert_eq!(recorder.take(), ["-b@102?"]);
}
