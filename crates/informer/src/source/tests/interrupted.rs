//! Responses that are interrupted or late. The source waits without limit: deadlines are the reflector's.

use super::*;
use fake::streamed;
use futures_util::{stream, stream::pending};
use std::io;

fn event(version: u64) -> String {
    format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"metadata\":{{\"name\":\"a\",\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

#[tokio::test(start_paused = true)]
async fn an_error_response_that_never_ends_is_described_by_its_code() {
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
async fn a_source_has_no_deadlines() {
    let fake = Fake::answering_later(|request| {
        let watch = request.uri.query().is_some_and(|query| query.contains("watch=true"));
        let late = stream::once(async move {
            tokio::time::sleep(Duration::from_secs(86_400)).await;
            Ok(if watch { event(1) } else { r#"{"items":[{"metadata":{"name":"a"}}]}"#.to_owned() })
        });
        async move {
            tokio::time::sleep(Duration::from_secs(86_400)).await;
            streamed(200, JSON, late)
        }
    });
    let (parts, error) = drain(source(&fake).list(ListOptions::default()).await).await;
    assert_eq!((parts.len(), error.is_none()), (1, true));
    let one_minute = WatchOptions::new().timeout(Duration::from_secs(60));
    let (events, error) = drain(source(&fake).watch(one_minute).await).await;
    assert_eq!((events.len(), error.is_none()), (1, true));
}
