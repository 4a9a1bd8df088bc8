//! Tasks that panic or are aborted: visible at once, and restarted where possible.

use crate::support::{Errors, Recorder, cached, object, pass, secs, settle, source, started, watched};
use futures_util::{FutureExt, StreamExt};
use kube_informer::{
    FailPoint, HandlerFuncs, InformerBuilder, InformerFactory, InformerStatus, ListWatchError, Object,
    SharedInformer, Status, Stop, WaitError,
    testing::{FakeSource, Fault},
};
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Makes tasks panic the next times they come to a place.
#[derive(Clone)]
struct Bomb {
    at: FailPoint,
    left: Arc<AtomicUsize>,
}

impl Bomb {
    fn new(at: FailPoint) -> Self {
        Self { at, left: Arc::default() }
    }

    fn arm(&self, times: usize) {
        self.left.store(times, Ordering::SeqCst);
    }

    fn plant(&self, builder: InformerBuilder) -> InformerBuilder {
        let Self { at, left } = self.clone();
        builder.fail_points(move |point| {
            let explode = |left: usize| left.checked_sub(1).filter(|_| point == at);
            if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, explode).is_ok() {
                panic!("bomb at {point:?}");
            }
        })
    }
}

fn slow_down(retry_after: Duration) -> Fault {
    let status = Box::new(Status::failure(429, "TooManyRequests", "slow down"));
    Fault::Fail(ListWatchError::Api { status, retry_after: Some(retry_after), url: "/fake".into() })
}

fn is_failed(informer: &SharedInformer<Value>, reason: &str) -> bool {
    let ready = informer.ready(Duration::MAX);
    matches!(informer.status(), InformerStatus::Failed { why, .. } if why.contains(reason)) && ready.is_err()
}

async fn retry_after_is_limited(source: &FakeSource, retry_after: Duration, limit: u64) {
    let errors = Errors::default();
    let (informer, recorder) = watched(source, |builder| errors.hook(builder)).await;
    source.fail_watch(slow_down(retry_after)).cut();
    pass(5).await;
    assert_eq!(informer.status().word(), "retrying", "{}", informer.status());
    assert_eq!(errors.take().len(), 1);
    source.put(object("a", 1));
    let asked = source.requests().len();
    pass(limit - 10).await;
    assert_eq!(source.requests().len(), asked, "not before the limit");
    pass(limit / 10 + 20).await;
    assert!(informer.status().is_live());
    assert_eq!(recorder.take().len(), 1);
    assert_eq!(errors.take(), [""; 0], "no task has failed");
}

#[tokio::test(start_paused = true)]
async fn a_huge_retry_after_is_honoured_up_to_ten_minutes() {
    for retry_after in [secs(86_400), secs(u64::MAX / 2), secs(u64::MAX), Duration::MAX] {
        retry_after_is_limited(&source(), retry_after, 600).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_retry_after_can_be_changed() {
    let (short, source) = (source(), source());
    let (informer, _) = watched(&short, |builder| builder.max_retry_after(secs(60))).await;
    short.fail_watch(slow_down(secs(3600))).cut();
    pass(67).await;
    assert!(informer.status().is_live());

    // Without a limit the server decides, and may say never.
    let (informer, _) = watched(&source, |builder| builder.max_retry_after(Duration::MAX)).await;
    source.fail_watch(slow_down(Duration::MAX)).cut();
    pass(7 * 86_400).await;
    assert!(
        matches!(informer.status(), InformerStatus::Retrying { next: None, .. }),
        "{}",
        informer.status()
    );
    assert!(informer.ready(secs(3600)).is_err());
}

/// Responds to every request with a `Retry-After` that no clock can represent.
async fn overloaded_server() -> http::Uri {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    const RESPONSE: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 18446744073709551615\r\n\
        Content-Length: 0\r\nConnection: close\r\n\r\n";
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let _ = socket.read(&mut [0; 8192]).await;
            let _ = socket.write_all(RESPONSE).await;
        }
    });
    uri.parse().unwrap()
}

#[tokio::test]
async fn a_huge_retry_after_over_http_is_a_failure_like_any_other() {
    let config = kube::Config::new(overloaded_server().await);
    let factory = InformerFactory::from_config(config).unwrap();
    let maps = factory.of::<k8s_openapi::api::core::v1::ConfigMap>();
    let mut changes = maps.status_changes();
    factory.start();
    let failing = loop {
        let status = changes.next().await.unwrap();
        if status.failing_since().is_some() {
            break status;
        }
    };
    let InformerStatus::Retrying { next: Some(next), why, .. } = &failing else { panic!("{failing}") };
    assert!(why.contains("429"), "{why}");
    assert!(*next <= tokio::time::Instant::now() + secs(660), "{failing}");
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_panics_is_visible_and_restarts() {
    for at in [FailPoint::ReflectorStep, FailPoint::ReflectorEvent] {
        let (source, errors, bomb) = (source(), Errors::default(), Bomb::new(at));
        source.put(object("a", 1));
        let (informer, recorder) = watched(&source, |builder| bomb.plant(errors.hook(builder))).await;
        bomb.arm(1);
        source.put(object("b", 1));
        source.cut();
        settle().await;
        assert!(is_failed(&informer, "bomb at Reflector"), "{at:?}: {}", informer.status());
        assert_eq!(errors.take(), [format!("reflector: bomb at {at:?}")]);
        pass(10).await;
        assert!(
            informer.status().is_live() && informer.ready(secs(1)).is_ok(),
            "{at:?}: {}",
            informer.status()
        );
        assert_eq!(recorder.take(), ["+b@102"], "{at:?}: nothing is lost or doubled");
        assert_eq!(cached(&informer), ["a@101", "b@102"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_panics_again_and_again_backs_off() {
    let (source, errors, bomb) = (source(), Errors::default(), Bomb::new(FailPoint::ReflectorStep));
    let informer = source.informer::<Value>(|builder| bomb.plant(errors.hook(builder)));
    bomb.arm(usize::MAX);
    informer.start();
    pass(3600).await;
    let crashes = errors.take().len();
    assert!((60..130).contains(&crashes), "every 30 to 60 s: {crashes}");
    assert!(is_failed(&informer, "bomb"));
    let unsynced = informer.synced(secs(1)).await.unwrap_err();
    assert!(unsynced.unsynced[0].status.is_failed(), "{unsynced}");
    bomb.arm(0);
    pass(60).await;
    started(&informer).await;
    assert!(informer.ready(secs(1)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn compaction_that_panics_is_visible_and_restarts() {
    let (source, errors, bomb) = (source(), Errors::default(), Bomb::new(FailPoint::Compacting));
    let (informer, _) = watched(&source, |builder| bomb.plant(errors.hook(builder))).await;
    let noisy = |name: u64, value: u64| {
        let mut rng = fastrand::Rng::with_seed(value);
        let text: String = std::iter::repeat_with(|| rng.alphanumeric()).take(300).collect();
        json!({"metadata": {"namespace": "ns", "name": name.to_string()}, "data": {"text": text}})
    };
    bomb.arm(1);
    for round in 0..5 {
        // Every third object, so that what is left must be moved to free a segment.
        (0..1000)
            .filter(|name| round == 0 || name % 3 == round % 3)
            .for_each(|name| _ = source.put(noisy(name, round)));
        settle().await;
    }
    assert!(is_failed(&informer, "compaction panicked: bomb at Compacting"), "{}", informer.status());
    pass(10).await;
    assert!(informer.status().is_live(), "{}", informer.status());
    assert_eq!(errors.take(), ["compaction: compaction panicked: bomb at Compacting"]);
    let usage = informer.memory();
    assert!(usage.garbage <= usage.content / 4, "{usage:?}");
    assert_eq!(informer.lister().len(), 1000);
}

const OF_A_BATCH: [FailPoint; 5] = [
    FailPoint::BatchTaken,
    FailPoint::BatchApplied,
    FailPoint::BatchPublished,
    FailPoint::BatchQueued,
    FailPoint::BatchDelivered,
];

#[tokio::test(start_paused = true)]
async fn a_controller_that_panics_loses_and_doubles_nothing() {
    for at in OF_A_BATCH {
        let (source, errors, bomb) = (source(), Errors::default(), Bomb::new(at));
        source.put(object("a", 1));
        let (informer, first) = watched(&source, |builder| bomb.plant(errors.hook(builder))).await;
        let (second, late) = (Recorder::default(), Recorder::default());
        informer.add_handler(second.clone());
        settle().await;
        second.take();

        bomb.arm(2);
        source.put(object("a", 2));
        source.put(object("b", 1));
        settle().await;
        assert!(
            is_failed(&informer, &format!("the controller panicked: bomb at {at:?}")),
            "{}",
            informer.status()
        );
        assert_eq!(errors.take(), [format!("controller: the controller panicked: bomb at {at:?}")]);
        // One who joins while a batch is in flight gets it once, too.
        informer.add_handler(late.clone());
        settle().await;
        source.delete("ns/a");
        pass(10).await;

        assert!(
            informer.status().is_live() && informer.ready(secs(1)).is_ok(),
            "{at:?}: {}",
            informer.status()
        );
        assert_eq!(errors.take().len(), 1, "{at:?}: the bomb exploded twice");
        assert_eq!(cached(&informer), ["b@103"], "{at:?}");
        for recorder in [&first, &second] {
            assert_eq!(recorder.take(), ["~a@101>102", "+b@103", "-a@104"], "{at:?}");
        }
        let mut alive = std::collections::BTreeSet::new();
        for call in late.take() {
            let name = call[1..2].to_owned();
            let expected = match &call[..1] {
                "+" => alive.insert(name),
                "-" => alive.remove(&name),
                _ => alive.contains(&name),
            };
            assert!(expected, "{at:?}: {call}");
        }
        assert_eq!(alive.into_iter().collect::<Vec<_>>(), ["b"], "{at:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_panics_during_the_first_list_delivers_it_once() {
    for at in OF_A_BATCH {
        let (source, bomb) = (source(), Bomb::new(at));
        source.put(object("a", 1));
        source.put(object("b", 1));
        let informer = source.informer::<Value>(|builder| bomb.plant(builder));
        let recorders = [Recorder::default(), Recorder::default()];
        let handlers = recorders.clone().map(|recorder| informer.add_handler(recorder));
        bomb.arm(1);
        informer.start();
        settle().await;
        assert!(is_failed(&informer, "the controller panicked"), "{at:?}: {}", informer.status());
        // The store may already show the list that this handler finds there.
        let late = Recorder::default();
        let late_handler = informer.add_handler(late.clone());
        informer.synced(secs(10)).await.unwrap();
        for handler in handlers.into_iter().chain([late_handler]) {
            let synced = tokio::time::timeout(secs(60), handler.synced()).await;
            synced.unwrap_or_else(|_| panic!("{at:?}: {handler:?} is not synced")).unwrap();
        }
        for recorder in recorders.into_iter().chain([late]) {
            assert_eq!(recorder.take(), ["+a@101!", "+b@102!"], "{at:?}");
        }
    }
}

/// An index value whose `Ord` panics.
#[derive(Clone, PartialEq, Eq)]
struct Unordered(String);

impl PartialOrd for Unordered {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unordered {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        assert!(self.0 != "x" && other.0 != "x", "no order");
        self.0.cmp(&other.0)
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_cannot_be_applied_is_a_visible_failure() {
    let source = source();
    source.put(object("a", 1));
    let (informer, _) = watched(&source, |builder| builder).await;
    informer.index(|object: &Object<Value>| Some(Unordered(object.name().to_owned()))).unwrap();
    source.put(object("x", 1));
    source.put(object("c", 1));
    pass(300).await;
    let cached_all = cached(&informer) == ["a@101", "c@103", "x@102"];
    assert!(cached_all || is_failed(&informer, "the controller panicked: no order"), "{}", informer.status());
    let stopped = tokio::time::timeout(secs(1), informer.stop(Stop::Drain)).await;
    assert!(stopped.is_ok(), "a stop does not wait for what cannot be done");
}

#[tokio::test(start_paused = true)]
async fn a_handler_whose_task_panics_gets_every_event_once() {
    for at in [FailPoint::HandlerCall, FailPoint::HandlerReturned] {
        let (source, errors, bomb) = (source(), Errors::default(), Bomb::new(at));
        let (informer, recorder) = watched(&source, |builder| bomb.plant(errors.hook(builder))).await;
        bomb.arm(1);
        source.put(object("a", 1));
        source.put(object("b", 1));
        settle().await;
        let why = format!("the task of handler Recorder panicked: bomb at {at:?}");
        assert!(is_failed(&informer, &why), "{}", informer.status());
        assert_eq!(errors.take(), [format!("handler: {why}")]);
        assert_eq!(cached(&informer), ["a@101", "b@102"], "the cache does not wait for it");
        pass(10).await;
        assert_eq!(recorder.take(), ["+a@101", "+b@102"], "{at:?}");
        assert!(informer.status().is_live() && informer.ready(secs(1)).is_ok());
        assert_eq!(errors.take(), [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_its_restart_can_be_removed() {
    let (source, bomb) = (source(), Bomb::new(FailPoint::HandlerCall));
    let informer = source.informer::<Value>(|builder| bomb.plant(builder));
    let handler = informer.add_handler(HandlerFuncs::new());
    started(&informer).await;
    bomb.arm(usize::MAX);
    source.put(object("a", 1));
    settle().await;
    assert!(is_failed(&informer, "the task of handler"));
    assert!(handler.remove().boxed().now_or_never().is_none(), "it ends in its task");
    settle().await;
    assert!(informer.status().is_live() && informer.handlers().is_empty(), "{}", informer.status());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

#[test]
fn a_runtime_that_is_shut_down_is_a_visible_failure() {
    let (source, errors, recorder) = (source(), Errors::default(), Recorder::default());
    source.put(object("a", 1));
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    let (mut events, mut changes) = (informer.events(), informer.status_changes());
    let first = runtime();
    first.block_on(async {
        informer.add_handler(recorder.clone());
        started(&informer).await;
    });
    assert!(informer.ready(secs(1)).is_ok());
    assert_eq!(changes.next().now_or_never().flatten().map(|status| status.word()), Some("live"));
    drop(first);

    runtime().block_on(async {
        source.put(object("b", 1));
        assert!(is_failed(&informer, "has its runtime been shut down?"), "{}", informer.status());
        assert!(matches!(informer.status(), InformerStatus::Failed { next: None, .. }));
        assert_eq!(errors.take().len(), 1, "told once");
        assert_eq!(changes.next().await.map(|status| status.word()), Some("failed"));

        let key = "ns/b".parse().unwrap();
        let reached = informer.reached_version(&key, &102.into(), Duration::MAX).await;
        assert!(matches!(&reached, Err(WaitError::Failed { .. })), "{reached:?}");
        let there = informer.wait_until(&key, Duration::MAX, |object| object.is_some()).await;
        assert!(matches!(&there, Err(WaitError::Failed { .. })), "{there:?}");
        assert!(informer.synced(Duration::MAX).await.is_ok(), "it is in the cache");

        assert_eq!(events.next().await.map(|event| event.object().name().to_owned()), Some("a".into()));
        assert!(events.next().await.is_none(), "nothing will come");
        let late = informer.add_handler(recorder.clone());
        assert!(late.synced().await.is_err());
        assert_eq!(informer.handlers().len(), 2, "it is not kept");

        informer.stop(Stop::Drain).await;
        assert_eq!(informer.status(), InformerStatus::Stopped);
        assert_eq!(changes.next().await, Some(InformerStatus::Stopped));
        assert_eq!(errors.take(), [""; 0]);
    });
}

#[test]
fn a_runtime_that_never_ran_anything_is_a_visible_failure() {
    let (source, errors) = (source(), Errors::default());
    let informer = source.informer::<Value>(|builder| errors.hook(builder));
    let first = runtime();
    first.block_on(async { informer.start() });
    drop(first);
    assert!(is_failed(&informer, "aborted"), "{}", informer.status());
    assert_eq!(errors.take().len(), 1);
    let unsynced = runtime().block_on(informer.synced(Duration::MAX)).unwrap_err();
    assert!(unsynced.unsynced[0].status.is_failed(), "{unsynced}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_or_a_drop_is_no_failure() {
    for stop in [Some(Stop::Drain), Some(Stop::Drop), None] {
        let (source, errors) = (source(), Errors::default());
        let (informer, _) = watched(&source, |builder| errors.hook(builder)).await;
        let mut changes = informer.status_changes();
        match stop {
            Some(stop) => informer.stop(stop).await,
            None => drop(informer),
        }
        settle().await;
        assert_eq!(errors.take(), [""; 0]);
        assert_eq!(changes.next().await, Some(InformerStatus::Stopped));
        assert_eq!(changes.next().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_informer_keeps_no_handlers() {
    let informer = source().informer::<Value>(|builder| builder);
    informer.start();
    informer.stop(Stop::Drop).await;
    for _ in 0..3 {
        assert!(informer.add_handler(HandlerFuncs::new()).synced().await.is_err());
        assert!(informer.events().next().await.is_none());
    }
    assert!(informer.handlers().is_empty());
}

/// Nothing can wait for a restart there.
#[test]
fn a_runtime_without_a_timer_is_named_as_the_reason() {
    let informer = source().informer::<Value>(|builder| builder);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        informer.start();
        informer.synced(Duration::MAX).await.unwrap_err();
    });
    assert!(is_failed(&informer, "timer"), "{}", informer.status());
}
