//! What a server, a proxy or an attacker may send. Nothing of it panics, hides a good object or is repeated in an
//! error, a log line or debug output.

use super::*;
use fake::streamed;
use futures_util::stream;
use harness::CapturedLog;
use std::io;

/// A secret that stands in every body and header below.
const CANARY: &str = "hunter2-canary";

fn in_pieces(body: &str) -> impl futures_core::Stream<Item = io::Result<String>> + Send + 'static + use<> {
    let pieces: Vec<_> =
        body.as_bytes().chunks(7).map(|piece| Ok(String::from_utf8_lossy(piece).into())).collect();
    stream::iter(pieces)
}

fn list_of(items: &str) -> String {
    format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"9"}},"items":[{items}]}}"#)
}

async fn listed(items: &str) -> Vec<String> {
    let body = list_of(items);
    let fake = Fake::answering(move |_| streamed(200, JSON, in_pieces(&body)));
    let limits = Limits::default().object_bytes(500);
    let (parts, error) = drain(source(&fake).limits(limits).list(ListOptions::default()).await).await;
    assert!(error.is_none(), "{error:?}");
    parts.into_iter().filter(|part| !part.starts_with("Meta")).collect()
}

const GOOD: &str = r#"{"metadata":{"name":"good","resourceVersion":"1"},"data":"hunter2-canary"}"#;

#[tokio::test]
async fn a_bad_item_hides_no_good_one() {
    let large =
        format!(r#"{{"metadata":{{"name":"l","resourceVersion":"2"}},"data":"{}"}}"#, "x".repeat(600));
    let deep = format!(r#"{{"metadata":{{"name":"d"}},"data":{}{}}}"#, "[".repeat(150), "]".repeat(150));
    for (bad, reason) in [
        (r#"{"metadata":{"name":"x"},"spec":undecodable}"#, "not a JSON object"),
        (r#"{"metadata":{"labels":{"a":"hunter2-canary"}}}"#, "it has no name"),
        (r#"{"metadata":{"name":"a/hunter2-canary"}}"#, "slash"),
        (r#"{"metadata":"hunter2-canary"}"#, "no metadata"),
        (r#""hunter2-canary""#, "not a JSON object"),
        ("null", "not a JSON object"),
        (&large, "larger than 500 bytes"),
        (&deep, "nested deeper"),
    ] {
        let parts = listed(&format!("{GOOD},{bad},{GOOD}")).await;
        assert_eq!(parts.len(), 3, "{parts:?}");
        assert_eq!((parts[0].as_str(), parts[2].as_str()), ("Item(Pod good@1)", "Item(Pod good@1)"));
        assert!(parts[1].starts_with("Malformed") && parts[1].contains(reason), "{}", parts[1]);
        assert!(!parts[1].contains(CANARY), "{}", parts[1]);
    }
}

#[tokio::test]
async fn a_value_instead_of_a_map_does_not_hide_the_object() {
    let parts =
        listed(r#"{"metadata":{"name":"a","labels":"hunter2-canary","annotations":[1]},"spec":7}"#).await;
    assert_eq!(parts, ["Item(Pod a@)"]);
}

#[tokio::test]
async fn duplicate_items_are_both_delivered() {
    assert_eq!(listed(&format!("{GOOD},{GOOD}")).await, ["Item(Pod good@1)"; 2]);
}

#[tokio::test]
async fn a_list_cut_off_anywhere_is_an_error() {
    let body = list_of(&format!("{GOOD},{GOOD}"));
    for length in 0..body.len() {
        let cut = body[..length].to_owned();
        let fake = Fake::answering(move |_| answer(200, JSON, &cut));
        let (_, error) = drain(source(&fake).list(ListOptions::default()).await).await;
        let Some(ListWatchError::Malformed { message, .. }) = error else { panic!("{length}: {error:?}") };
        assert!(message.contains("ends in the middle"), "{message}");
    }
}

#[tokio::test]
async fn a_bad_event_hides_no_good_one() {
    let good = format!("{{\"type\":\"ADDED\",\"object\":{GOOD}}}\n");
    for (bad, reason) in [
        (format!(r#"{{"type":"hunter2-canary","object":{GOOD}}}"#), "unknown type"),
        (format!(r#"{{"type":"ADDED","object":{}}}"#, "[".repeat(1000)), "not an event"),
        (r#"{"type":"ADDED","object":{"metadata":{}}}"#.into(), "no name"),
        (format!(r#"{{"type":"ADDED","object":"{}"}}"#, "x".repeat(2000)), "larger than 500 bytes"),
        ("<html>hunter2-canary</html>".into(), "not an event"),
        ("\u{0}hunter2-canary".into(), "not an event"),
    ] {
        let body = format!("{good}{bad}\n{good}");
        let fake = Fake::answering(move |_| streamed(200, JSON, in_pieces(&body)));
        let limits = Limits::default().object_bytes(500);
        let (events, error) = drain(source(&fake).limits(limits).watch(WatchOptions::default()).await).await;
        assert!(error.is_none() && events.len() == 3, "{events:?} {error:?}");
        assert_eq!((events[0].as_str(), events[2].as_str()), ("Added(Pod good@1)", "Added(Pod good@1)"));
        assert!(events[1].starts_with("Malformed") && events[1].contains(reason), "{}", events[1]);
        assert!(!events[1].contains(CANARY), "{}", events[1]);
    }
}

#[tokio::test]
async fn a_table_or_a_status_is_not_a_list() {
    for body in
        [r#"{"kind":"Table","rows":["hunter2-canary"]}"#, r#"{"kind":"Status","message":"hunter2-canary"}"#]
    {
        let fake = Fake::answering(move |_| answer(200, JSON, body));
        let (_, error) = drain(source(&fake).list(ListOptions::default()).await).await;
        assert!(matches!(&error, Some(ListWatchError::Malformed { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn a_failed_login_does_not_show_the_output_of_the_login_command() {
    let service = tower::service_fn(async |_: http::Request<kube::client::Body>| {
        let error = kube::Error::Auth(kube::client::AuthError::AuthExec(CANARY.into()));
        Err::<http::Response<kube::client::Body>, _>(tower::BoxError::from(error))
    });
    let source = KubeSource::new(kube::Client::new(service, "default"), pods(), None);
    let error = source.list(ListOptions::default()).await.err().unwrap();
    assert!(error.to_string().contains("credentials"), "{error}");
    assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
}

#[tokio::test]
async fn a_secret_is_never_repeated() {
    let log = CapturedLog::capture(tracing::Level::TRACE);
    tracing::info!("the log is being kept");

    let mut shown = Vec::new();
    for code in [200, 204, 302, 400, 401, 403, 500] {
        for content_type in [JSON, "text/html; session=hunter2-canary"] {
            for body in [
                CANARY.to_owned(),
                format!("{{\"{CANARY}\":\"{CANARY}\",\"items\":[{{\"{CANARY}\":}}]}}"),
                format!(r#"{{"items":[{{"metadata":{{"name":7,"x":"{CANARY}"}}}},"{CANARY}""#),
                format!("{{\"type\":\"{CANARY}\",\"object\":\"{CANARY}\"}}\n{CANARY}\n"),
                format!("{{\"type\":\"ERROR\",\"object\":{{\"message\":\"{CANARY}\"}}}}\n"),
                format!(r#"{{"items":["{CANARY}"],"{CANARY}":{CANARY}}}"#),
            ] {
                let fake = Fake::answering(move |_| {
                    let mut response = answer(code, content_type, &body);
                    for name in ["retry-after", "set-cookie", "www-authenticate", "warning", "location"] {
                        response.headers_mut().insert(name, http::HeaderValue::from_static(CANARY));
                    }
                    response
                });
                let source = source(&fake);
                let (parts, list_error) = drain(source.list(ListOptions::default()).await).await;
                let (events, watch_error) = drain(source.watch(WatchOptions::default()).await).await;
                shown.extend(parts.into_iter().chain(events));
                for error in [list_error, watch_error].into_iter().flatten() {
                    shown.extend([error.to_string(), format!("{error:?}"), format!("{error:#?}")]);
                }
                shown.push(format!("{source:?}"));
            }
        }
    }
    let logged = log.text();
    assert!(logged.contains("the log is being kept"));
    shown.push(logged);
    assert!(shown.len() > 100);
    for text in shown {
        assert!(!text.contains(CANARY), "{text}");
    }
}
