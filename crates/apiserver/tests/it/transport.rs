//! Sockets: protocols, limits, idle clients, and shutdown.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_embedded_apiserver::{ApiServer, Fault, FaultRule, ServerLimits, Verb};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::golden::exchange::{read, send};

/// Longer than any of these tests should take.
const TIMEOUT: Duration = Duration::from_secs(20);

async fn until_closed(mut stream: TcpStream) -> Vec<u8> {
    let mut received = Vec::new();
    tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut received))
        .await
        .expect("the server closes")
        .expect("cleanly");
    received
}

#[tokio::test]
async fn silent_and_slow_connections_are_closed() {
    let mut limits = ServerLimits::default();
    limits.header_timeout = Duration::from_secs(1);
    limits.idle_timeout = Duration::from_secs(2);
    let server = ApiServer::builder().limits(limits).start().await.expect("the server starts");
    let silent = TcpStream::connect(server.address()).await.expect("connected");
    let mut half_a_preface = TcpStream::connect(server.address()).await.expect("connected");
    half_a_preface.write_all(b"PRI * HTTP/2").await.expect("sent");
    let mut half_a_head = TcpStream::connect(server.address()).await.expect("connected");
    half_a_head.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\nX-Slow: ").await.expect("sent");
    until_closed(silent).await;
    until_closed(half_a_preface).await;
    until_closed(half_a_head).await;
    let got = read(send(server.address(), &json!({"path": "/livez"})).await.expect("a response"))
        .await
        .expect("whole");
    assert_eq!(got["text"], "ok");
}

#[tokio::test]
async fn half_a_body_stores_nothing() {
    let server = ApiServer::start().await.expect("the server starts");
    let half = b"POST /api/v1/namespaces/default/configmaps?timeout=1s HTTP/1.1\r\nHost: localhost\r\n\
        Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{\"metadata\":{\"name\":\"a\"}}";
    let mut stalls = TcpStream::connect(server.address()).await.expect("connected");
    stalls.write_all(half).await.expect("sent");
    let mut half_open = TcpStream::connect(server.address()).await.expect("connected");
    half_open.write_all(half).await.expect("sent");
    half_open.shutdown().await.expect("half closed");
    let mut vanishes = TcpStream::connect(server.address()).await.expect("connected");
    vanishes.write_all(half).await.expect("sent");
    drop(vanishes);
    let received = until_closed(half_open).await;
    assert!(!received.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&received));
    let mut status = [0; 12];
    tokio::time::timeout(TIMEOUT, stalls.read_exact(&mut status))
        .await
        .expect("in time")
        .expect("a response");
    assert_eq!(&status, b"HTTP/1.1 504");
    let maps = send(server.address(), &json!({"path": "/api/v1/configmaps"})).await.expect("a response");
    assert_eq!(read(maps).await.expect("whole")["body"]["items"], json!([]));
}

#[tokio::test]
async fn a_write_completes_after_its_client_disconnects() {
    let server = ApiServer::start().await.expect("the server starts");
    let delay = Fault::Delay(Duration::from_millis(300));
    server.faults().add(FaultRule::new(delay).verb(Verb::Create).times(1));
    let body = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;
    let head = "POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut client = TcpStream::connect(server.address()).await.expect("connected");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    client.write_all(request.as_bytes()).await.expect("sent");
    let watch = json!({"path": "/api/v1/configmaps?watch=1&resourceVersion=0"});
    let mut events = send(server.address(), &watch).await.expect("a watch");
    while server.faults().rules().iter().any(|rule| rule.remaining() > 0) {
        tokio::task::yield_now().await; // until the request is under way
    }
    drop(client);
    let event =
        tokio::time::timeout(TIMEOUT, events.frame()).await.expect("the write is done").expect("an event");
    let event = event.expect("whole").into_data().expect("data");
    assert!(String::from_utf8_lossy(&event).contains(r#""type":"ADDED""#));
}

#[tokio::test]
async fn request_heads_above_the_limit_are_rejected() {
    let server = ApiServer::start().await.expect("the server starts");
    let mut stream = TcpStream::connect(server.address()).await.expect("connected");
    let head = format!("GET /version HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "x".repeat(200_000));
    // The server may close the connection before it has read the whole head.
    let _ = stream.write_all(head.as_bytes()).await;
    let mut received = Vec::new();
    let _ =
        tokio::time::timeout(TIMEOUT, stream.read_to_end(&mut received)).await.expect("the server closes");
    assert!(
        received.is_empty() || received.starts_with(b"HTTP/1.1 431"),
        "{}",
        String::from_utf8_lossy(&received)
    );
}

#[tokio::test]
async fn connections_above_the_limit_wait() {
    let server = ApiServer::builder().max_connections(1).start().await.expect("the server starts");
    let mut first = TcpStream::connect(server.address()).await.expect("connected");
    first.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("sent");
    let mut some = [0; 12];
    first.read_exact(&mut some).await.expect("a response");
    assert_eq!(&some, b"HTTP/1.1 200");
    let request = json!({"path": "/livez"});
    let mut second = Box::pin(send(server.address(), &request));
    assert!(
        tokio::time::timeout(Duration::from_millis(100), &mut second).await.is_err(),
        "the second must wait"
    );
    drop(first);
    assert_eq!(second.await.expect("a response").status(), 200);
}

#[tokio::test]
async fn http2_works_with_prior_knowledge() {
    let server = ApiServer::start().await.expect("the server starts");
    let stream = TcpStream::connect(server.address()).await.expect("connected");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("h2");
    tokio::spawn(connection);
    let request = |path: &str| {
        let uri = format!("{}{path}", server.url());
        http::Request::builder().uri(uri).body(Full::<Bytes>::default()).expect("a request")
    };
    let mut watch =
        sender.send_request(request("/api/v1/namespaces?watch=1&timeoutSeconds=1")).await.expect("a watch");
    assert_eq!(watch.version(), http::Version::HTTP_2);
    assert!(!watch.headers().contains_key("transfer-encoding"));
    let frame = watch.body_mut().frame().await.expect("an event").expect("no error");
    assert!(frame.data_ref().expect("data").starts_with(b"{\"type\":\"ADDED\""));
    let list = sender.send_request(request("/api/v1/namespaces")).await.expect("a list");
    let list: Value =
        serde_json::from_slice(&list.into_body().collect().await.expect("whole").to_bytes()).expect("JSON");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn large_lists_are_compressed_and_watches_never() {
    let server = ApiServer::start().await.expect("the server starts");
    for i in 0..3 {
        let body = json!({"metadata": {"name": format!("m{i}")}, "data": {"k": "v".repeat(60_000)}});
        let post = json!({"method": "POST", "path": "/api/v1/namespaces/default/configmaps", "json": body});
        assert_eq!(send(server.address(), &post).await.expect("a response").status(), 201);
    }
    let get = |path: &str| json!({"path": path, "headers": {"Accept-Encoding": "gzip"}});
    let list = send(server.address(), &get("/api/v1/configmaps")).await.expect("a list");
    assert_eq!(list.headers()["content-encoding"], "gzip");
    assert_eq!(list.headers()["vary"], "Accept-Encoding");
    let packed = list.into_body().collect().await.expect("whole").to_bytes();
    let list: Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(&packed[..])).expect("JSON in gzip");
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
    for plain in ["/api/v1/namespaces", "/api/v1/configmaps?watch=1&timeoutSeconds=1"] {
        let response = send(server.address(), &get(plain)).await.expect("a response");
        assert!(!response.headers().contains_key("content-encoding"), "{plain}");
    }
}

#[tokio::test]
async fn shutdown_ends_watches_cleanly() {
    let server = ApiServer::start().await.expect("the server starts");
    let address = server.address();
    let watch = |kind: &str| json!({"path": format!("/api/v1/{kind}?watch=1")});
    let namespaces = send(address, &watch("namespaces")).await.expect("a watch");
    let events = send(address, &watch("events")).await.expect("a watch of a kind without a cache");
    let (bodies, ()) = tokio::time::timeout(TIMEOUT, async {
        tokio::join!(
            async { (namespaces.into_body().collect().await, events.into_body().collect().await) },
            server.shutdown()
        )
    })
    .await
    .expect("the shutdown ends");
    assert_eq!(bodies.0.expect("a clean end").to_bytes().iter().filter(|b| **b == b'\n').count(), 4);
    assert!(bodies.1.expect("a clean end").to_bytes().is_empty());
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn dropping_the_server_closes_its_port() {
    let server = ApiServer::start().await.expect("the server starts");
    let address = server.address();
    let watch = send(address, &json!({"path": "/api/v1/namespaces?watch=1"})).await.expect("a watch");
    drop(server);
    // The stream may end with or without an error.
    let _ = tokio::time::timeout(TIMEOUT, watch.into_body().collect()).await.expect("the watch ends");
    let closed = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, closed).await.expect("the port closes");
}

#[tokio::test]
async fn injected_faults_reach_the_client() {
    let server = ApiServer::start().await.expect("the server starts");
    let list = json!({"path": "/api/v1/pods"});
    let faults = server.faults();
    for (fault, status, retry) in [
        (Fault::TooManyRequests { retry_after: 3 }, 429, Some("3")),
        (Fault::InternalError, 500, None),
        (Fault::Unavailable, 503, None),
        (Fault::Timeout, 504, None),
    ] {
        faults.add(FaultRule::new(fault).verb(Verb::List).resource("pods").times(2));
        for _ in 0..2 {
            let response = send(server.address(), &list).await.expect("a response");
            assert_eq!(response.status(), status);
            assert_eq!(response.headers().get("retry-after").and_then(|v| v.to_str().ok()), retry);
        }
        assert_eq!(send(server.address(), &list).await.expect("a response").status(), 200);
    }
}

#[tokio::test]
async fn the_kubeconfig_names_the_server() {
    let server = ApiServer::start().await.expect("the server starts");
    let config = kube::config::Kubeconfig::from_yaml(&server.kubeconfig()).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.expect("complete");
    assert_eq!(config.cluster_url.to_string().trim_end_matches('/'), server.url());
    assert_eq!(config.default_namespace, "default");
    assert!(config.accept_invalid_certs, "the JavaScript client refuses http otherwise");
    let version =
        kube::Client::try_from(config).expect("a client").apiserver_version().await.expect("a version");
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
}
