//! Replays a recorded list and recorded watch events, so that no work of a server limits how fast events arrive.

use super::Driver;
use anyhow::{Context, bail};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Either, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

const PODS: &str = "/api/v1/pods";
pub(super) const JSON: &str = "application/json";
pub(super) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// Bytes that are sent at once.
const CHUNK: usize = 64 << 10;

/// A server that replays one recording to any number of clients.
pub(super) struct Replay {
    url: String,
    shared: Arc<Shared>,
}

struct Shared {
    json: Recording,
    protobuf: Recording,
    /// Whether watches send their events. A client that connects afterwards gets them at once.
    released: Mutex<watch::Sender<bool>>,
}

/// The bytes of one encoding.
#[derive(Default)]
struct Recording {
    list: Bytes,
    /// An empty list with the version of the last event, for clients that ask for the version of the server.
    empty_list: Bytes,
    events: Vec<Bytes>,
}

impl Driver {
    /// Records the pods, and then changes of pods as watch events, in both encodings.
    pub(super) async fn record(&mut self, count: usize) -> anyhow::Result<Value> {
        let mut recordings = Vec::new();
        for media_type in [JSON, PROTOBUF] {
            let list = self.fetch(PODS, media_type).await?.collect().await?.to_bytes();
            recordings.push(Recording { list, ..Recording::default() });
        }
        let listed = self.version_of_pods().await?;
        let last = self.change_pods(count).await?;
        for (recording, media_type) in recordings.iter_mut().zip([JSON, PROTOBUF]) {
            recording.events = self.record_events(media_type, listed, count).await?;
            // No pod has this name.
            let path = format!("{PODS}?fieldSelector=metadata.name%3D-");
            recording.empty_list = self.fetch(&path, media_type).await?.collect().await?.to_bytes();
        }
        let [json, protobuf] = recordings.try_into().ok().context("two recordings")?;
        let released = Mutex::new(watch::channel(false).0);
        let replay = Replay::start(Shared { json, protobuf, released }).await?;
        let answer = json!({"url": replay.url, "changed": count, "version": last});
        self.replay = Some(replay);
        Ok(answer)
    }

    /// Lets the watches of the replay send their events, or makes the next ones wait.
    pub(super) fn replay(&self, release: bool) -> anyhow::Result<Value> {
        let replay = self.replay.as_ref().context("nothing is recorded")?;
        let mut released = replay.shared.released.lock().unwrap_or_else(PoisonError::into_inner);
        if release {
            released.send_replace(true);
        } else {
            // Watches that are still open keep the old channel.
            *released = watch::channel(false).0;
        }
        Ok(json!({}))
    }

    async fn version_of_pods(&self) -> anyhow::Result<u64> {
        let list = self.send(Request::get(format!("{PODS}?limit=1")), Vec::new()).await?;
        let version = list["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
        Ok(version.parse()?)
    }

    pub(super) async fn fetch(&self, path: &str, media_type: &str) -> anyhow::Result<kube::client::Body> {
        let accept = match path.contains("watch=true") && media_type == PROTOBUF {
            true => format!("{media_type};stream=watch"),
            false => media_type.to_owned(),
        };
        let request = Request::get(path).header("accept", accept).body(kube::client::Body::empty())?;
        let response = self.client.send(request).await?;
        if response.status() != StatusCode::OK {
            bail!("{path} returned {}", response.status());
        }
        Ok(response.into_body())
    }

    /// The first events after a version, in pieces of some size.
    async fn record_events(&self, media_type: &str, after: u64, count: usize) -> anyhow::Result<Vec<Bytes>> {
        let path = format!("{PODS}?watch=true&resourceVersion={after}&timeoutSeconds=600");
        let mut body = self.fetch(&path, media_type).await?;
        let (mut recorded, mut frames) = (Vec::new(), Frames::new(media_type));
        while frames.complete < count {
            let frame = body.frame().await.context("the watch ended early")??;
            if let Ok(data) = frame.into_data() {
                frames.count(&data);
                recorded.extend_from_slice(&data);
            }
        }
        let recorded = Bytes::from(recorded);
        let chunks = (0..recorded.len()).step_by(CHUNK);
        Ok(chunks.map(|at| recorded.slice(at..recorded.len().min(at + CHUNK))).collect())
    }
}

/// Counts the complete frames of a stream.
struct Frames {
    complete: usize,
    /// `None` for JSON, whose frames are lines.
    framing: Option<LengthFraming>,
}

/// Frames with a length of four bytes before each.
#[derive(Default)]
struct LengthFraming {
    head: Vec<u8>,
    /// Bytes of the frame that are still to come.
    left: usize,
}

impl Frames {
    fn new(media_type: &str) -> Self {
        Self { complete: 0, framing: (media_type == PROTOBUF).then(LengthFraming::default) }
    }

    fn count(&mut self, mut data: &[u8]) {
        let Some(LengthFraming { head, left }) = &mut self.framing else {
            self.complete += data.iter().filter(|byte| **byte == b'\n').count();
            return;
        };
        while let Some((byte, rest)) = data.split_first() {
            if *left > 0 {
                let taken = data.len().min(*left);
                (data, *left) = (&data[taken..], *left - taken);
                self.complete += usize::from(*left == 0);
                continue;
            }
            head.push(*byte);
            data = rest;
            if let [a, b, c, d] = head[..] {
                *left = u32::from_be_bytes([a, b, c, d]) as usize;
                head.clear();
            }
        }
    }
}

impl Replay {
    async fn start(shared: Shared) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(shared);
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&serving)));
            }
        });
        Ok(Self { url, shared })
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(shared.respond(&request)) }
    });
    // A client that goes away is no error.
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

type ReplayBody = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Infallible>>;

impl Shared {
    fn respond(self: &Arc<Self>, request: &Request<Incoming>) -> Response<ReplayBody> {
        let accept =
            request.headers().get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let protobuf = accept.starts_with(PROTOBUF);
        let recording = if protobuf { &self.protobuf } else { &self.json };
        let query: HashMap<&str, &str> = request
            .uri()
            .query()
            .unwrap_or_default()
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let (status, body) = match request.uri().path() {
            PODS if query.contains_key("sendInitialEvents") => return refusal(422, "Invalid"),
            PODS if query.get("watch").is_some_and(|watch| *watch != "false" && *watch != "0") => {
                (StatusCode::OK, Either::Right(self.watch(protobuf)))
            }
            // A client that asks for the version of the server.
            PODS if query.get("limit") == Some(&"1") => {
                (StatusCode::OK, Either::Left(Full::new(recording.empty_list.clone())))
            }
            PODS => (StatusCode::OK, Either::Left(Full::new(recording.list.clone()))),
            _ => return refusal(404, "NotFound"),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let media_type = match (protobuf, query.contains_key("watch")) {
            (false, _) => JSON.to_owned(),
            (true, false) => PROTOBUF.to_owned(),
            (true, true) => format!("{PROTOBUF};stream=watch"),
        };
        if let Ok(value) = media_type.parse() {
            response.headers_mut().insert(CONTENT_TYPE, value);
        }
        response
    }

    /// All events once they are released. The stream stays open behind them.
    fn watch(self: &Arc<Self>, protobuf: bool) -> UnsyncBoxBody<Bytes, Infallible> {
        let released = self.released.lock().unwrap_or_else(PoisonError::into_inner).subscribe();
        let shared = Arc::clone(self);
        let events = futures_util::stream::unfold(0, move |next| {
            let (mut released, shared) = (released.clone(), Arc::clone(&shared));
            async move {
                // The sender is gone if another contender is measured: this stream then sends nothing more.
                if released.wait_for(|released| *released).await.is_err() {
                    return std::future::pending().await;
                }
                let events = if protobuf { &shared.protobuf.events } else { &shared.json.events };
                match events.get(next) {
                    Some(chunk) => Some((Ok(Frame::data(chunk.clone())), next + 1)),
                    None => std::future::pending().await,
                }
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(events))
    }
}

fn refusal(code: u16, reason: &str) -> Response<ReplayBody> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
        "reason": reason, "message": "the replay serves recorded pods only"});
    let mut response = Response::new(Either::Left(Full::new(Bytes::from(status.to_string()))));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::BAD_REQUEST);
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(JSON));
    response
}
