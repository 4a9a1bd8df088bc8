//! One request and its answer.

use super::{Initial, Shared, State, expired, streams};
use crate::{
    script::{self, Refusal, Request, Streaming},
    wire,
    world::{Pod, Selection},
};
use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use std::{collections::BTreeMap, fmt, sync::Arc};

type Body = Either<Full<Bytes>, streams::Body>;

/// What a client asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    path: String,
    query: BTreeMap<String, String>,
}

/// The connection is to end without an answer.
#[derive(Debug, thiserror::Error)]
#[error("hung up, as the script says")]
pub(super) struct HungUp;

pub(super) async fn answer(
    shared: Arc<Shared>,
    request: http::Request<Incoming>,
) -> Result<Response<Body>, HungUp> {
    let asked = Asked::new(request.uri());
    shared.lock().asked.push(asked.clone());
    shared.changed();
    // The sender lives as long as the server.
    let _ = shared.held.subscribe().wait_for(|held| !held).await;
    let response = respond(&shared, &asked);
    shared.changed();
    response
}

fn respond(shared: &Shared, asked: &Asked) -> Result<Response<Body>, HungUp> {
    let mut state = shared.lock();
    state.answered += 1;
    let class = asked.class();
    match (state.fault(class), class) {
        (Some(script::Answer::Status(refusal)), _) => Ok(refuse(&refusal)),
        (Some(script::Answer::Nothing), _) => Ok(ok(Either::Left(Full::default()))),
        (Some(script::Answer::HangUp), _) => Err(HungUp),
        (None, Request::List | Request::NextPage) => Ok(list(&state, shared, asked)),
        (None, Request::Stream) => Ok(stream(&mut state, shared, asked)),
        (None, Request::Watch) => Ok(watch(&mut state, shared, asked)),
    }
}

fn list(state: &State, shared: &Shared, asked: &Asked) -> Response<Body> {
    let version = asked.version().unwrap_or(0);
    if version > state.world.version() {
        return refuse(&too_large());
    }
    let pods = state.world.list(&asked.selection());
    // A token is where to go on. Pages are of what there is now: nothing changes while a script lists.
    let start: usize = asked.get("continue").and_then(|token| token.parse().ok()).unwrap_or(0);
    let limit: Option<usize> = asked.get("limit").and_then(|limit| limit.parse().ok());
    let page = limit.map(|limit| shared.setup.page.unwrap_or(limit).min(limit));
    let end = page.map_or(pods.len(), |page| (start + page).min(pods.len()));
    let next = (end < pods.len()).then(|| (end.to_string(), pods.len() - end));
    let items = pods.get(start..end).unwrap_or_default();
    ok(Either::Left(Full::new(wire::list(items, state.world.version(), next))))
}

fn stream(state: &mut State, shared: &Shared, asked: &Asked) -> Response<Body> {
    if shared.setup.streaming == Streaming::No {
        return refuse(&Refusal { code: 422, reason: "Invalid".into(), cause: None, retry_after: None });
    }
    if asked.version().unwrap_or(0) > state.world.version() {
        return refuse(&too_large());
    }
    let mut events: Vec<Bytes> = match state.initial.pop_front() {
        Some(Initial { sent, finished: true }) => sent.iter().map(wire::sent).collect(),
        Some(Initial { sent, finished: false }) => {
            let body = sent.iter().map(wire::sent).collect::<Vec<_>>().concat();
            return ok(Either::Left(Full::new(body.into())));
        }
        None => added(&state.world.list(&asked.selection())),
    };
    let live = shared.setup.streaming == Streaming::Yes;
    if live {
        events.push(wire::bookmark(state.world.version(), true));
    }
    ok(Either::Right(state.streams.open(asked.selection(), live, events)))
}

fn added(pods: &[Pod]) -> Vec<Bytes> {
    pods.iter().map(|pod| wire::event("ADDED", pod)).collect()
}

fn watch(state: &mut State, shared: &Shared, asked: &Asked) -> Response<Body> {
    let selection = asked.selection();
    let replay: Option<Vec<Bytes>> = match asked.version() {
        None | Some(0) => Some(added(&state.world.list(&selection))),
        Some(version) => state.world.since(version).map(|changes| {
            let events = changes.filter_map(|change| change.event(&selection));
            events.map(|(kind, pod)| wire::event(kind, &pod)).collect()
        }),
    };
    match replay {
        Some(events) => ok(Either::Right(state.streams.open(selection, true, events))),
        None if shared.setup.expired.is_http() => refuse(&expired()),
        None => ok(Either::Left(Full::new(wire::error(&expired())))),
    }
}

/// The version lies in the future of the server.
fn too_large() -> Refusal {
    let cause = Some("ResourceVersionTooLarge".into());
    Refusal { code: 504, reason: "Timeout".into(), cause, retry_after: Some(1) }
}

fn ok(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn refuse(refusal: &Refusal) -> Response<Body> {
    let mut response = ok(Either::Left(Full::new(wire::status(refusal).to_string().into())));
    *response.status_mut() = StatusCode::from_u16(refusal.code).unwrap_or(StatusCode::IM_A_TEAPOT);
    if let Some(seconds) = refusal.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

impl Asked {
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

    fn class(&self) -> Request {
        match (self.has("watch"), self.has("sendInitialEvents"), self.get("continue")) {
            (true, true, _) => Request::Stream,
            (true, false, _) => Request::Watch,
            (false, _, Some(_)) => Request::NextPage,
            (false, _, None) => Request::List,
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

/// As a trace shows it: all parameters, but of the timeout, which is random, only whether it is one that a
/// client may ask for.
impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class() {
            Request::List | Request::NextPage => "list",
            Request::Stream => "stream",
            Request::Watch => "watch",
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
