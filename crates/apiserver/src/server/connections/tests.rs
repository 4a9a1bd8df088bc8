//! Connections over pipes in memory, under a paused clock.

mod websocket;

use bytes::Bytes;
use http::uri::Scheme;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::authentication::Authenticator;
use crate::clock::Clock;
use crate::server::{ApiServer, Tokens};

const TOKEN: &str = "0123456789abcdef";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// A server and the end of a connection to it.
struct Served {
    client: Option<DuplexStream>,
    api: Arc<Api>,
    /// Ends with the connection.
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

async fn connect() -> Served {
    connect_with(Some(Tokens::new([TOKEN]).expect("a token"))).await
}

async fn connect_with(tokens: Option<Tokens>) -> Served {
    let api = ApiServer::builder().seed(3).in_process().await.expect("the server starts").api;
    let authenticator = Arc::new(Authenticator::new(tokens, Clock::default()));
    let access_control = AccessControl::new(false, Scheme::HTTP, Vec::new(), authenticator);
    let limits = ServerLimits::default();
    let context =
        Arc::new(ConnectionContext { api: Arc::clone(&api), access_control, limits, acceptor: None });
    let (ours, theirs) = tokio::io::duplex(16 * 1024);
    let (stop, stopped) = watch::channel(false);
    let task = tokio::spawn(async move {
        let slot = Slots::new(&context.limits, context.access_control.requires_credentials())
            .take(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));
        let stream = WriteTimeout::new(ours, context.limits.write_timeout);
        let activity = Activity::new(slot, stream.pending());
        context.serve(&http_builder(&context.limits), stream, None, activity, stopped).await;
    });
    Served { client: Some(theirs), api, task, stop }
}

impl Served {
    /// An HTTP/2 client that acknowledges every PING.
    async fn http2(&mut self) -> SendRequest<Empty<Bytes>> {
        let io = TokioIo::new(self.client.take().expect("one client"));
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(1000)
            .handshake(io)
            .await
            .expect("HTTP/2");
        tokio::spawn(connection);
        sender
    }

    /// Whether the server has ended the connection after this time.
    async fn is_closed_after(&mut self, time: Duration) -> bool {
        timeout(time, &mut self.task).await.is_ok()
    }

    async fn store(&self, name: &str, text: String) {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": text}});
        let request = http::Request::post("/api/v1/namespaces/default/configmaps")
            .body(http_body_util::Full::<Bytes>::from(map.to_string()))
            .expect("a request");
        let response = handle(Arc::clone(&self.api), request).await.expect("a response");
        assert_eq!(response.status(), 201);
    }
}

fn get(path: &str, token: bool) -> http::Request<Empty<Bytes>> {
    let mut request = http::Request::builder().uri(format!("http://server{path}"));
    if token {
        request = request.header("Authorization", format!("Bearer {TOKEN}"));
    }
    request.body(Empty::new()).expect("a request")
}

#[tokio::test(start_paused = true)]
async fn without_a_credential_no_http2_connection_stays_whatever_it_sends() {
    for path in ["/healthz", "/api/v1/pods"] {
        let mut served = connect().await;
        let mut client = served.http2().await;
        let response = client.send_request(get(path, false)).await.expect("a response");
        response.into_body().collect().await.expect("whole");
        // Until the connection is closed, a request every second.
        let asking = async {
            while client.send_request(get(path, false)).await.is_ok() {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        timeout(MINUTE, asking).await.expect("the server closes the connection");
        assert!(served.is_closed_after(MINUTE).await, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_credential_pipelined_probes_do_not_hold_a_connection() {
    let mut served = connect().await;
    let mut client = served.client.take().expect("one client");
    let probes = "GET /healthz HTTP/1.1\r\nHost: server\r\n\r\n".repeat(10_000);
    let sender = tokio::spawn(async move { client.write_all(probes.as_bytes()).await });
    assert!(served.is_closed_after(MINUTE).await, "the client does not read the responses");
    assert!(sender.await.expect("no panic").is_err());
}

#[tokio::test(start_paused = true)]
async fn an_http1_client_that_does_not_read_is_closed() {
    let mut served = connect().await;
    served.store("large", "x".repeat(200_000)).await;
    let request =
        format!("GET /api/v1/configmaps HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    let mut client = served.client.take().expect("one client");
    client.write_all(request.as_bytes()).await.expect("sent");
    assert!(served.is_closed_after(10 * MINUTE).await);
}

#[tokio::test(start_paused = true)]
async fn an_http2_client_that_does_not_read_is_closed() {
    let mut served = connect().await;
    served.store("large", "x".repeat(200_000)).await;
    let mut client = served.http2().await;
    let unread = client.send_request(get("/api/v1/configmaps", true)).await.expect("a response");
    assert!(served.is_closed_after(10 * MINUTE).await);
    drop(unread);
}

#[tokio::test(start_paused = true)]
async fn an_authenticated_client_may_be_idle_for_a_while() {
    let mut served = connect().await;
    let mut client = served.http2().await;
    for _ in 0..5 {
        let response = client.send_request(get("/api/v1/pods", true)).await.expect("a response");
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.expect("whole");
        assert!(!served.is_closed_after(MINUTE).await, "idle for a minute");
    }
    assert!(served.is_closed_after(MINUTE).await, "idle for two");
}

#[tokio::test(start_paused = true)]
async fn an_idle_http1_client_may_ask_again() {
    let mut served = connect().await;
    let mut client = served.client.take().expect("one client");
    let request = format!("GET /version HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    for _ in 0..3 {
        client.write_all(request.as_bytes()).await.expect("sent");
        let mut status = [0; 12];
        client.read_exact(&mut status).await.expect("a response");
        assert_eq!(&status, b"HTTP/1.1 200");
        let mut rest = [0; 4096];
        let _ = client.read(&mut rest).await.expect("the rest");
        assert!(!served.is_closed_after(MINUTE).await, "idle for a minute");
    }
    assert!(served.is_closed_after(MINUTE).await, "idle for two");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_stays_open() {
    let mut served = connect().await;
    let mut client = served.http2().await;
    let path = "/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds=86400";
    let mut watch = client.send_request(get(path, true)).await.expect("a watch");
    assert!(!served.is_closed_after(HOUR).await);
    served.store("new", "1".to_owned()).await;
    let event = watch.body_mut().frame().await.expect("an event").expect("no error");
    assert!(event.data_ref().is_some_and(|line| line.starts_with(b"{\"type\":\"ADDED\"")));
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_a_slow_reader_stays_open() {
    let mut served = connect().await;
    served.store("large", "x".repeat(200_000)).await;
    let mut client = served.http2().await;
    let path = "/api/v1/configmaps?watch=1&resourceVersion=0&timeoutSeconds=86400";
    let mut watch = client.send_request(get(path, true)).await.expect("a watch");
    let mut event = Vec::new();
    while !event.ends_with(b"\n") {
        // The window of the stream is 1,000 bytes: this takes more than an hour.
        tokio::time::sleep(Duration::from_secs(30)).await;
        let frame = watch.body_mut().frame().await.expect("the watch goes on").expect("no error");
        event.extend_from_slice(frame.data_ref().expect("data"));
    }
    assert!(event.len() > 200_000);
    assert!(!served.is_closed_after(Duration::from_secs(1)).await);
}

#[tokio::test(start_paused = true)]
async fn silent_connections_do_not_delay_a_shutdown() {
    let second = Duration::from_secs(1);
    let mut silent = connect().await;
    let mut half = connect().await;
    let mut client = half.client.take().expect("one client");
    client.write_all(b"GET /version HTTP/1.1\r\nHost: ").await.expect("sent");
    let mut idle = connect().await;
    let _idle = idle.http2().await;
    for served in [&mut silent, &mut half, &mut idle] {
        tokio::time::sleep(Duration::from_millis(10)).await;
        served.stop.send(true).expect("the connection is open");
        assert!(served.is_closed_after(second).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_waits_for_a_response_that_is_being_read() {
    let mut served = connect().await;
    served.store("large", "x".repeat(200_000)).await;
    let mut client = served.client.take().expect("one client");
    let request =
        format!("GET /api/v1/configmaps HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    client.write_all(request.as_bytes()).await.expect("sent");
    let mut piece = vec![0; 4096];
    client.read_exact(&mut piece).await.expect("the start");
    served.stop.send(true).expect("the connection is open");
    let mut received = piece.len();
    loop {
        tokio::time::sleep(Duration::from_millis(30)).await;
        match client.read(&mut piece).await.expect("no error") {
            0 => break,
            read => received += read,
        }
    }
    assert!(received > 200_000, "{received}");
}

#[tokio::test(start_paused = true)]
async fn a_response_arrives_though_the_body_is_too_large_or_not_wanted() {
    for (path, status, size) in
        [("/api/v1/namespaces/default/configmaps", "413", 5 << 20), ("/nothing", "404", 2 << 20)]
    {
        let mut served = connect().await;
        let mut client = served.client.take().expect("one client");
        let body = vec![b' '; size];
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: server\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client.write_all(head.as_bytes()).await.expect("sent");
        client.write_all(&body).await.expect("the whole body is read");
        let mut response = [0; 12];
        client.read_exact(&mut response).await.expect("a response");
        assert_eq!(response, *format!("HTTP/1.1 {status}").as_bytes(), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_opened_in_advance_stays_until_it_is_needed() {
    let mut http1 = connect_with(None).await;
    assert!(!http1.is_closed_after(MINUTE).await, "no request yet");
    let mut client = http1.client.take().expect("one client");
    client.write_all(b"GET /version HTTP/1.1\r\nHost: server\r\n\r\n").await.expect("sent");
    let mut status = [0; 12];
    client.read_exact(&mut status).await.expect("a response");
    assert_eq!(&status, b"HTTP/1.1 200");

    let mut http2 = connect_with(None).await;
    let mut client = http2.http2().await;
    assert!(!http2.is_closed_after(MINUTE).await, "no request yet");
    let response = client.send_request(get("/version", false)).await.expect("a response");
    assert_eq!(response.status(), 200);
    drop(response);
    assert!(http2.is_closed_after(2 * MINUTE).await, "idle");
    let mut silent = connect_with(None).await;
    assert!(silent.is_closed_after(2 * MINUTE).await, "never used");
}

#[tokio::test(start_paused = true)]
async fn a_head_has_its_timeout_from_its_first_byte_on() {
    let half = b"GET /version HTTP/1.1\r\nHost: server\r\nX-Slow: ";
    let seconds = Duration::from_secs;
    let mut first = connect_with(None).await;
    let mut client = first.client.take().expect("one client");
    assert!(!first.is_closed_after(seconds(60)).await);
    client.write_all(half).await.expect("sent");
    assert!(!first.is_closed_after(seconds(8)).await, "the head may take ten seconds");
    client.write_all(b"x").await.expect("sent");
    assert!(first.is_closed_after(seconds(9)).await, "further bytes do not extend them");

    let mut later = connect_with(None).await;
    let mut client = later.client.take().expect("one client");
    client.write_all(b"GET /version HTTP/1.1\r\nHost: server\r\n\r\n").await.expect("sent");
    let _ = client.read(&mut [0; 4096]).await.expect("a response");
    assert!(!later.is_closed_after(seconds(60)).await);
    client.write_all(half).await.expect("sent");
    assert!(!later.is_closed_after(seconds(8)).await);
    assert!(later.is_closed_after(seconds(9)).await, "the second request");

    let mut preface = connect_with(None).await;
    preface.client.as_mut().expect("one client").write_all(b"PRI * HTTP/2").await.expect("sent");
    assert!(preface.is_closed_after(seconds(17)).await);
}
