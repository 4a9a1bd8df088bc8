//! Reconciles that fail, panic or never end, and controllers that stop.

use crate::support::{Log, Running, World, eventually, secs, settle};
use harness::CapturedLog;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::Object;
use kube_informer_controller::{Action, BoxError, Controller, FailureCause, ReconcileFailure};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use tracing::Level;

/// A hook that notes failures: the key, their number and the cause.
fn failures(log: &Log) -> impl Fn(&ReconcileFailure) + use<> {
    let log = log.clone();
    move |failure| log.note(format!("{} #{}: {}", failure.key, failure.failures, failure.cause))
}

#[tokio::test(start_paused = true)]
async fn an_error_is_reported_and_retried_with_growing_delays() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let (reported, healthy) = (Log::default(), Log::default());
    let times = Arc::new(Mutex::new(Vec::new()));
    let (noted, other) = (Arc::clone(&times), healthy.clone());
    let run = Controller::new(&world.configs(), world.client.clone()).on_error(failures(&reported)).run(
        move |config: Object<ConfigMap>, context| {
            if config.name() == "b" {
                other.note("b");
                return std::future::ready(Ok(Action::done()));
            }
            assert_eq!(context.failures() as usize, noted.lock().unwrap().len());
            noted.lock().unwrap().push(Instant::now());
            let attempts = noted.lock().unwrap().len();
            std::future::ready(if attempts <= 5 { Err("no luck") } else { Ok(Action::done()) })
        },
    );
    let running = Running::start(run);
    eventually(|| times.lock().unwrap().len() == 6).await;
    settle().await;
    assert_eq!(reported.len(), 5);
    assert_eq!(reported.lines()[4], "default/a #5: no luck");
    assert_eq!(healthy.lines(), ["b"], "another key is not affected");
    let times = times.lock().unwrap().clone();
    let delays: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(delays.windows(2).all(|pair| pair[1] > pair[0]), "{delays:?}");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_success_forgets_failures() {
    let world = World::start().await;
    world.create("a").await;
    let reported = Log::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let run = Controller::new(&world.configs(), world.client.clone()).on_error(failures(&reported)).run(
        move |_: Object<ConfigMap>, _| {
            let nth = count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(match nth {
                0 | 1 | 3 => Err("again"),
                2 => Ok(Action::requeue_after(secs(1))),
                _ => Ok(Action::done()),
            })
        },
    );
    let running = Running::start(run);
    eventually(|| calls.load(Ordering::SeqCst) == 5).await;
    settle().await;
    assert_eq!(
        reported.lines(),
        ["default/a #1: again", "default/a #2: again", "default/a #1: again"],
        "the count starts again after the success"
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_reported_and_retried() {
    let world = World::start().await;
    world.create("a").await;
    let (reported, done) = (Log::default(), Log::default());
    let (calls, finished) = (Arc::new(AtomicUsize::new(0)), done.clone());
    let run = Controller::new(&world.configs(), world.client.clone()).on_error(failures(&reported)).run(
        move |config: Object<ConfigMap>, _| {
            let nth = calls.fetch_add(1, Ordering::SeqCst);
            assert!(nth != 0, "before the future is made");
            let done = finished.clone();
            async move {
                tokio::task::yield_now().await;
                assert!(nth != 1, "in the future");
                done.note(config.name());
                Ok::<_, BoxError>(Action::done())
            }
        },
    );
    let running = Running::start(run);
    done.reaches(1).await;
    assert_eq!(
        reported.lines(),
        ["default/a #1: panicked: before the future is made", "default/a #2: panicked: in the future"]
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_never_ends_is_cancelled_at_its_deadline_and_retried() {
    let world = World::start().await;
    world.create("a").await;
    world.create("b").await;
    let (reported, done) = (Log::default(), Log::default());
    let (calls, finished) = (Arc::new(AtomicUsize::new(0)), done.clone());
    let run = Controller::new(&world.configs(), world.client.clone())
        .deadline(secs(20))
        .on_error(failures(&reported))
        .run(move |config: Object<ConfigMap>, _| {
            let stuck = config.name() == "a" && calls.fetch_add(1, Ordering::SeqCst) < 2;
            let done = finished.clone();
            async move {
                if stuck {
                    std::future::pending::<()>().await;
                }
                done.note(config.name());
                Ok::<_, BoxError>(Action::done())
            }
        });
    let start = Instant::now();
    let running = Running::start(run);
    done.reaches(2).await;
    assert_eq!(done.lines(), ["b", "a"], "the only worker was free after the deadline");
    let took = start.elapsed();
    assert!(took >= secs(40) && took < secs(45), "{took:?}");
    assert_eq!(reported.len(), 2);
    assert!(reported.lines()[0].contains("did not return within 20s"), "{:?}", reported.lines());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_hook_or_an_error_that_panics_does_not_lose_the_key() {
    #[derive(Debug)]
    struct Unprintable;
    impl std::fmt::Display for Unprintable {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            panic!("cannot be printed")
        }
    }
    impl std::error::Error for Unprintable {}

    let world = World::start().await;
    world.create("a").await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let run = Controller::new(&world.configs(), world.client.clone())
        .on_error(|failure| assert!(matches!(failure.cause, FailureCause::Panic(_)), "a hook panics"))
        .run(move |_: Object<ConfigMap>, _| {
            let nth = count.fetch_add(1, Ordering::SeqCst);
            let outcome: Result<_, BoxError> = match nth {
                0 => Err("the hook panics".into()),
                1 => Err(Unprintable.into()),
                _ => Ok(Action::done()),
            };
            std::future::ready(outcome)
        });
    let running = Running::start(run);
    eventually(|| calls.load(Ordering::SeqCst) == 3).await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_controller_waits_for_reconciles_in_flight() {
    let world = World::start().await;
    for name in ["a", "b"] {
        world.create(name).await;
    }
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).run(move |_: Object<ConfigMap>, _| {
        let log = noted.clone();
        async move {
            log.note("start");
            tokio::time::sleep(secs(10)).await;
            log.note("end");
            Ok::<_, BoxError>(Action::done())
        }
    });
    let running = Running::start(run);
    log.reaches(1).await;
    running.stop().await;
    assert_eq!(log.lines(), ["start", "end"], "the second key is not taken");
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_does_not_return_is_cancelled_after_the_drain_timeout() {
    let world = World::start().await;
    world.create("a").await;
    let log = Log::default();
    let noted = log.clone();
    let run = Controller::new(&world.configs(), world.client.clone()).drain_timeout(secs(7)).run(
        move |_: Object<ConfigMap>, _| {
            let log = noted.clone();
            async move {
                struct Cancelled(Log);
                impl Drop for Cancelled {
                    fn drop(&mut self) {
                        self.0.note("cancelled");
                    }
                }
                let _cancelled = Cancelled(log.clone());
                log.note("start");
                std::future::pending::<Result<Action, BoxError>>().await
            }
        },
    );
    let running = Running::start(run);
    log.reaches(1).await;
    let start = Instant::now();
    running.stop().await;
    assert_eq!(log.lines(), ["start", "cancelled"]);
    assert_eq!(start.elapsed(), Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn the_log_has_each_reconcile_the_next_retry_and_the_recovery() {
    let world = World::start().await;
    world.create("a").await;
    let calls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&calls);
    let captured = CapturedLog::capture(Level::DEBUG);
    let run = Controller::new(&world.configs(), world.client.clone()).run(move |_: Object<ConfigMap>, _| {
        std::future::ready(match count.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => Err("no luck"),
            2 => Ok(Action::requeue_after(secs(7))),
            _ => Ok(Action::done()),
        })
    });
    let running = Running::start(run);
    eventually(|| calls.load(Ordering::SeqCst) == 4).await;
    settle().await;
    let text = captured.text();
    let lines = |part: &str| text.lines().filter(|line| line.contains(part)).count();
    assert_eq!(
        lines("WARN kube_informer_controller::telemetry: reconcile failed; next retry in 5ms"),
        1,
        "{text}"
    );
    assert_eq!(lines("reconcile failed; next retry in 10ms"), 1, "{text}");
    assert_eq!(
        lines("DEBUG kube_informer_controller::telemetry: reconciled; next reconcile in 7s"),
        1,
        "{text}"
    );
    assert_eq!(
        lines("INFO kube_informer_controller::telemetry: reconciled again after failures"),
        1,
        "{text}"
    );
    assert_eq!(lines("outcome=\"done\""), 1, "{text}");
    running.stop().await;
}
