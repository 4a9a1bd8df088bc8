//! Durations that no clock can represent: they neither panic nor wrap, and `Duration::MAX` is never.

use crate::support::{Recorder, cached, encoded, object, pass, secs, settle, source, started, watched};
use kube_informer::{
    HandlerOptions, InformerFactory, InformerStatus, WatchOptions,
    testing::{Fault, Request},
};
use serde_json::Value;
use std::time::Duration;

/// `Duration::MAX`, and others that are too long for a clock or nearly so.
const ENDLESS: [Duration; 4] = [
    Duration::MAX,
    Duration::from_secs(u64::MAX),
    Duration::from_secs(u64::MAX / 2),
    Duration::from_secs(u64::MAX / 4),
];

#[tokio::test(start_paused = true)]
async fn a_server_is_never_probed_after_an_endless_silence() {
    for silence in ENDLESS {
        let source = source();
        source.put(object("a", 1));
        let (informer, recorder) = watched(&source, |builder| builder.probe_after(silence)).await;
        source.cut();
        pass(900).await;
        let watches = source.requests().len();
        assert!(watches < 6, "{silence:?}: {:?}", source.requests());
        source.put(object("b", 1));
        settle().await;
        assert_eq!(recorder.take(), ["+b@102"], "{silence:?}");
        assert!(informer.status().is_live(), "{silence:?}: {}", informer.status());
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_resync_period_never_resyncs() {
    for period in ENDLESS {
        let source = source();
        source.put(object("a", 1));
        let (informer, recorder) = watched(&source, |builder| builder.resync(period)).await;
        pass(86_400).await;
        assert_eq!(recorder.take(), [""; 0], "{period:?}");
        source.put(object("a", 2));
        settle().await;
        assert_eq!(recorder.take(), ["~a@101>102"], "{period:?}");
        assert!(informer.status().is_live());
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_with_an_endless_period_never_resyncs() {
    for period in ENDLESS {
        let source = source();
        source.put(object("a", 1));
        let informer = source.informer::<Value>(|builder| builder.resync(secs(60)));
        let (still, regular) = (Recorder::default(), Recorder::default());
        let options = HandlerOptions::new().resync(period);
        informer.add_handler_with(still.clone(), options);
        informer.add_handler(regular.clone());
        started(&informer).await;
        pass(200).await;
        assert_eq!((still.calls().len(), regular.calls().len()), (1, 4), "{period:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn watches_are_asked_to_last_a_finite_time() {
    for timeout in ENDLESS {
        let source = source();
        let (informer, recorder) = watched(&source, |builder| builder.min_watch_timeout(timeout)).await;
        let asked = |request| match request {
            Request::Watch(WatchOptions { timeout, .. }) => timeout,
            Request::List(_) | Request::Get(_) => None,
        };
        let asked: Vec<_> = source.requests().into_iter().filter_map(asked).collect();
        assert!(asked.iter().all(|asked| *asked <= secs(2 * 86_400)) && !asked.is_empty(), "{asked:?}");
        source.put(object("a", 1));
        settle().await;
        assert_eq!(recorder.take(), ["+a@101"], "{timeout:?}");
        assert!(informer.status().is_live());
    }
}

#[tokio::test(start_paused = true)]
async fn an_endless_backoff_never_tries_again() {
    for wait in [Duration::MAX, secs(u64::MAX)] {
        let source = source();
        let (informer, _) = watched(&source, |builder| builder.backoff(wait, wait)).await;
        source.break_connections();
        let before = source.requests().len();
        pass(86_400).await;
        assert_eq!(source.requests().len(), before);
        let status = informer.status();
        assert!(matches!(status, InformerStatus::Retrying { next: None, .. }), "{status}");
        assert!(status.to_string().contains("no further retry"), "{status}");
    }
}

/// No deadline of a request ends it: a server may take a day for each response.
#[tokio::test(start_paused = true)]
async fn a_request_with_endless_deadlines_is_never_given_up() {
    const DAY: u64 = 86_400;
    for endless in ENDLESS {
        let source = source();
        source.put(object("a", 1));
        source.fail_list(Fault::Delay(secs(DAY))).fail_watch(Fault::Delay(secs(DAY)));
        let informer = source.informer::<Value>(|builder| {
            builder.streaming_list(false).deadlines(|deadlines| {
                deadlines.list_response = endless;
                deadlines.list_item = endless;
                deadlines.watch_response = endless;
                deadlines.watch_end = endless;
                deadlines.watch_without_timeout = endless;
                deadlines.probe_after = secs(10 * DAY);
            })
        });
        informer.start();
        pass(DAY - 1).await;
        assert_eq!(source.requests().len(), 1, "{endless:?}: {}", informer.status());
        pass(2).await;
        assert_eq!(cached(&informer), ["a@101"], "{endless:?}");
        source.put(object("b", 1));
        pass(DAY).await;
        assert_eq!(cached(&informer), ["a@101", "b@102"], "{endless:?}");
        assert_eq!(source.requests().len(), 2, "{endless:?}: {:?}", source.requests());
        assert!(informer.status().is_live(), "{endless:?}: {}", informer.status());
    }
}

#[tokio::test(start_paused = true)]
async fn one_may_wait_without_end() {
    for within in ENDLESS {
        let source = source();
        let written = encoded(&source, &object("a", 1)).key().clone();
        source.fail_watch(Fault::Delay(within));
        let informer = source.informer::<Value>(|builder| builder);
        informer.start();
        let later = async {
            pass(60).await;
            source.put(object("a", 1));
        };
        let version = 101.into();
        let reached = informer.reached_version(&written, &version, within);
        let there = informer.wait_until(&written, within, |object| object.is_some());
        let (synced, reached, there, ()) = tokio::join!(informer.synced(within), reached, there, later);
        assert!(synced.is_ok() && reached.is_ok() && there.is_ok(), "{within:?}");
        assert!(informer.ready(within).is_ok());
        assert_eq!(cached(&informer), ["a@101"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_factory_may_wait_without_end() {
    let source = source();
    let fake = source.clone();
    let factory = InformerFactory::from_sources(move |_, _, namespace| fake.source(namespace))
        .resync(Duration::MAX)
        .build();
    factory.of::<k8s_openapi::api::core::v1::ConfigMap>();
    factory.start();
    factory.synced(Duration::MAX).await.unwrap();
}

/// A deadline of zero is missed by every response that is not there at once. Without any delay between retries, no time
/// would pass.
#[tokio::test(start_paused = true)]
async fn deadlines_and_backoff_of_zero_leave_time_for_others() {
    let source = source();
    source.put(object("a", 1));
    for _ in 0..50 {
        source.fail_list(Fault::Delay(secs(1)));
    }
    let informer = source.informer::<Value>(|builder| {
        let builder = builder.streaming_list(false).backoff(Duration::ZERO, Duration::ZERO);
        builder.deadlines(|deadlines| {
            deadlines.list_response = Duration::ZERO;
            deadlines.list_item = Duration::ZERO;
            deadlines.watch_response = Duration::ZERO;
        })
    });
    informer.start();
    pass(1).await;
    let requests = source.requests().len();
    assert!((51..100).contains(&requests), "{requests} requests");
    assert!(informer.status().is_live(), "{}", informer.status());
    assert_eq!(cached(&informer), ["a@101"]);
}
