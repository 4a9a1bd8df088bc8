//! Servers that do not answer, or stop in the middle. Time is paused: waiting costs none.

use super::*;
use fake::streamed;
use futures_util::{stream, stream::pending};
use std::io;
use tokio::time::Instant;

fn event(version: u64) -> String {
    format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

fn one_minute() -> WatchOptions {
    WatchOptions::new().timeout(Duration::from_secs(60))
}

fn is_silent(error: &Option<ListWatchError>, seconds: u64) -> bool {
    matches!(error, Some(ListWatchError::Silent { after, .. }) if after.as_secs() == seconds)
}

#[tokio::test(start_paused = true)]
async fn headers_have_a_deadline() {
    let fake = Fake::answering_later(|_| std::future::pending());
    let start = Instant::now();
    let (_, error) = drain(source(&fake).list(ListOptions::default()).await).await;
    assert!(is_silent(&error, 30), "{error:?}");
    assert_eq!(start.elapsed().as_secs(), 30);
    let (_, error) = drain(source(&fake).patience(Duration::from_secs(5)).watch(one_minute()).await).await;
    assert!(is_silent(&error, 5), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_may_not_stop_in_the_middle() {
    let fake = Fake::answering(|_| {
        let start = stream::iter([Ok(r#"{"items":[{"metadata":{"name":"a"}},"#.to_owned())]);
        streamed(200, JSON, start.chain(pending()))
    });
    let (parts, error) = drain(source(&fake).list(ListOptions::default()).await).await;
    assert_eq!(parts, ["Item(Pod a@)"]);
    assert!(is_silent(&error, 30), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_lasts_its_timeout_and_a_little() {
    let fake = Fake::answering(|_| streamed(200, JSON, pending()));
    let start = Instant::now();
    let (_, error) = drain(source(&fake).watch(one_minute()).await).await;
    assert!(is_silent(&error, 75), "{error:?}");
    assert_eq!(start.elapsed().as_secs(), 75);
    let impatient = source(&fake).patience(Duration::from_secs(5));
    let (_, error) = drain(impatient.watch(one_minute()).await).await;
    assert!(is_silent(&error, 65), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_event_does_not_prolong_a_watch_that_died_after_it() {
    let fake = Fake::answering(|_| {
        let late = stream::once(async {
            tokio::time::sleep(Duration::from_secs(59)).await;
            Ok(event(1))
        });
        streamed(200, JSON, late.chain(pending()))
    });
    let (events, error) = drain(source(&fake).watch(one_minute()).await).await;
    assert_eq!(events.len(), 1);
    assert!(is_silent(&error, 75), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_outlives_its_timeout_goes_on_while_events_come() {
    let fake = Fake::answering(|_| {
        let events = stream::iter(1..20).then(async |version| {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(event(version))
        });
        streamed(200, JSON, events)
    });
    let (events, error) = drain(source(&fake).watch(one_minute()).await).await;
    assert_eq!(events.len(), 19, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_does_not_make_the_server_silent() {
    let fake =
        Fake::answering(|_| streamed(200, JSON, stream::iter((1..4).map(|version| Ok(event(version))))));
    let mut watch = source(&fake).watch(one_minute()).await.unwrap();
    for _ in 1..4 {
        tokio::time::sleep(Duration::from_secs(300)).await;
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Added(_)))));
    }
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_never_finished_is_told_by_its_code() {
    let fake = Fake::answering(|_| streamed(500, JSON, pending()));
    let error = source(&fake).list(ListOptions::default()).await.err().unwrap();
    assert_eq!(error.code(), Some(500));
}

#[tokio::test]
async fn a_broken_connection_is_an_error_of_its_own() {
    let fake = Fake::answering(|_| {
        let broken = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
        streamed(200, JSON, stream::iter([Ok(event(1)), Err(broken)]))
    });
    let (events, error) = drain(source(&fake).watch(WatchOptions::default()).await).await;
    assert_eq!(events.len(), 1);
    let Some(ListWatchError::Broken { message, .. }) = error else { panic!("{error:?}") };
    assert_eq!(message, "connection reset by peer");
}

#[tokio::test(start_paused = true)]
async fn patience_may_be_without_end() {
    let fake = Fake::answering(|asked| {
        let watch = asked.uri.query().is_some_and(|query| query.contains("watch=true"));
        let late = stream::once(async move {
            tokio::time::sleep(Duration::from_secs(86_400)).await;
            Ok(if watch { event(1) } else { r#"{"items":[{"metadata":{"name":"a"}}]}"#.to_owned() })
        });
        streamed(200, JSON, late)
    });
    let patient = source(&fake).patience(Duration::MAX);
    let (parts, error) = drain(patient.list(ListOptions::default()).await).await;
    assert_eq!((parts.len(), error.is_none()), (1, true));
    let endless = WatchOptions::new().timeout(Duration::MAX);
    let (events, error) = drain(patient.watch(endless).await).await;
    assert_eq!((events.len(), error.is_none()), (1, true));
}
