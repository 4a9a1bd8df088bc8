//! Failures are visible and end without a restart (promises 13, 15 and 16 of docs/contract.md).

use crate::support::{Errors, cached, object, pass, secs, settle, source, started, watched};
use harness::CapturedLog;
use kube_informer::{
    InformerStatus, ListOptions, ListStream, ListWatch, ListWatchError, Status, WatchEvent, WatchOptions,
    WatchStream,
    testing::{FakeSource, Fault, Request},
};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

fn lists(source: &FakeSource) -> usize {
    source.requests().iter().filter(|request| matches!(request, Request::List(_))).count()
}

fn streams(source: &FakeSource) -> usize {
    let is_stream =
        |request: &&Request| matches!(request, Request::Watch(o) if o.send_initial_events.is_some());
    source.requests().iter().filter(is_stream).count()
}

fn answer(code: u16, reason: &str) -> Fault {
    Fault::Status(Status::failure(code, reason, "not now"))
}

#[tokio::test(start_paused = true)]
async fn refusals_are_visible_states_and_heal_without_a_restart() {
    for (code, reason, word) in [
        (401, "Unauthorized", "denied"),
        (403, "Forbidden", "denied"),
        (404, "NotFound", "absent"),
        (500, "InternalError", "retrying"),
        (503, "ServiceUnavailable", "retrying"),
    ] {
        let source = source();
        source.put(object("a", 1));
        for _ in 0..3 {
            source.fail_watch(answer(code, reason)).fail_list(answer(code, reason));
        }
        let errors = Errors::default();
        let informer = source.informer::<Value>(|builder| errors.hook(builder));
        informer.start();
        settle().await;
        assert_eq!(informer.status().word(), word, "{code}");
        let shown = informer.status().to_string();
        assert!(shown.contains(&code.to_string()) && shown.contains("not now"), "{shown}");
        assert!(informer.status().failing_since().is_some());
        pass(60).await;
        assert!(informer.status().is_live(), "{code}: {}", informer.status());
        assert_eq!(cached(&informer), ["a@101"]);
        assert_eq!(errors.take().len(), 6, "each attempt reaches the hook: three streams, three lists");
    }
}

#[tokio::test(start_paused = true)]
async fn since_when_it_has_been_failing_survives_retries() {
    let source = source();
    for _ in 0..20 {
        source.fail_watch(Fault::Refuse).fail_list(Fault::Refuse);
    }
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    settle().await;
    let since = informer.status().failing_since().unwrap();
    pass(100).await;
    assert_eq!(informer.status().failing_since(), Some(since));
    assert!(informer.ready(secs(10)).is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_denied_while_lists_work_stays_denied_and_current() {
    let source = source();
    source.put(object("a", 1));
    for _ in 0..40 {
        source.fail_watch(Fault::forbidden());
    }
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    informer.synced(secs(10)).await.unwrap();
    let mut words = std::collections::BTreeSet::new();
    pass(2).await;
    for _ in 0..200 {
        words.insert(informer.status().word());
        tokio::time::sleep(secs(1)).await;
    }
    assert_eq!(Vec::from_iter(words), ["denied"], "no flapping between lists");
    source.put(object("b", 1));
    pass(70).await;
    assert_eq!(cached(&informer), ["a@101", "b@102"], "lists keep it as current as they can");
    source.heal();
    pass(120).await;
    assert!(informer.status().is_live(), "{}", informer.status());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_never_completes_gives_way_to_a_list_for_good() {
    let source = source();
    source.put(object("a", 1));
    source.skip_end_bookmark(true);
    let errors = Errors::default();
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    informer.start();
    pass(14).await;
    assert!(!informer.is_synced());
    pass(3).await;
    assert!(informer.is_synced(), "after 15 s of silence");
    assert_eq!(errors.take().len(), 1, "and it was told");
    assert_eq!((streams(&source), lists(&source)), (1, 1));
    source.expire_history().cut();
    source.put(object("b", 1));
    source.expire_history();
    pass(10).await;
    assert_eq!(cached(&informer), ["a@101", "b@102"]);
    assert_eq!(streams(&source), 1, "the choice is remembered");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_talks_without_gaining_ends_after_a_minute() {
    let source = source();
    source.put(object("a", 1));
    source.skip_end_bookmark(true);
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    for _ in 0..5 {
        pass(10).await;
        source.bookmark();
        settle().await;
        assert!(!informer.is_synced());
    }
    pass(10).await;
    source.bookmark();
    settle().await;
    assert!(informer.is_synced());
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_still_gaining_may_take_longer() {
    let source = source();
    source.skip_end_bookmark(true);
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    for i in 0..12 {
        pass(10).await;
        source.put(object(&format!("o{i:02}"), 1));
    }
    settle().await;
    assert!(!informer.is_synced());
    assert!(
        matches!(informer.status(), InformerStatus::Syncing { so_far: 1.., .. }),
        "{}",
        informer.status()
    );
    source.send(|| {
        WatchEvent::Bookmark(kube_informer::Bookmark {
            resource_version: 112.into(),
            initial_events_end: true,
        })
    });
    settle().await;
    assert_eq!((informer.is_synced(), informer.lister().len(), lists(&source)), (true, 12, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refused_streaming_list_is_a_list_at_once() {
    let source = source();
    source.put(object("a", 1));
    source.refuse_streaming_lists(true);
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    settle().await;
    assert!(informer.is_synced());
    pass(2).await;
    assert!(informer.status().is_live());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let source = source();
    source.put(object("a", 1));
    source.fail_watch(Fault::Silence).fail_list(Fault::Silence);
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    pass(29).await;
    assert_eq!(source.requests().len(), 1);
    pass(90).await;
    assert!(informer.status().is_live(), "{}", informer.status());
}

#[tokio::test(start_paused = true)]
async fn a_dead_watch_is_noticed_by_the_time_it_should_have_ended() {
    let source = source();
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let Some(Request::Watch(options)) = source.requests().pop() else { panic!("no watch") };
    let timeout = options.timeout.unwrap().as_secs();
    assert!((300..=600).contains(&timeout));
    // The connection is dead: nothing comes through, and nothing says so.
    source.stall();
    source.put(object("a", 1));
    pass(timeout + 10).await;
    assert!(recorder.take().is_empty());
    // Those that were held back never arrive; a new watch gets them from the history.
    pass(15).await;
    assert_eq!(recorder.take(), ["+a@101"]);
    assert!(informer.status().is_live());
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    tokio::time::advance(secs(2)).await;
    source.fail_watch(Fault::too_many_requests(40)).cut();
    settle().await;
    let asked = source.requests().len();
    assert!(matches!(informer.status(), InformerStatus::Retrying { .. }));
    pass(39).await;
    assert_eq!(source.requests().len(), asked, "not before it may");
    pass(6).await;
    assert_eq!(source.requests().len(), asked + 1);
    assert_eq!(lists(&source) + streams(&source), 1, "and without a list");
}

#[tokio::test(start_paused = true)]
async fn a_429_in_the_stream_needs_no_list_either() {
    let source = source();
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    source.error_in_stream(Status::failure(429, "TooManyRequests", "slow down"));
    source.put(object("a", 1));
    pass(5).await;
    assert_eq!(recorder.take(), ["+a@101"]);
    assert_eq!(lists(&source) + streams(&source), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_stream_is_settled_by_a_list() {
    let source = source();
    source.put(object("a", 1));
    let (_informer, recorder) = watched(&source, |builder| builder).await;
    source.delete_unnoticed("ns/a");
    source.error_in_stream(Status::failure(500, "InternalError", "StoreReadError"));
    pass(5).await;
    assert_eq!(recorder.take(), ["-a@101?"]);
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_is_opened_again_without_a_list() {
    let source = source();
    let (informer, recorder) = watched(&source, |builder| builder).await;
    for i in 0..5 {
        source.break_connections();
        settle().await;
        assert_eq!(informer.status().word(), "retrying");
        source.put(object("a", i));
        pass(60).await;
        assert!(informer.status().is_live());
    }
    assert_eq!(recorder.take().len(), 5);
    assert_eq!(lists(&source) + streams(&source), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_for_an_hour_is_asked_calmly() {
    let source = source();
    let (informer, _) = watched(&source, |builder| builder).await;
    for _ in 0..10_000 {
        source.fail_watch(Fault::Refuse).fail_list(Fault::Refuse);
    }
    source.break_connections();
    let before = source.requests().len();
    pass(3600).await;
    let asked = source.requests().len() - before;
    assert!((60..130).contains(&asked), "every 30 to 60 s, not more: {asked}");
    source.heal();
    source.put(object("a", 1));
    pass(61).await;
    assert!(informer.status().is_live());
    assert_eq!(cached(&informer), ["a@101"]);
}

/// Panics at each request, as a source of the user may.
struct PanickingSource(AtomicUsize, FakeSource);

impl ListWatch for PanickingSource {
    fn list(&self, options: ListOptions) -> kube_informer::BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(async move { self.1.source(None).list(options).await })
    }

    fn watch(
        &self,
        options: WatchOptions,
    ) -> kube_informer::BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(async move {
            assert!(self.0.fetch_add(1, Ordering::Relaxed) >= 3, "not at its best");
            self.1.source(None).watch(options).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_a_source_that_fails() {
    let source = source();
    source.put(object("a", 1));
    let panicking = Arc::new(PanickingSource(AtomicUsize::new(0), source.clone()));
    let errors = Errors::default();
    let builder = errors.hook(kube_informer::InformerBuilder::new(Arc::clone(source.origin())));
    let informer = builder.seed(1).build::<Value>(move |_| Arc::clone(&panicking) as Arc<dyn ListWatch>);
    started(&informer).await;
    pass(30).await;
    source.put(object("b", 1));
    settle().await;
    assert_eq!(cached(&informer), ["a@101", "b@102"]);
    assert_eq!(errors.take().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn the_log_has_one_line_for_each_change_of_state() {
    let log = CapturedLog::capture(tracing::Level::INFO);
    let source = source();
    source.put(object("a", 1));
    for _ in 0..10 {
        source.fail_watch(Fault::forbidden());
    }
    for _ in 0..9 {
        source.fail_list(Fault::forbidden());
    }
    let informer = source.informer::<Value>(|builder| builder);
    informer.start();
    pass(350).await;
    assert!(informer.status().is_live());
    let text = log.text();
    let words: Vec<_> =
        text.split("informer is ").skip(1).map(|rest| rest.split([' ', ',']).next().unwrap()).collect();
    assert_eq!(words, ["syncing", "denied", "live"], "ten failing rounds are one line: {text}");
}
