//! An API server that is a function.

use bytes::Bytes;
use futures_core::Stream;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, Response, Uri, header::CONTENT_TYPE};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use std::{
    convert::Infallible,
    future::Future,
    io,
    sync::{Arc, Mutex},
};
use tower::service_fn;

pub(super) const JSON: &str = "application/json";

pub(super) type FakeBody = UnsyncBoxBody<Bytes, io::Error>;

/// A request that was sent.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
}

/// A service that remembers its requests.
pub(super) struct Fake {
    client: kube::Client,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    pub(super) fn answering(respond: impl Fn(&Asked) -> Response<FakeBody> + Send + Sync + 'static) -> Self {
        Self::answering_later(move |asked| std::future::ready(respond(asked)))
    }

    pub(super) fn answering_later<F>(respond: impl Fn(&Asked) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response<FakeBody>> + Send + 'static,
    {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let log = Arc::clone(&asked);
        let service = service_fn(move |request: Request<Body>| {
            let (head, _) = request.into_parts();
            let asked = Asked { uri: head.uri, headers: head.headers };
            let response = respond(&asked);
            log.lock().unwrap().push(asked);
            async move { Ok::<_, Infallible>(response.await) }
        });
        Self { client: kube::Client::new(service, "default"), asked }
    }

    pub(super) fn client(&self) -> kube::Client {
        self.client.clone()
    }

    pub(super) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(super) fn only_request(&self) -> Asked {
        let requests = self.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        requests[0].clone()
    }
}

/// A response with a complete body.
pub(super) fn answer(code: u16, content_type: &str, body: &str) -> Response<FakeBody> {
    streamed(code, content_type, stream::iter([Ok(body.to_owned())]))
}

/// A response in protobuf.
pub(super) fn protobuf(code: u16, body: Bytes) -> Response<FakeBody> {
    let frames = stream::iter([Ok(Frame::data(body))]);
    Response::builder()
        .status(code)
        .header(CONTENT_TYPE, "application/vnd.kubernetes.protobuf;stream=watch")
        .body(StreamBody::new(frames).boxed_unsync())
        .unwrap()
}

/// A response whose body comes piece by piece.
pub(super) fn streamed(
    code: u16,
    content_type: &str,
    pieces: impl Stream<Item = io::Result<String>> + Send + 'static,
) -> Response<FakeBody> {
    let frames = pieces.map(|piece| piece.map(|text| Frame::data(Bytes::from(text))));
    Response::builder()
        .status(code)
        .header(CONTENT_TYPE, content_type)
        .body(StreamBody::new(frames).boxed_unsync())
        .unwrap()
}
