//! A server that generates the objects of a list while it sends them, so that no server keeps them in memory.

use crate::{
    args::GeneratorOptions,
    protocol::{commands, respond},
};
use anyhow::{Context, bail};
use bytes::Bytes;
use fastrand::Rng;
use futures_util::{StreamExt, stream};
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use kube_informer_types::protobuf;
use kube_informer_workload::{Pods, StubbornPods, config_map, event, secret, stored, widget};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use tokio::net::TcpListener;

/// The version that the collection has.
pub(crate) const VERSION: u64 = 9_000_000_000;
/// Nodes on which the pods run.
const NODES: usize = 1000;

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A collection that never changes.
struct Generator {
    path: String,
    options: GeneratorOptions,
}

/// Serves until standard input ends. Any command returns the URL.
pub(crate) async fn run(options: GeneratorOptions) -> anyhow::Result<()> {
    let path = match options.kind.as_str() {
        "pods" | "configmaps" | "secrets" | "events" => format!("/api/v1/{}", options.kind),
        "widgets" => "/apis/example.com/v1/widgets".to_owned(),
        other => bail!("unknown kind {other:?}"),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.context("no free port on 127.0.0.1")?;
    let url = format!("http://{}", listener.local_addr()?);
    let generator = Arc::new(Generator { path, options });
    let mut commands = commands();
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(_) => respond(Ok(json!({"url": url})))?,
                None => return Ok(()),
            },
            accepted = listener.accept() => {
                let generator = Arc::clone(&generator);
                let service = service_fn(move |request: Request<Incoming>| {
                    let response = generator.respond(&request);
                    async move { Ok::<_, Infallible>(response) }
                });
                let stream = TokioIo::new(accepted?.0);
                // A client that goes away is no error.
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
            }
        }
    }
}

impl Generator {
    fn respond(&self, request: &Request<Incoming>) -> Response<UnsyncBoxBody<Bytes, Infallible>> {
        let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let protobuf = accept.starts_with(PROTOBUF);
        let query = request.uri().query().unwrap_or_default();
        let (is_served, is_watch) = (request.uri().path() == self.path, query.contains("watch=true"));
        let (status, body) = if is_served && is_watch {
            let initial = query.contains("sendInitialEvents=true").then(|| self.initial_events(protobuf));
            let frames = stream::iter(initial.into_iter().flatten()).chain(stream::pending());
            (StatusCode::OK, StreamBody::new(frames.map(|bytes| Ok(Frame::data(bytes)))).boxed_unsync())
        } else if is_served && query.contains("limit=1") {
            (StatusCode::OK, whole(&version_of(&self.options.kind), protobuf))
        } else {
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
                "reason": "NotFound", "message": "the generator serves watches of one collection, and its version"});
            (StatusCode::NOT_FOUND, whole(&status, protobuf))
        };
        let media_type = match (protobuf, is_watch && status == StatusCode::OK) {
            (false, _) => HeaderValue::from_static(JSON),
            (true, true) => HeaderValue::from_static("application/vnd.kubernetes.protobuf;stream=watch"),
            (true, false) => HeaderValue::from_static(PROTOBUF),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, media_type);
        response
    }

    /// The frames of all objects and of the bookmark behind them. Each is made when it is sent.
    fn initial_events(&self, protobuf: bool) -> impl Iterator<Item = Bytes> + use<> {
        let objects = self.objects().take(self.options.objects).enumerate();
        let added = objects.map(move |(number, object)| frame("ADDED", &stored(number, object), protobuf));
        let bookmark = bookmark(&self.options.kind);
        added.chain(std::iter::once_with(move || frame("BOOKMARK", &bookmark, protobuf)))
    }

    fn objects(&self) -> Box<dyn Iterator<Item = Value> + Send> {
        let GeneratorOptions { kind, stubborn, seed, .. } = &self.options;
        let mut rng = Rng::with_seed(*seed);
        match kind.as_str() {
            "pods" if *stubborn => Box::new(StubbornPods::new(*seed, NODES)),
            "pods" => Box::new(Pods::new(*seed, NODES)),
            "configmaps" => Box::new((0..).map(move |number| config_map(&mut rng, number))),
            "secrets" => Box::new((0..).map(move |number| secret(&mut rng, number))),
            "events" => Box::new((0..).map(move |number| event(&mut rng, number))),
            _ => Box::new((0..).map(move |number| widget(&mut rng, number))),
        }
    }
}

fn api_version_and_kind(resource: &str) -> (&'static str, &'static str) {
    match resource {
        "pods" => ("v1", "Pod"),
        "configmaps" => ("v1", "ConfigMap"),
        "secrets" => ("v1", "Secret"),
        "events" => ("v1", "Event"),
        _ => ("example.com/v1", "Widget"),
    }
}

/// A list that shows the version, and no object.
fn version_of(resource: &str) -> Value {
    let (api_version, kind) = api_version_and_kind(resource);
    json!({"apiVersion": api_version, "kind": format!("{kind}List"),
        "metadata": {"resourceVersion": VERSION.to_string()}, "items": []})
}

fn whole(body: &Value, protobuf: bool) -> UnsyncBoxBody<Bytes, Infallible> {
    let json = body.to_string();
    let body = if protobuf { protobuf::encode(json.as_bytes()).unwrap_or_default() } else { json.into() };
    Full::new(body).boxed_unsync()
}

/// The bookmark that ends the initial events.
fn bookmark(resource: &str) -> Value {
    let (api_version, kind) = api_version_and_kind(resource);
    json!({"apiVersion": api_version, "kind": kind, "metadata": {
        "resourceVersion": VERSION.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}}})
}

/// One event of a watch.
fn frame(event_type: &str, object: &Value, protobuf: bool) -> Bytes {
    let object = object.to_string();
    if protobuf {
        return protobuf::encode_event(event_type, object.as_bytes())
            .expect("objects of the workload are valid");
    }
    format!("{{\"type\":\"{event_type}\",\"object\":{object}}}\n").into()
}
