//! What an informer shows of itself: statuses, handlers, metrics.

use crate::support::{object, pass, secs, settle, source, started};
use futures_util::{FutureExt, Stream, StreamExt};
use kube_informer::{
    Event, HandlerFuncs, HandlerOptions, InformerStatus, LabelSelector, Scope, Stop, testing::Fault,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use serde_json::Value;
use std::collections::BTreeMap;

fn words(changes: &mut (impl Stream<Item = InformerStatus> + Unpin)) -> Vec<&'static str> {
    std::iter::from_fn(|| changes.next().now_or_never().flatten()).map(|status| status.word()).collect()
}

#[tokio::test(start_paused = true)]
async fn statuses_are_told_as_they_change() {
    let source = source();
    source.put(object("a", 1));
    source.fail_watch(Fault::forbidden());
    source.fail_list(Fault::forbidden());
    let informer = source.informer::<Value>(|builder| builder);
    let mut changes = informer.status_changes();
    assert_eq!(words(&mut changes), ["starting"]);
    assert_eq!(words(&mut changes), [""; 0], "nothing has changed");
    informer.start();
    settle().await;
    assert_eq!(words(&mut changes), ["denied"], "what is no longer true is skipped");
    pass(60).await;
    assert_eq!(words(&mut changes), ["live"]);
    source.put(object("a", 2));
    settle().await;
    assert_eq!(words(&mut changes), [""; 0], "news from the server are no change");
    informer.stop(Stop::Drop).await;
    assert_eq!(words(&mut changes), ["stopped"]);
    assert!(changes.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn following_the_status_keeps_no_informer_alive() {
    let informer = source().informer::<Value>(|builder| builder);
    let mut changes = informer.status_changes();
    started(&informer).await;
    assert_eq!(words(&mut changes), ["live"]);
    drop(informer);
    settle().await;
    assert_eq!(words(&mut changes), ["stopped"]);
}

#[tokio::test(start_paused = true)]
async fn handlers_are_listed_with_their_load() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let named = |name: &str| HandlerOptions::new().name(name);
    let quick = informer.add_handler_with(HandlerFuncs::new(), named("quick"));
    let mut slow = informer.events_with(named("slow"));
    started(&informer).await;
    settle().await;
    let told = |informer: &kube_informer::SharedInformer<Value>| -> Vec<_> {
        informer.handlers().into_iter().map(|one| (one.name, one.synced, one.load.waiting)).collect()
    };
    assert_eq!(told(&informer), [("quick".into(), true, 0), ("slow".into(), false, 1)]);
    slow.next().await.unwrap();
    // A caller that requests the next event is done with the one before.
    assert!(slow.next().now_or_never().is_none());
    quick.remove().await;
    assert_eq!(told(&informer), [("slow".into(), true, 0)]);
    drop(slow);
    assert_eq!(told(&informer), []);
}

#[tokio::test(start_paused = true)]
async fn a_stream_has_a_resync_period_of_its_own() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder.resync(secs(600)));
    let mut events = informer.events_with(HandlerOptions::new().resync(secs(30)));
    let mut still = informer.events();
    started(&informer).await;
    assert!(events.next().now_or_never().is_some() && still.next().now_or_never().is_some());
    pass(61).await;
    for _ in 0..2 {
        let resync = events.next().now_or_never().flatten();
        assert!(matches!(resync, Some(Event::Updated { old, new }) if old.is_same_version(&new)));
    }
    assert!(events.next().now_or_never().is_none());
    assert!(still.next().now_or_never().is_none());
}

/// The sum of each metric over its labels but for the one named.
fn measured(snapshotter: &Snapshotter, by: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for (key, _, _, value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        let label = key.labels().find(|label| label.key() == by);
        let name = label.map_or(key.name().to_owned(), |label| format!("{} {}", key.name(), label.value()));
        *sums.entry(name).or_default() += match value {
            DebugValue::Counter(count) => count as f64,
            DebugValue::Gauge(value) => value.into_inner(),
            DebugValue::Histogram(values) => values.len() as f64,
        };
    }
    sums
}

/// Lets a story happen under paused time, with its metrics recorded.
fn recorded(story: impl AsyncFnOnce(Snapshotter)) {
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(story(recorder.snapshotter()));
    });
}

#[test]
fn metrics_count_what_happened() {
    recorded(async |snapshotter| {
        let source = source();
        source.put(object("a", 1));
        source.put(object("b", 1));
        let informer = source.informer::<Value>(|builder| builder.handler_bound(2));
        let handler = informer.add_handler(HandlerFuncs::new());
        let _never_read = informer.events();
        started(&informer).await;
        handler.synced().await.unwrap();
        for value in 2..6 {
            source.put(object("a", value));
            settle().await;
        }
        source.delete("ns/b");
        source.bookmark();
        settle().await;
        source.expire_history().cut();
        pass(60).await;
        assert!(informer.status().is_live());
        let version = informer.lister().snapshot().resource_version().unwrap().number().unwrap() as f64;

        let by_type = measured(&snapshotter, "type");
        let is = |name: &str| by_type.get(name).copied().unwrap_or(-1.0);
        assert_eq!(is("informer_events_total modified"), 4.0, "{by_type:#?}");
        assert_eq!(is("informer_events_total deleted"), 1.0);
        assert!(is("informer_events_total bookmark") >= 1.0);
        assert_eq!(is("informer_cached_objects"), 1.0);
        assert_eq!(is("informer_cached_bytes"), informer.cached_bytes() as f64);
        assert_eq!(is("informer_queued_items"), 0.0);
        assert_eq!(is("informer_store_resource_version"), version);
        assert!(is("informer_coalesced_total") >= 1.0, "the stream was never read");
        assert!(is("informer_watches_total") >= 2.0);
    });
}

#[test]
fn metrics_tell_lists_from_relists() {
    recorded(async |snapshotter| {
        let source = source();
        let informer = source.informer::<Value>(|builder| builder.streaming_list(false));
        started(&informer).await;
        let first = measured(&snapshotter, "mode");
        assert_eq!(first.get("informer_lists_total paged"), Some(&1.0), "{first:#?}");
        assert_eq!(first.get("informer_relists_total"), None, "the first list is no relist");
        source.put_unnoticed(object("a", 1));
        source.expire_history().cut();
        pass(60).await;
        // The first look has taken out earlier counts.
        let after = measured(&snapshotter, "reason");
        assert_eq!(after.get("informer_relists_total expired"), Some(&1.0), "{after:#?}");
    });
}

/// The distinct series of a metric.
fn series(snapshotter: &Snapshotter, metric: &str) -> Vec<String> {
    let all = snapshotter.snapshot().into_vec().into_iter().map(|(key, ..)| key.key().clone());
    let named = all.filter(|key| key.name() == metric);
    named.map(|key| key.labels().map(|label| format!("{label:?}")).collect()).collect()
}

#[test]
fn informers_of_one_resource_have_metrics_of_their_own() {
    recorded(async |snapshotter| {
        let source = source();
        let plain = || source.informer::<Value>(|builder| builder.name("own metrics"));
        let long = |last: &str| -> LabelSelector {
            let keys: String = (0..1000).map(|n| format!("k{n},")).collect();
            format!("{keys}{last}").parse().unwrap()
        };
        let one = plain();
        let others = [
            plain(),
            source.informer(|builder| builder.name("own metrics").label_selector("app=a".parse().unwrap())),
            source.informer(|builder| builder.name("own metrics").label_selector("app=b".parse().unwrap())),
            source.informer(|builder| builder.name("own metrics").field_selector("app=b".parse().unwrap())),
            source.informer(|builder| builder.name("own metrics").label_selector(long("b"))),
            source.informer(|builder| builder.name("own metrics").label_selector(long("c"))),
            source.informer(|builder| builder.name("own metrics").scope(Scope::namespace("ns").unwrap())),
            source.informer(|builder| {
                let many = (0..500).map(|n| format!("ns-{n}"));
                builder.name("own metrics").scope(Scope::namespaces(many).unwrap())
            }),
        ];
        let distinct = series(&snapshotter, "informer_cached_objects");
        assert_eq!(distinct.len(), others.len() + 1, "{distinct:#?}");
        assert!(distinct.iter().all(|labels| labels.len() < 800), "labels are bounded: {distinct:#?}");
        one.stop(Stop::Drop).await;
        let _again = plain();
        assert_eq!(
            series(&snapshotter, "informer_cached_objects").len(),
            distinct.len(),
            "the metrics of a stopped informer are continued"
        );
    });
}

#[test]
fn handlers_of_one_name_have_metrics_of_their_own() {
    recorded(async |snapshotter| {
        let informer = source().informer::<Value>(|builder| builder);
        let named = || HandlerOptions::new().name("sync");
        let _one = informer.add_handler_with(HandlerFuncs::new(), named());
        let two = informer.add_handler_with(HandlerFuncs::new(), named());
        let _stream = informer.events_with(named());
        let names = || informer.handlers().into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names(), ["sync", "sync#2", "sync#3"]);
        assert_eq!(series(&snapshotter, "informer_handler_lag_seconds").len(), 3);
        two.remove().await;
        let _again = informer.add_handler_with(HandlerFuncs::new(), named());
        assert_eq!(names(), ["sync", "sync#3", "sync#2"]);
    });
}
