//! Relists (promises 6 to 8 of docs/contract.md).

use crate::support::{cached, encoded, object, pass, secs, settle, source, started, versioned, watched};
use kube_informer::{
    SharedInformer, Status, WaitError, WatchEvent,
    testing::{FakeSource, Fault, Request},
};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn unchanged_objects_cause_no_call() {
    for streaming in [true, false] {
        let source = source();
        for name in ["a", "b", "c"] {
            source.put(object(name, 1));
        }
        let (informer, recorder) = watched(&source, |builder| builder.streaming_list(streaming)).await;
        source.expire_history().cut();
        source.put_unnoticed(object("b", 2));
        source.expire_history();
        pass(5).await;
        assert_eq!(recorder.take(), ["~b@102>104"], "streaming: {streaming}");
        assert_eq!(cached(&informer), ["a@101", "b@104", "c@103"]);
    }
}

#[tokio::test(start_paused = true)]
async fn another_object_of_the_same_name_is_a_delete_and_an_add() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("b", 1));
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    source.put(json!({"metadata": {"namespace": "ns", "name": "a", "uid": "another"}}));
    settle().await;
    assert_eq!(recorder.take(), ["-a@101?", "+a@103"], "seen in the watch");
    source.put_unnoticed(json!({"metadata": {"namespace": "ns", "name": "b", "uid": "another"}}));
    source.expire_history().cut();
    pass(5).await;
    assert_eq!(recorder.take(), ["-b@102?", "+b@104"], "seen in a list");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_breaks_off_is_discarded() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let (informer, recorder) = watched(&source, |builder| builder.streaming_list(false)).await;
    source.delete_unnoticed("ns/c");
    source.put_unnoticed(object("a", 2));
    source.expire_history().cut();
    source.fail_list(Fault::BreakAfter(2)).fail_list(Fault::BreakAfter(1));
    pass(2).await;
    assert_eq!(cached(&informer), ["a@101", "b@102", "c@103"], "half a list changes nothing");
    pass(20).await;
    assert_eq!(recorder.take(), ["-c@103?", "~a@101>105"]);
    assert!(informer.status().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_gone_object_is_reported_before_anything_else_of_that_list() {
    let source = source();
    source.put(object("z", 1));
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    source.put_unnoticed(object("a", 1));
    source.delete_unnoticed("ns/z");
    source.expire_history().cut();
    pass(5).await;
    assert_eq!(recorder.take(), ["-z@101?", "+a@102"]);
}

#[tokio::test(start_paused = true)]
async fn both_kinds_of_410_list_again() {
    for http in [true, false] {
        let source = source();
        source.put(object("a", 1));
        let (informer, recorder) = watched(&source, |builder| builder).await;
        source.expire_over_http(http);
        source.put_unnoticed(object("b", 1));
        source.expire_history().cut();
        pass(5).await;
        assert_eq!(recorder.take(), ["+b@102"], "http: {http}");
        assert!(informer.status().is_live(), "{}", informer.status());
    }
}

#[tokio::test(start_paused = true)]
async fn a_cut_watch_goes_on_where_it_was() {
    let source = source();
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    source.put(object("a", 1));
    settle().await;
    tokio::time::advance(secs(2)).await;
    source.cut();
    source.put(object("b", 1));
    settle().await;
    source.put(object("c", 1));
    settle().await;
    assert_eq!(recorder.take(), ["+a@101", "+b@102", "+c@103"]);
    let requests = source.requests();
    let Some(Request::Watch(options)) = requests.last() else { panic!("{requests:?}") };
    assert_eq!((requests.len(), options.resource_version.as_deref()), (2, Some("101")), "without a list");
}

#[tokio::test(start_paused = true)]
async fn expired_pages_become_one_whole_list() {
    let source = source();
    for name in ["a", "b", "c", "d", "e"] {
        source.put(object(name, 1));
    }
    source.expire_pages(true);
    let informer = source.informer::<Value>(|builder| builder.streaming_list(false).page_size(2));
    started(&informer).await;
    assert_eq!(informer.lister().len(), 5);
    let limits: Vec<_> = source
        .requests()
        .iter()
        .filter_map(|request| match request {
            Request::List(options) => Some((options.limit, options.continue_token.is_some())),
            Request::Watch(_) | Request::Get(_) => None,
        })
        .collect();
    assert_eq!(limits, [(Some(2), false), (Some(2), true), (None, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_repeats_does_not_repeat_for_ever() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let informer = source.informer::<Value>(|builder| {
        // The server receives no token, and so returns the first page each time.
        builder.streaming_list(false).page_size(2).tweak_list(|options| options.continue_token = None)
    });
    informer.start();
    pass(5).await;
    let Err(error) = informer.synced(secs(1)).await else { panic!("synced with two of three objects") };
    assert!(
        error.to_string().contains("the page has the continue token that it was requested with"),
        "{error}"
    );
    let requests = source.requests().len();
    assert!((2..=20).contains(&requests), "{requests} requests within seconds, with a backoff between them");
}

#[tokio::test(start_paused = true)]
async fn what_happens_between_two_pages_is_not_lost() {
    let source = source();
    for name in ["a", "b", "c", "d"] {
        source.put(object(name, 1));
    }
    source.fail_list(Fault::Delay(secs(1))).fail_list(Fault::Delay(secs(10)));
    let informer = source.informer::<Value>(|builder| builder.streaming_list(false).page_size(2));
    informer.start();
    pass(5).await;
    source.put(object("a", 2));
    source.delete("ns/d");
    source.put(object("e", 1));
    pass(10).await;
    assert_eq!(cached(&informer), ["a@105", "b@102", "c@103", "e@107"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_goes_back_is_looked_into_once() {
    let source = source();
    source.put(object("a", 1));
    source.put(object("a", 2));
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let old = || {
        WatchEvent::Modified(encoded(&source, &versioned("a", "00000000-0000-4000-8000-000000000001", 101)))
    };
    source.send(old);
    pass(5).await;
    assert_eq!(source.requests().len(), 2, "one list");
    source.send(old);
    source.send(old);
    pass(120).await;
    let streams = |requests: Vec<Request>| {
        requests.iter().filter(|r| matches!(r, Request::Watch(o) if o.send_initial_events.is_some())).count()
    };
    assert_eq!(streams(source.requests()), 2, "the same position is not looked into twice");
    assert!(recorder.take().is_empty());
    assert_eq!(cached(&informer), ["a@102"], "time does not run back");
}

#[tokio::test(start_paused = true)]
async fn a_restored_server_is_followed_by_content() {
    let source = source();
    source.put(object("same", 1));
    source.put(object("other", 1));
    source.put(object("gone", 1));
    let (informer, recorder) = watched(&source, |builder| builder).await;
    // The same version of `other` now has other content.
    let mut restored = source.objects();
    restored.retain(|object| object["metadata"]["name"] != "gone");
    for object in &mut restored {
        if object["metadata"]["name"] == "other" {
            object["data"]["value"] = "rewritten".into();
        }
    }
    source.restore(102, restored);
    pass(120).await;
    assert_eq!(recorder.take(), ["-gone@103?", "~other@102>102"], "what is the same is not mentioned");
    let other = informer.lister().get(&"ns/other".parse().unwrap()).unwrap().decode().unwrap();
    assert_eq!(other["data"]["value"], "rewritten");
    source.put(object("same", 2));
    settle().await;
    assert_eq!(recorder.take(), ["~same@101>103"], "the new history is followed from here on");
}

#[tokio::test(start_paused = true)]
async fn an_object_that_became_malformed_is_not_reported_as_gone() {
    let source = source();
    for name in ["a", "b", "c"] {
        source.put(object(name, 1));
    }
    let (informer, recorder) = watched(&source, |builder| builder).await;
    source.put(malformed("b"));
    source.delete_unnoticed("ns/c");
    pass(5).await;
    assert_eq!(recorder.take(), ["-c@103?"], "and what is gone is gone");
    assert_eq!(cached(&informer), ["a@101", "b@102"], "its last known state stays");
    source.put(object("b", 3));
    settle().await;
    assert_eq!(recorder.take(), ["~b@102>106"]);
}

/// An object with more labels than an informer accepts.
fn malformed(name: &str) -> Value {
    let mut malformed = object(name, 2);
    for i in 0..5000 {
        malformed["metadata"]["labels"][format!("l{i}")] = "x".into();
    }
    malformed
}

/// A server that a backup was restored to and that has passed its former version since: `other` has the version it
/// had before, and other content.
fn replace_history(source: &FakeSource) {
    let before = source.version();
    let mut restored = source.objects();
    restored.retain(|object| object["metadata"]["name"] == "other");
    restored[0]["data"]["value"] = "rewritten".into();
    source.restore(before - 1, restored);
    for value in 0..3 {
        source.put_unnoticed(object("new", value));
    }
    assert!(source.version() > before);
}

fn content_of(informer: &SharedInformer<Value>, key: &str) -> Value {
    let object = informer.lister().get(&key.parse().unwrap()).unwrap().decode().unwrap();
    object["data"]["value"].clone()
}

/// `other` at version 101 and a later object, in a synced cache.
async fn with_two_objects() -> (FakeSource, SharedInformer<Value>) {
    let source = source();
    source.put(object("other", 1));
    source.put(object("last", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    (source, informer)
}

#[tokio::test(start_paused = true)]
async fn a_version_too_large_for_the_server_is_evidence_of_another_history() {
    let (source, informer) = with_two_objects().await;
    let message = "Too large resource version: 102, current: 101";
    source.fail_watch(Fault::Status(Status::failure(504, "Timeout", message)));
    source.cut();
    settle().await;
    replace_history(&source);
    pass(5).await;
    assert_eq!(content_of(&informer, "ns/other"), "rewritten");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_finds_the_server_behind_is_evidence_of_another_history() {
    let (source, informer) = with_two_objects().await;
    let mut restored = source.objects();
    restored.retain(|object| object["metadata"]["name"] == "other");
    restored[0]["data"]["value"] = "rewritten".into();
    source.restore(101, restored);
    pass(5).await;
    source.fail_watch(Fault::Delay(secs(20)));
    pass(90).await;
    assert!(
        matches!(source.requests()[..], [.., Request::List(_), Request::Watch(_)]),
        "probed, then listed"
    );
    for value in 0..3 {
        source.put_unnoticed(object("new", value));
    }
    pass(30).await;
    assert_eq!(content_of(&informer, "ns/other"), "rewritten");
}

#[tokio::test(start_paused = true)]
async fn a_rewound_event_is_evidence_of_another_history() {
    let (source, informer) = with_two_objects().await;
    source.send(|| WatchEvent::Added(encoded(&source, &versioned("new", "new", 100))));
    settle().await;
    replace_history(&source);
    pass(5).await;
    assert_eq!(content_of(&informer, "ns/other"), "rewritten");
}

#[tokio::test(start_paused = true)]
async fn a_dropped_event_is_not_reached() {
    let (source, informer) = with_two_objects().await;
    let send = |name: &str, version: u64| {
        source.send(|| WatchEvent::Added(encoded(&source, &versioned(name, name, version))));
    };
    send("b", source.version());
    pass(5).await;
    assert_eq!(source.requests().len(), 2, "a list repairs it");
    let version = source.put(object("c", 1));
    settle().await;
    // Another object of the same version: it is dropped, and the list that shows it is due in a minute.
    send("d", version);
    settle().await;
    let (c, d) = ("ns/c".parse().unwrap(), "ns/d".parse().unwrap());
    assert!(informer.reached_version(&d, &version.into(), secs(5)).await.is_err(), "the cache lacks it");
    source.put_unnoticed(object("d", 1));
    pass(120).await;
    for key in [&c, &d] {
        informer.reached_version(key, &version.into(), secs(1)).await.unwrap();
    }
    assert!(informer.lister().get(&d).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_restored_server_is_reached_when_the_cache_shows_it() {
    let (source, informer) = with_two_objects().await;
    source.skip_versions(900);
    source.put(object("last", 2));
    settle().await;
    let message = "Too large resource version: 1003, current: 50";
    source
        .fail_watch(Fault::Status(Status::failure(504, "Timeout", message)))
        .fail_watch(Fault::Delay(secs(20)));
    source.restore(50, Vec::new());
    settle().await;
    let (other, written) = ("ns/other".parse().unwrap(), source.put_unnoticed(object("other", 7)));
    assert!(written < 101, "the versions of the server start over");
    informer.reached_version(&other, &written.into(), secs(60)).await.unwrap();
    assert_eq!(content_of(&informer, "ns/other"), "7");
}

#[tokio::test(start_paused = true)]
async fn an_object_of_an_earlier_history_does_not_show_a_write() {
    let (source, informer) = with_two_objects().await;
    source.skip_versions(900);
    source.put(object("other", 2));
    settle().await;
    let message = "Too large resource version: 1003, current: 50";
    source.fail_watch(Fault::Status(Status::failure(504, "Timeout", message)));
    source.restore(50, Vec::new());
    source.put_unnoticed(malformed("other"));
    pass(30).await;
    assert_eq!(cached(&informer), ["other@1003"], "kept, because the malformed item is it");
    let (other, written) = ("ns/other".parse().unwrap(), source.put_unnoticed(object("other", 7)));
    let early = informer.reached_version(&other, &written.into(), secs(1)).await;
    assert!(matches!(early, Err(WaitError::Timeout { .. })), "{early:?}");
    let written = source.put(object("other", 8));
    informer.reached_version(&other, &written.into(), secs(1)).await.unwrap();
    assert_eq!(content_of(&informer, "ns/other"), "8");
}
