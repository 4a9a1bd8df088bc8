//! Watches over WebSocket: one event in each message, as kube-apiserver sends them.

use std::future::poll_fn;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use super::access::websocket_protocols;
use super::activity::Busy;
use crate::http::{ResponseBody, WatchBody, WholeEvent};

/// Bytes of one message of a client, which has nothing to send but control frames.
const MAX_RECEIVED: usize = 64 * 1024;
/// Bytes that wait to be written. More than any event has.
const MAX_UNSENT: usize = 64 * 1024 * 1024;
/// The time that a client has to accept the last frames.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The WebSocket handshake of a request.
#[derive(Debug)]
pub(super) struct Handshake {
    /// `Sec-WebSocket-Key`.
    key: Option<HeaderValue>,
    supported_version: bool,
    protocols: Vec<String>,
}

impl Handshake {
    /// `None` if the request does not ask for WebSocket.
    pub(super) fn of<B>(request: &http::Request<B>) -> Option<Self> {
        let headers = request.headers();
        let asked = has_token(headers, CONNECTION, "upgrade") && has_token(headers, UPGRADE, "websocket");
        if !asked || request.version() != Version::HTTP_11 {
            return None;
        }
        Some(Self {
            key: headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty()).cloned(),
            supported_version: headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13"),
            protocols: websocket_protocols(headers).map(str::to_owned).collect(),
        })
    }

    /// The response that switches protocols, or the one that refuses to. `watch` is the response to the same request without an upgrade.
    pub(super) fn respond(&self, watch: &HeaderMap) -> Response<ResponseBody> {
        let (Some(key), true, [] | [_]) = (&self.key, self.supported_version, &self.protocols[..]) else {
            return refused();
        };
        let Ok(accept) = HeaderValue::from_str(&derive_accept_key(key.as_bytes())) else { return refused() };
        let mut response = Response::new(ResponseBody::whole(Bytes::new()));
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        if let Some(content_type) = watch.get(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, content_type.clone());
        }
        let protocol = self.protocols.first().and_then(|protocol| HeaderValue::from_str(protocol).ok());
        if let Some(protocol) = protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

fn refused() -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::whole(
        "the WebSocket handshake needs a Sec-WebSocket-Key, Sec-WebSocket-Version: 13 and at most one subprotocol\n",
    ));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    response
}

/// Whether a header is a list that has this word in it.
fn has_token(headers: &HeaderMap, name: http::header::HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(token))
}

/// A watch that continues on its connection after the switch of protocols.
///
/// 1. A message is one event: text with a JSON line, or binary with a protobuf event without its length.
/// 2. PINGs get PONGs. Other messages of the client are ignored; a malformed, unmasked or too large one closes the connection.
/// 3. It ends with a Close frame: when the watch ends, when the client closes, or when the server shuts down.
pub(super) struct WebSocketWatch {
    pub(super) upgrade: OnUpgrade,
    pub(super) watch: Box<WatchBody>,
    /// An open watch is use of its connection.
    pub(super) busy: Busy,
}

impl WebSocketWatch {
    pub(super) async fn run(self) {
        let Self { upgrade, mut watch, busy: _busy } = self;
        let Ok(stream) = upgrade.await else { return };
        send_events(TokioIo::new(stream), &mut watch).await;
    }
}

/// Sends the events of a watch on a stream that speaks WebSocket from now on.
async fn send_events<S: AsyncRead + AsyncWrite + Unpin>(stream: S, watch: &mut WatchBody) {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_RECEIVED))
        .max_frame_size(Some(MAX_RECEIVED))
        .max_write_buffer_size(MAX_UNSENT);
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(config)).await;
    loop {
        tokio::select! {
            received = socket.next() => match received {
                Some(Ok(Message::Close(_))) | None => break,
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::debug!(%error, "closing a WebSocket");
                    break;
                }
            },
            event = poll_fn(|cx| watch.poll_whole_event(cx)) => match event.and_then(message) {
                Some(message) => if let Err(error) = socket.send(message).await {
                    return tracing::debug!(%error, "a WebSocket ended");
                },
                None => break,
            },
        }
    }
    let end = async {
        // Refused after a Close of the client, whose reply is then queued and not yet sent.
        if socket.close(None).await.is_err() {
            let _ = socket.flush().await;
        }
    };
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, end).await;
}

/// For the fuzz targets.
pub(crate) mod fuzzing {
    use std::sync::Arc;

    use bytes::Bytes;
    use http_body_util::Empty;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use crate::http::{ResponseBody, handle};
    use crate::server::ApiServer;

    /// Sends these bytes to a watch of namespaces after its upgrade, and then nothing more. Returns the bytes that the server sent until it
    /// ended the connection; `None` if there is no server, which does not happen.
    pub fn web_socket(data: &[u8]) -> Option<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
        runtime.block_on(async {
            let api = ApiServer::builder().in_process().await.ok()?.api;
            let request =
                http::Request::get("/api/v1/namespaces?watch=1").body(Empty::<Bytes>::new()).ok()?;
            let response = handle(Arc::clone(&api), request).await.ok()?;
            let ResponseBody::Watch(mut watch) = response.into_body() else { return None };
            let (ours, mut theirs) = tokio::io::duplex(1 << 20);
            let client = async {
                // The server may close the connection before it has read everything.
                let _ = theirs.write_all(data).await;
                let _ = theirs.shutdown().await;
                let mut sent = Vec::new();
                let _ = theirs.read_to_end(&mut sent).await;
                sent
            };
            let server = async move { super::send_events(ours, &mut watch).await };
            Some(tokio::join!(client, server).0)
        })
    }
}

/// An event as a message. `None` if it cannot be one, which does not happen: JSON is UTF-8.
fn message(event: WholeEvent) -> Option<Message> {
    match event {
        WholeEvent::Json(line) => line.try_into().ok().map(Message::Text),
        WholeEvent::Protobuf(bytes) => Some(Message::Binary(bytes)),
    }
}

impl std::fmt::Debug for WebSocketWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebSocketWatch")
    }
}
