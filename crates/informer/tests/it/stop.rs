//! A stop is complete (promise 17 of docs/contract.md).

use crate::support::{Recorder, object, pass, secs, settle, source, started, watched};
use futures_util::StreamExt;
use kube_informer::{Event, HandlerFuncs, IndexError, InformerStatus, Stop, testing::Fault};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

#[tokio::test(start_paused = true)]
async fn drain_delivers_what_is_on_its_way_and_drop_does_not() {
    for (stop, expected) in [(Stop::Drain, 200), (Stop::Drop, 0)] {
        let source = source();
        let informer = source.informer::<Value>(|builder| builder);
        started(&informer).await;
        for i in 0..200 {
            source.put(object(&format!("o{i}"), 1));
        }
        settle().await;
        let recorder = Recorder::default();
        // A replay of the cache that no handler has received yet.
        informer.add_handler(recorder.clone());
        informer.stop(stop).await;
        assert_eq!(recorder.take().len(), expected, "{stop:?}");
        source.put(object("late", 1));
        pass(10).await;
        assert!(recorder.take().is_empty(), "nothing runs any more");
        assert_eq!(informer.status(), InformerStatus::Stopped);
        assert_eq!((source.open_watches(), informer.lister().len()), (0, 200), "the cache can still be read");
    }
}

/// On real threads: a call may be running when the stop is asked for.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn no_handler_runs_after_stop_has_returned() {
    for round in 0..20 {
        let source = source();
        for i in 0..50 {
            source.put(object(&format!("o{i}"), 1));
        }
        let informer = source.informer::<Value>(|builder| builder);
        let (stopped, late) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..3 {
            let (stopped, late) = (Arc::clone(&stopped), Arc::clone(&late));
            informer.add_handler(HandlerFuncs::<Value>::new().on_add(move |_, _| {
                for _ in 0..100 {
                    std::hint::spin_loop();
                }
                if stopped.load(Ordering::SeqCst) {
                    late.fetch_add(1, Ordering::SeqCst);
                }
            }));
        }
        informer.start();
        if round % 2 == 0 {
            informer.synced(secs(10)).await.unwrap();
        }
        informer.stop(if round % 4 < 2 { Stop::Drain } else { Stop::Drop }).await;
        stopped.store(true, Ordering::SeqCst);
        tokio::task::yield_now().await;
        assert_eq!(late.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_second_waits_for_the_first() {
    let source = source();
    for i in 0..1000 {
        source.put(object(&format!("o{i}"), 1));
    }
    let informer = source.informer::<Value>(|builder| builder);
    started(&informer).await;
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    let first = tokio::spawn({
        let informer = informer.clone();
        async move { informer.stop(Stop::Drain).await }
    });
    tokio::task::yield_now().await;
    informer.stop(Stop::Drain).await;
    assert_eq!(recorder.take().len(), 1000, "the second neither cuts the first short nor returns before it");
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_takes_too_long_can_be_cut_short() {
    let source = source();
    for i in 0..1000 {
        source.put(object(&format!("o{i}"), 1));
    }
    let informer = source.informer::<Value>(|builder| builder);
    started(&informer).await;
    let recorder = Recorder::default();
    informer.add_handler(recorder.clone());
    let first = tokio::spawn({
        let informer = informer.clone();
        async move { informer.stop(Stop::Drain).await }
    });
    tokio::task::yield_now().await;
    informer.stop(Stop::Drop).await;
    assert!(recorder.take().len() < 1000);
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_nobody_waits_for_is_a_stop() {
    let source = source();
    source.put(object("a", 1));
    let (informer, recorder) = watched(&source, |builder| builder).await;
    let registration = informer.add_handler(Recorder::default());
    drop(Box::pin(informer.stop(Stop::Drain)));
    assert!(!informer.is_stopped(), "a future that was never polled does nothing");
    let mut stop = Box::pin(informer.stop(Stop::Drain));
    assert!(futures_util::FutureExt::now_or_never(&mut stop).is_none());
    drop(stop);
    informer.stop(Stop::Drain).await;
    source.put(object("b", 1));
    settle().await;
    assert!(recorder.take().is_empty() && informer.is_stopped());
    registration.remove().await;
}

#[tokio::test(start_paused = true)]
async fn a_fill_can_be_stopped_at_any_point() {
    let faults = [Fault::Silence, Fault::Delay(secs(5)), Fault::Refuse, Fault::BreakAfter(1)];
    for (fault, streaming) in faults.iter().flat_map(|fault| [(fault, true), (fault, false)]) {
        let source = source();
        source.put(object("a", 1));
        source.put(object("b", 1));
        source.fail_watch(fault.clone()).fail_list(fault.clone());
        let informer = source.informer::<Value>(|builder| builder.streaming_list(streaming));
        let recorder = Recorder::default();
        let registration = informer.add_handler(recorder.clone());
        informer.start();
        settle().await;
        informer.stop(Stop::Drain).await;
        assert!(!informer.is_synced() && informer.lister().is_empty());
        registration.synced().await.unwrap_err();
        assert!(recorder.take().is_empty());
        assert!(informer.synced(secs(1)).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_before_the_start_it_never_starts() {
    let source = source();
    let informer = source.informer::<Value>(|builder| builder);
    let recorder = Recorder::default();
    let registration = informer.add_handler(recorder.clone());
    let mut events = informer.events();
    informer.stop(Stop::Drain).await;
    informer.start();
    pass(10).await;
    assert!(source.requests().is_empty() && recorder.calls().is_empty());
    registration.synced().await.unwrap_err();
    assert!(events.next().await.is_none());
    registration.remove().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_asked_of_a_stopped_informer_fails_and_does_not_hang() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    informer.stop(Stop::Drop).await;
    let late = informer.add_handler(Recorder::default());
    late.synced().await.unwrap_err();
    late.remove().await;
    assert!(informer.events().next().await.is_none());
    assert_eq!(informer.index_label("app").unwrap_err(), IndexError::Stopped);
    assert!(informer.reached_version(&"ns/a".parse().unwrap(), &999.into(), secs(9)).await.is_err());
    assert!(informer.ready(secs(1000)).is_err());
    informer.stop(Stop::Drain).await;
}

#[tokio::test(start_paused = true)]
async fn a_drained_stream_can_be_read_to_its_end() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let (mut kept, mut dropped) = (informer.events(), informer.events());
    started(&informer).await;
    source.put(object("b", 1));
    settle().await;
    informer.stop(Stop::Drain).await;
    let names: Vec<String> =
        kept.by_ref().map(|event: Event<Value>| event.object().name().to_owned()).collect().await;
    assert_eq!(names, ["a", "b"]);
    informer.stop(Stop::Drop).await;
    assert!(dropped.next().await.is_none(), "a later drop discards what was not received");
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_takes_everything_with_it() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let registration = informer.add_handler(Recorder::default());
    let mut events = informer.events();
    started(&informer).await;
    assert!(events.next().await.is_some());
    drop(informer);
    settle().await;
    assert!(events.next().await.is_none(), "a stream does not wait for ever");
    registration.remove().await;
    assert_eq!(source.open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn dropped_before_the_start_it_leaves_nobody_waiting() {
    let informer = source().informer::<Value>(|builder| builder);
    let registration = informer.add_handler(Recorder::default());
    let mut events = informer.events();
    drop(informer);
    registration.synced().await.unwrap_err();
    assert!(events.next().await.is_none());
}

#[test]
fn a_start_outside_a_runtime_panics_and_spoils_nothing() {
    let source = source();
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| builder);
    let start = std::panic::AssertUnwindSafe(|| informer.start());
    assert!(std::panic::catch_unwind(start).is_err());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        started(&informer).await;
        assert_eq!(informer.lister().len(), 1);
        informer.stop(Stop::Drop).await;
    });
}
