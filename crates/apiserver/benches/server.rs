//! The whole server: start, writes through the verbs, lists and fan-out over a socket, memory.
//!
//! `cargo bench -p kube-embedded-apiserver --bench server` prints what it measures and judges nothing.
#![allow(clippy::print_stdout, missing_docs)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};
use tokio::net::TcpStream;

const PODS: usize = 100_000;
const LISTED: usize = 30_000;
const WATCHERS: usize = 1_000;
const WRITES: usize = 100;
const STREAMS: usize = 200;

/// From now on, without the state.
const WATCH: &str =
    "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        start().await;
        create_in_process().await;
        list_and_fan_out().await;
    });
}

fn pod(namespace: &str, n: usize) -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example/{name}:1.2.{n}"),
            "env": (0..12).map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("value-{i}-{n}")})).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}}})
    };
    json!({"metadata": {"name": format!("pod-{n:06}"), "namespace": namespace, "labels": {"app": format!("app-{}", n % 300)}},
        "spec": {"nodeName": format!("node-{}", n % 500), "containers": [container("main"), container("sidecar")]}})
}

async fn start() {
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..20 {
        let begun = Instant::now();
        let server = ApiServer::start().await.expect("the server starts");
        let answer = get(&mut connect(server.address()).await, "/readyz").await;
        times.push(begun.elapsed());
        assert_eq!(answer.status(), 200);
        server.shutdown().await;
    }
    times.sort();
    println!("start to first answer   median {:?}, slowest {:?}", times[10], times[19]);
}

async fn create_in_process() {
    let server = ApiServer::builder().in_process().await.expect("the server starts");
    let client = server.client();
    let (before, begun) = (resident(), Instant::now());
    for n in 0..PODS {
        let body = pod("default", n).to_string().into_bytes();
        let request = http::Request::post("/api/v1/namespaces/default/pods").body(body).expect("a request");
        client.request::<serde::de::IgnoredAny>(request).await.expect("created");
    }
    report("pods created in process", PODS, begun.elapsed());
    println!("memory per stored pod   {} bytes (all of the process)", (resident() - before) / PODS);
}

async fn list_and_fan_out() {
    let server = ApiServer::start().await.expect("the server starts");
    let client = server.local().client();
    for n in 0..LISTED {
        let request = http::Request::post("/api/v1/namespaces/default/pods")
            .body(pod("default", n).to_string().into_bytes());
        client.request::<serde::de::IgnoredAny>(request.expect("a request")).await.expect("created");
    }
    let mut sender = connect(server.address()).await;
    let begun = Instant::now();
    let bytes =
        get(&mut sender, "/api/v1/pods").await.into_body().collect().await.expect("a list").to_bytes().len();
    let took = begun.elapsed();
    println!(
        "list of {LISTED} pods     {took:?}, {} MB, {:.0} MB/s",
        bytes / 1_000_000,
        bytes as f64 / 1e6 / took.as_secs_f64()
    );
    fan_out(&server).await;
}

async fn fan_out(server: &ApiServer) {
    let (before, heard) = (resident(), Arc::new(AtomicUsize::new(0)));
    let mut senders = Vec::new();
    for n in 0..WATCHERS {
        if n % STREAMS == 0 {
            senders.push(connect(server.address()).await);
        }
        let sender = senders.last_mut().expect("pushed above");
        let watch = get(sender, WATCH).await;
        tokio::spawn(count(watch, Arc::clone(&heard)));
    }
    println!(
        "memory per idle watcher {} bytes (both ends of the socket)",
        (resident().saturating_sub(before)) / WATCHERS
    );
    let mut writer = connect(server.address()).await;
    let begun = Instant::now();
    for n in 0..WRITES {
        let body = json!({"metadata": {"name": format!("m{n}")}, "data": {"k": "v".repeat(500)}}).to_string();
        let uri = format!("{}/api/v1/namespaces/default/configmaps", server.url());
        let request = http::Request::post(uri).body(Full::new(Bytes::from(body))).expect("a request");
        assert_eq!(writer.send_request(request).await.expect("an answer").status(), 201);
    }
    while heard.load(Ordering::Relaxed) < WRITES * WATCHERS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    report(&format!("events to {WATCHERS} watchers"), WRITES * WATCHERS, begun.elapsed());
}

async fn count(watch: http::Response<Incoming>, heard: Arc<AtomicUsize>) {
    let mut body = watch.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        let lines = frame.data_ref().map_or(0, |d| d.iter().filter(|b| **b == b'\n').count());
        heard.fetch_add(lines, Ordering::Relaxed);
    }
}

async fn connect(address: SocketAddr) -> Sender {
    let stream = TcpStream::connect(address).await.expect("connected");
    let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1 << 20).initial_connection_window_size(16 << 20);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.expect("h2");
    tokio::spawn(connection);
    sender
}

async fn get(sender: &mut Sender, path: &str) -> http::Response<Incoming> {
    let request =
        http::Request::get(format!("http://localhost{path}")).body(Full::default()).expect("a request");
    sender.send_request(request).await.expect("an answer")
}

fn report(what: &str, n: usize, took: Duration) {
    println!("{what}  {n} in {took:?}, {:.0} a second", n as f64 / took.as_secs_f64());
}

/// Resident memory of this process in bytes; zero where it cannot be read.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}
