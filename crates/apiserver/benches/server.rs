//! Benchmarks of the whole server: start, writes, lists and fan-out over a socket, memory.
//!
//! `cargo bench -p kube-embedded-apiserver --bench server` prints measurements without thresholds. CPU time is that of the whole
//! process, because it depends less on other load; with a socket, it includes both ends.
#![allow(clippy::print_stdout, missing_docs)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cpu_time::ProcessTime;
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
const IDLE: usize = 10_000;

/// A watch from now on, without the initial state.
const WATCH: &str =
    "/api/v1/namespaces/default/configmaps?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan";

type Sender = hyper::client::conn::http2::SendRequest<Full<Bytes>>;

fn main() {
    // `-- create 5000` measures only that, for a profiler.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let [what, count] = words.as_slice() {
        assert_eq!(what, "create", "only `create` can be measured alone");
        return in_process(create_in_process(count.parse().expect("a number of pods")));
    }
    in_process(start());
    in_process(idle_watchers());
    in_process(create_in_process(PODS));
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    threads.block_on(list_and_fan_out());
}

/// Runs on one thread, like a test.
fn in_process(measure: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure);
}

/// Measures wall-clock and CPU time.
struct Stopwatch(Instant, ProcessTime);

impl Stopwatch {
    fn start() -> Self {
        Self(Instant::now(), ProcessTime::now())
    }

    fn stop(self) -> [Duration; 2] {
        [self.0.elapsed(), self.1.elapsed()]
    }
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
        let response = get(&mut connect(server.address()).await, "/readyz").await;
        times.push(begun.elapsed());
        assert_eq!(response.status(), 200);
        server.shutdown().await;
    }
    times.sort();
    println!("start to first response   median {:?}, slowest {:?}", times[10], times[19]);
}

/// Memory of the server only: no client reads the events.
async fn idle_watchers() {
    let server = ApiServer::builder().in_process().await.expect("the server starts");
    let client = server.client();
    let watch = || http::Request::get(WATCH).body(kube::client::Body::empty()).expect("a request");
    let mut open = Vec::with_capacity(IDLE);
    open.push(client.send(watch()).await.expect("a watch"));
    let before = resident();
    for _ in 1..IDLE {
        open.push(client.send(watch()).await.expect("a watch"));
    }
    println!("memory per idle watcher {} bytes, of {IDLE}", (resident() - before) / IDLE);
}

async fn create_in_process(pods: usize) {
    const BATCH: usize = 1_000;
    let server = ApiServer::builder().in_process().await.expect("the server starts");
    let client = server.client();
    let (before, mut took) = (resident(), [Duration::ZERO; 2]);
    for batch in 0..pods / BATCH {
        let bodies: Vec<_> =
            (batch * BATCH..(batch + 1) * BATCH).map(|n| pod("default", n).to_string()).collect();
        let watch = Stopwatch::start();
        for body in bodies {
            let request = http::Request::post("/api/v1/namespaces/default/pods").body(body.into_bytes());
            client.request::<serde::de::IgnoredAny>(request.expect("a request")).await.expect("created");
        }
        took.iter_mut().zip(watch.stop()).for_each(|(sum, part)| *sum += part);
    }
    report("pods created in process", pods, took);
    println!("memory per stored pod   {} bytes, of {pods}", (resident() - before) / pods);
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
    let watch = Stopwatch::start();
    let (mut body, mut bytes) = (get(&mut sender, "/api/v1/pods").await.into_body(), 0);
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("a list").data_ref().map_or(0, Bytes::len);
    }
    let [took, processors] = watch.stop();
    println!(
        "list of {LISTED} pods     {took:?}, processors {processors:?}, {} MB, {:.0} MB/s",
        bytes / 1_000_000,
        bytes as f64 / 1e6 / took.as_secs_f64()
    );
    fan_out(&server).await;
}

async fn fan_out(server: &ApiServer) {
    let received = Arc::new(AtomicUsize::new(0));
    let mut senders = Vec::new();
    for n in 0..WATCHERS {
        if n % STREAMS == 0 {
            senders.push(connect(server.address()).await);
        }
        let sender = senders.last_mut().expect("pushed above");
        let watch = get(sender, WATCH).await;
        tokio::spawn(count(watch, Arc::clone(&received)));
    }
    let mut writer = connect(server.address()).await;
    let watch = Stopwatch::start();
    for n in 0..WRITES {
        let body = json!({"metadata": {"name": format!("m{n}")}, "data": {"k": "v".repeat(500)}}).to_string();
        let uri = format!("{}/api/v1/namespaces/default/configmaps", server.url());
        let request = http::Request::post(uri).body(Full::new(Bytes::from(body))).expect("a request");
        assert_eq!(writer.send_request(request).await.expect("a response").status(), 201);
    }
    while received.load(Ordering::Relaxed) < WRITES * WATCHERS {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    report(&format!("events to {WATCHERS} watchers"), WRITES * WATCHERS, watch.stop());
}

async fn count(watch: http::Response<Incoming>, received: Arc<AtomicUsize>) {
    let mut body = watch.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        let lines = frame.data_ref().map_or(0, |d| d.iter().filter(|b| **b == b'\n').count());
        received.fetch_add(lines, Ordering::Relaxed);
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
    sender.send_request(request).await.expect("a response")
}

fn report(what: &str, n: usize, [clock, processors]: [Duration; 2]) {
    let each = |took: Duration| took.as_secs_f64() * 1e6 / n as f64;
    println!(
        "{what}  {n} in {clock:?}, processors {processors:?}; each {:.1} and {:.1} µs",
        each(clock),
        each(processors)
    );
}

/// Resident memory of this process in bytes; zero where it cannot be read.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4096
}
