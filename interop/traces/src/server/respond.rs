//! Responses to requests.

use super::{Initial, Shared, State, expired, streams};
use crate::{
    encode,
    script::{ErrorStatus, FaultResponse, RequestClass, Streaming},
    store::{Pod, Selection},
};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use std::{collections::BTreeMap, fmt, sync::Arc};

type Body = Either<Full<Bytes>, streams::Body>;

/// A request, as a trace shows it.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    path: String,
    query: BTreeMap<String, String>,
}

/// Closes the connection without a response.
#[derive(Debug, thiserror::Error)]
#[error("closed by the script")]
pub(super) struct ConnectionClosed;

pub(super) async fn handle(
    shared: Arc<Shared>,
    request: http::Request<Incoming>,
) -> Result<Response<Body>, ConnectionClosed> {
    let request = ReceivedRequest::new(request.uri());
    shared.lock().requests.push(request.clone());
    shared.changed();
    // The sender lives as long as the server.
    let _ = shared.held.subscribe().wait_for(|held| !held).await;
    let response = respond(&shared, &request);
    shared.changed();
    response
}

fn respond(shared: &Shared, request: &ReceivedRequest) -> Result<Response<Body>, ConnectionClosed> {
    let mut state = shared.lock();
    state.responses += 1;
    let class = request.class();
    match (state.fault(class), class) {
        (Some(FaultResponse::Status(error)), _) => Ok(error_response(&error)),
        (Some(FaultResponse::Nothing), _) => Ok(ok(Either::Left(Full::default()))),
        (Some(FaultResponse::HangUp), _) => Err(ConnectionClosed),
        (None, RequestClass::List | RequestClass::NextPage) => Ok(list(&state, shared, request)),
        (None, RequestClass::Stream) => Ok(stream(&mut state, shared, request)),
        (None, RequestClass::Watch) => Ok(watch(&mut state, shared, request)),
    }
}

fn list(state: &State, shared: &Shared, request: &ReceivedRequest) -> Response<Body> {
    let version = request.version().unwrap_or(0);
    if version > state.store.version() {
        return error_response(&too_large());
    }
    let pods = state.store.list(&request.selection());
    // A continue token is the index of the next item. Scripts change no objects while a client lists pages.
    let start: usize = request.get("continue").and_then(|token| token.parse().ok()).unwrap_or(0);
    let limit: Option<usize> = request.get("limit").and_then(|limit| limit.parse().ok());
    let page = limit.map(|limit| shared.setup.page.unwrap_or(limit).min(limit));
    let end = page.map_or(pods.len(), |page| (start + page).min(pods.len()));
    let next = (end < pods.len()).then(|| (end.to_string(), pods.len() - end));
    let items = pods.get(start..end).unwrap_or_default();
    ok(Either::Left(Full::new(encode::list(items, state.store.version(), next))))
}

fn stream(state: &mut State, shared: &Shared, request: &ReceivedRequest) -> Response<Body> {
    if shared.setup.streaming == Streaming::No {
        return error_response(&ErrorStatus {
            code: 422,
            reason: "Invalid".into(),
            cause: None,
            retry_after: None,
        });
    }
    if request.version().unwrap_or(0) > state.store.version() {
        return error_response(&too_large());
    }
    let mut events: Vec<Bytes> = match state.initial.pop_front() {
        Some(Initial { events, finished: true }) => events.iter().map(encode::raw_event).collect(),
        Some(Initial { events, finished: false }) => {
            let body = events.iter().map(encode::raw_event).collect::<Vec<_>>().concat();
            return ok(Either::Left(Full::new(body.into())));
        }
        None => added(&state.store.list(&request.selection())),
    };
    let live = shared.setup.streaming == Streaming::Yes;
    if live {
        events.push(encode::bookmark(state.store.version(), true));
    }
    ok(Either::Right(state.streams.open(request.selection(), live, events)))
}

fn added(pods: &[Pod]) -> Vec<Bytes> {
    pods.iter().map(|pod| encode::event("ADDED", pod)).collect()
}

fn watch(state: &mut State, shared: &Shared, request: &ReceivedRequest) -> Response<Body> {
    let selection = request.selection();
    let replay: Option<Vec<Bytes>> = match request.version() {
        None | Some(0) => Some(added(&state.store.list(&selection))),
        Some(version) => state.store.since(version).map(|changes| {
            let events = changes.filter_map(|change| change.event(&selection));
            events.map(|(kind, pod)| encode::event(kind, &pod)).collect()
        }),
    };
    match replay {
        Some(events) => ok(Either::Right(state.streams.open(selection, true, events))),
        None if shared.setup.expired.is_http() => error_response(&expired()),
        None => ok(Either::Left(Full::new(encode::error(&expired())))),
    }
}

/// The error for a resource version newer than the server's.
fn too_large() -> ErrorStatus {
    let cause = Some("ResourceVersionTooLarge".into());
    ErrorStatus { code: 504, reason: "Timeout".into(), cause, retry_after: Some(1) }
}

fn ok(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn error_response(error: &ErrorStatus) -> Response<Body> {
    let mut response = ok(Either::Left(Full::new(encode::status(error).to_string().into())));
    *response.status_mut() = StatusCode::from_u16(error.code).unwrap_or(StatusCode::IM_A_TEAPOT);
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

impl ReceivedRequest {
    fn new(uri: &http::Uri) -> Self {
        let decoded =
            |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let query = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
        Self { path: uri.path().to_owned(), query }
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(String::as_str)
    }

    fn has(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1"))
    }

    fn version(&self) -> Option<u64> {
        self.get("resourceVersion").and_then(|version| version.parse().ok())
    }

    fn class(&self) -> RequestClass {
        match (self.has("watch"), self.has("sendInitialEvents"), self.get("continue")) {
            (true, true, _) => RequestClass::Stream,
            (true, false, _) => RequestClass::Watch,
            (false, _, Some(_)) => RequestClass::NextPage,
            (false, _, None) => RequestClass::List,
        }
    }

    fn selection(&self) -> Selection {
        let mut parts = self.path.trim_start_matches("/api/v1/").split('/');
        let namespace = (parts.next() == Some("namespaces")).then(|| parts.next()).flatten();
        let label = self.get("labelSelector").and_then(|selector| selector.split_once('='));
        Selection {
            namespace: namespace.map(str::to_owned),
            label: label.map(|(key, value)| (key.to_owned(), value.to_owned())),
        }
    }
}

/// All parameters, except that a valid timeout is shown without its value, which is random.
impl fmt::Display for ReceivedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class() {
            RequestClass::List | RequestClass::NextPage => "list",
            RequestClass::Stream => "stream",
            RequestClass::Watch => "watch",
        };
        write!(f, "{class} {}", self.path.trim_start_matches("/api/v1/"))?;
        for (name, value) in &self.query {
            match (name.as_str(), value.parse::<u64>()) {
                ("watch" | "sendInitialEvents", _) => {}
                ("timeoutSeconds", Ok(300..=600)) => f.write_str(" timeout")?,
                _ => write!(f, " {name}={value}")?,
            }
        }
        Ok(())
    }
}
