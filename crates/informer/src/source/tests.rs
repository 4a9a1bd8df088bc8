//! The source over a fake service, and over real sockets.

mod bad_input;
mod encodings;
mod fake;
mod interrupted;
mod loopback;

use super::*;
use fake::{Fake, JSON, answer};
use futures_util::{StreamExt, TryStreamExt};
use http::header::{ACCEPT, ACCEPT_ENCODING};
use kube_informer_wire::{ListMeta, ListPart, VersionMatch, WatchEvent};
use std::time::Duration;

fn pods() -> Origin {
    Origin::new(Kind::namespaced("", "v1", "Pod", "pods"))
}

fn source(fake: &Fake) -> KubeSource {
    KubeSource::new(fake.client(), pods(), None)
}

/// The parts or events of a stream as text, and the error that ended it.
async fn drain<T: fmt::Debug>(
    stream: Result<impl futures_core::Stream<Item = Result<T, ListWatchError>> + Unpin, ListWatchError>,
) -> (Vec<String>, Option<ListWatchError>) {
    let mut lines = Vec::new();
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (lines, Some(error)),
    };
    while let Some(next) = stream.next().await {
        match next {
            Ok(part) => lines.push(format!("{part:?}")),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last thing");
                return (lines, Some(error));
            }
        }
    }
    (lines, None)
}

#[tokio::test]
async fn a_list_is_one_request_and_its_parts() {
    let fake = Fake::answering(|_| {
        answer(
            200,
            JSON,
            r#"{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}"#,
        )
    });
    let options = ListOptions::new().resource_version("0".to_owned()).limit(500);
    let list = source(&fake).list(options).await.unwrap();
    let parts: Vec<ListPart> = list.try_collect().await.unwrap();
    let [ListPart::Meta(ListMeta { resource_version: Some(version), .. }), ListPart::Item(item)] = &parts[..]
    else {
        panic!("{parts:?}")
    };
    assert_eq!((version.number(), item.name()), (Some(9), "a"));
    let request = fake.only_request();
    assert_eq!(request.uri.to_string(), "/api/v1/pods?limit=500&resourceVersion=0");
    assert_eq!(request.headers[ACCEPT], "application/vnd.kubernetes.protobuf,application/json");
    assert!(!request.headers.contains_key(ACCEPT_ENCODING));
}

#[tokio::test]
async fn a_watch_requests_no_compression() {
    let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"4"}}}"#;
    let fake = Fake::answering(move |_| answer(200, JSON, event));
    let options = WatchOptions::new().resource_version("3".to_owned()).allow_bookmarks(true);
    let watch = source(&fake).watch(options).await.unwrap();
    let events: Vec<WatchEvent> = watch.try_collect().await.unwrap();
    assert_eq!(format!("{events:?}"), "[Added(Pod a@4)]");
    let request = fake.only_request();
    assert_eq!(request.uri.to_string(), "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=3&watch=true");
    assert_eq!(request.headers[ACCEPT_ENCODING], "identity");
}

#[tokio::test]
async fn selectors_and_namespace_reach_the_request() {
    let fake = Fake::answering(|_| answer(200, JSON, r#"{"items":[]}"#));
    let source = KubeSource::new(fake.client(), pods(), Some("shop"))
        .labels(&"app=cart".parse().unwrap())
        .fields(&"spec.nodeName=n1".parse().unwrap());
    drop(source.list(ListOptions::new().version_match(VersionMatch::Exact)).await.unwrap());
    drop(source.watch(WatchOptions::new().resource_version("7".to_owned())).await.unwrap());
    let urls: Vec<String> = fake.requests().iter().map(|request| request.uri.to_string()).collect();
    let common = "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn1&labelSelector=app%3Dcart";
    assert_eq!(urls[0], format!("{common}&resourceVersionMatch=Exact"));
    assert_eq!(urls[1], format!("{common}&resourceVersion=7&watch=true"));
}

/// An empty namespace must not become all namespaces.
#[tokio::test]
async fn a_namespace_that_cannot_exist_is_an_error_and_never_all_namespaces() {
    let fake = Fake::answering(|_| answer(200, JSON, r#"{"items":[]}"#));
    for (namespace, advice) in [("", "Scope::all()"), ("..", "not the name of a namespace"), ("a/b", "a/b")] {
        let source = KubeSource::new(fake.client(), pods(), Some(namespace));
        let list = source.list(ListOptions::default()).await.err().unwrap();
        let watch = source.watch(WatchOptions::default()).await.err().unwrap();
        for error in [list, watch] {
            assert!(error.to_string().contains(advice), "{namespace:?}: {error}");
        }
    }
    assert_eq!(fake.requests().len(), 0, "nothing is sent");
    let nodes = Origin::new(Kind::cluster("", "v1", "Node", "nodes"));
    drop(KubeSource::new(fake.client(), nodes, Some("")).list(ListOptions::default()).await.unwrap());
}

#[tokio::test]
async fn metadata_only_requests_partial_object_metadata() {
    let fake = Fake::answering(|_| answer(200, JSON, r#"{"items":[]}"#));
    let source = source(&fake).metadata_only();
    drop(source.list(ListOptions::default()).await.unwrap());
    drop(source.watch(WatchOptions::default()).await.unwrap());
    let accepts: Vec<_> = fake.requests().iter().map(|request| request.headers[ACCEPT].clone()).collect();
    assert_eq!(
        accepts,
        [
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
        ]
    );
}

#[tokio::test]
async fn an_error_response_has_the_status_of_the_server() {
    let fake = Fake::answering(|_| {
        let status = r#"{"kind":"Status","reason":"TooManyRequests","message":"slow down","code":429,
            "details":{"retryAfterSeconds":1}}"#;
        let mut response = answer(429, JSON, status);
        response.headers_mut().insert("retry-after", http::HeaderValue::from_static("7"));
        response
    });
    let error = source(&fake).watch(WatchOptions::default()).await.err().unwrap();
    assert_eq!(error.to_string(), "/api/v1/pods?watch=true: 429 TooManyRequests: slow down");
    assert!(error.is_too_many_requests());
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn a_retry_after_beyond_u64_saturates() {
    let header = |text: &'static str| async move {
        let fake = Fake::answering(move |_| {
            let mut response = answer(503, JSON, "");
            response.headers_mut().insert("retry-after", http::HeaderValue::from_static(text));
            response
        });
        source(&fake).list(ListOptions::default()).await.err().unwrap().retry_after()
    };
    let longest = Some(Duration::from_secs(u64::MAX));
    assert_eq!(header("18446744073709551615").await, longest);
    assert_eq!(header("99999999999999999999999999").await, longest);
    assert_eq!(header(" 0 ").await, Some(Duration::ZERO));
    for invalid in ["", "-1", "+1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT"] {
        assert_eq!(header(invalid).await, None, "{invalid}");
    }
}

#[tokio::test]
async fn an_error_response_without_a_status_is_described_by_its_code() {
    let endless = "x".repeat(1 << 20);
    for (code, content_type, body, reason) in [
        (401, "text/plain", "Unauthorized", "Unauthorized"),
        (403, "text/html", "<html>", "Forbidden"),
        (404, "text/plain", "404 page not found", "NotFound"),
        (410, JSON, "{}", "Expired"),
        (500, JSON, r#"{"kind":"Status","code":0}"#, "InternalError"),
        (503, JSON, endless.as_str(), "ServiceUnavailable"),
        (502, "text/html", "", ""),
        // The code of the response takes precedence, not the one in the body.
        (503, JSON, r#"{"kind":"Status","code":410,"reason":"Odd"}"#, "Odd"),
    ] {
        let body = body.to_owned();
        let fake = Fake::answering(move |_| answer(code, content_type, &body));
        let error = source(&fake).list(ListOptions::default()).await.err().unwrap();
        assert_eq!((error.code(), error.status().unwrap().reason.as_str()), (Some(code), reason), "{error}");
    }
}

#[tokio::test]
async fn a_response_that_is_not_json_is_an_error_of_its_own() {
    for (code, content_type) in
        [(200, "text/html; charset=utf-8"), (302, "text/html"), (204, JSON), (206, JSON)]
    {
        let fake = Fake::answering(move |_| answer(code, content_type, "<html>login</html>"));
        for error in [
            source(&fake).list(ListOptions::default()).await.err().unwrap(),
            source(&fake).watch(WatchOptions::default()).await.err().unwrap(),
        ] {
            assert!(matches!(error, ListWatchError::NotJson { .. }), "{error:?}");
        }
    }
    let json =
        Fake::answering(|_| answer(200, "application/json;as=PartialObjectMetadataList", r#"{"items":[]}"#));
    assert!(source(&json).list(ListOptions::default()).await.is_ok());
}

#[tokio::test]
async fn a_compressed_response_is_an_error() {
    let fake = Fake::answering(|_| {
        let mut response = answer(200, JSON, "gzipped");
        response.headers_mut().insert("content-encoding", http::HeaderValue::from_static("gzip"));
        response
    });
    let error = source(&fake).list(ListOptions::default()).await.err().unwrap();
    assert!(error.to_string().contains("compressed"), "{error}");
}

#[test]
fn a_source_may_be_shared_between_threads() {
    fn shared<T: ListWatch + Clone>() {}
    shared::<KubeSource>();
}
