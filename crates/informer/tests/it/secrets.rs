//! A secret never shows where it does not belong.

use crate::support::{Errors, Recorder, pass, settle, started};
use futures_util::{FutureExt, StreamExt};
use harness::CapturedLog;
use kube_informer::{EventHandler, Kind, Object, SharedInformer, Stop, Transform, testing::FakeSource};
use metrics_util::debugging::DebuggingRecorder;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Debug;

const CANARY: &str = "canary-c2VjcmV0";

fn secret(name: &str) -> Value {
    json!({
        "metadata": {"namespace": "ns", "name": name, "annotations": {"last-applied": CANARY}},
        "data": {"password": CANARY, "number": CANARY}, "stringData": CANARY, "type": CANARY,
    })
}

/// Reads the secret as what it is not.
#[derive(Debug, Deserialize)]
struct Mistaken {
    #[allow(dead_code)]
    data: Numbers,
}

#[derive(Debug, Deserialize)]
struct Numbers {
    #[allow(dead_code)]
    number: u32,
}

struct Panicking;

impl EventHandler<Value> for Panicking {
    fn on_add(&mut self, object: &Object<Value>, _initial: bool) {
        panic!("{:?}", object.kind());
    }
}

fn show(shown: &mut Vec<String>, value: impl Debug) {
    shown.push(format!("{value:?} {value:#?}"));
}

/// Everything that can go wrong, goes wrong.
async fn story(shown: &mut Vec<String>) {
    let source = FakeSource::new(Kind::namespaced("", "v1", "Secret", "secrets"));
    source.put(secret("a"));
    source.put(secret("panics"));
    let errors = Errors::default();
    let transform = Transform::new().function(|value| assert_ne!(value["metadata"]["name"], "panics"));
    let informer: SharedInformer<Value> =
        source.informer(|builder| errors.hook(builder).handler_bound(1).transform(transform));
    let index = informer.index_view(|_: &Mistaken| Some(1)).unwrap();
    let by_password = informer.index_field("data.password").unwrap();
    let registration = informer.add_handler(Recorder::default());
    informer.add_handler(Panicking);
    let mut events = informer.events();
    started(&informer).await;
    source.put(secret("b"));
    source.put(secret("b"));
    let mut monster = secret("monster");
    for i in 0..5000 {
        monster["metadata"]["labels"][format!("l{i}")] = CANARY.into();
    }
    source.put(monster);
    source.delete("ns/b");
    source.expire_history().cut();
    pass(200).await;
    for object in &informer.lister().list() {
        show(shown, object);
        show(shown, object.view::<Mistaken>().unwrap_err());
        shown.push(object.view::<Mistaken>().unwrap_err().to_string());
        show(shown, object.cast::<Mistaken>().decode().unwrap_err());
        show(shown, object.labels());
    }
    show(shown, &informer);
    show(shown, informer.lister());
    show(shown, (index, by_password));
    show(shown, informer.status());
    shown.push(informer.status().to_string());
    show(shown, &registration);
    while let Some(Some(event)) = events.next().now_or_never() {
        show(shown, &event);
    }
    show(shown, &events);
    show(shown, &source);
    shown.extend(errors.take());
    assert_eq!(informer.lister().by(&by_password, CANARY).unwrap().len(), 1, "the secret is really there");
    informer.stop(Stop::Drop).await;
    settle().await;
}

#[test]
fn a_canary_is_seen_in_no_log_error_metric_or_debug_output() {
    let log = CapturedLog::capture(tracing::Level::TRACE);
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let mut shown = Vec::new();
    metrics::with_local_recorder(&recorder, || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(story(&mut shown));
    });
    let metrics: Vec<String> = snapshotter
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, _, _, value)| format!("{key:?} {value:?}"))
        .collect();
    assert!(metrics.iter().any(|metric| metric.contains("informer_cached_objects")), "{metrics:?}");
    let log = log.text();
    assert!(log.contains("informer is live") && log.contains("panicked"), "the log is really there: {log}");
    for text in shown.iter().chain(&metrics).chain([&log]) {
        assert!(!text.contains("canary"), "{text}");
    }
}
