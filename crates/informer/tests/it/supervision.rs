//! Tasks that panic or are aborted: visible at once, and restarted where possible.

use crate::support::{Errors, cached, object, pass, secs, settle, source, started, watched};
use futures_util::StreamExt;
use kube_informer::{
    FailPoint, InformerBuilder, InformerFactory, InformerStatus, ListWatchError, SharedInformer, Status,
    testing::{FakeSource, Fault},
};
use serde_json::Value;
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

/// Answers every request with a `Retry-After` that no clock can represent.
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
    assert!(unsynced.laggards[0].status.is_failed(), "{unsynced}");
    bomb.arm(0);
    pass(60).await;
    started(&informer).await;
    assert!(informer.ready(secs(1)).is_ok());
}
