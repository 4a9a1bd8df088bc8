//! Benchmarks of the store and the watch cache without HTTP: writes, lists, fan-out, memory.
//!
//! `cargo bench -p kube-embedded-apiserver --bench watch_cache` prints measurements without thresholds. Times are CPU times of the
//! only thread where available, because they depend less on other load.
#![allow(clippy::print_stdout, missing_docs)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use kube_embedded_apiserver::storage::{Document, MemoryStorage, Storage, TypeHead};
use kube_embedded_apiserver::watch_cache::{
    CacheOptions, ListRequest, Resource, RevisionMatch, RevisionOption, WatchCache, WatchItem, WatchRequest,
};
use serde_json::{Value, json};

const OBJECTS: usize = 30_000;
const WATCHERS: usize = 1_000;
const WRITES: usize = 200;

struct Bench {
    storage: Arc<dyn Storage>,
    cache: Arc<WatchCache>,
    head: TypeHead,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let bench = Bench::new().await;
        bench.create().await;
        bench.list().await;
        bench.page().await;
        bench.fan_out().await;
        bench.selective_fan_out().await;
        bench.exact_lists().await;
        bench.idle_watchers().await;
        Bench::encode();
    });
}

fn pod(n: usize) -> Value {
    let container = |name: &str| {
        json!({"name": name, "image": format!("registry.example/{name}:1.2.{n}"), "imagePullPolicy": "IfNotPresent",
            "env": (0..12).map(|i| json!({"name": format!("SETTING_{i}"), "value": format!("value-{i}-{n}")})).collect::<Vec<_>>(),
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/config"}]})
    };
    json!({
        "metadata": {"name": format!("pod-{n:06}"), "namespace": format!("ns-{:02}", n % 20),
            "uid": format!("00000000-0000-4000-8000-{n:012}"),
            "labels": {"app": format!("app-{}", n % 300), "tier": "backend", "pod-template-hash": format!("{:x}", n % 997)}},
        "spec": {"nodeName": format!("node-{}", n % 500), "containers": [container("main"), container("sidecar")]},
        "status": {"phase": "Running", "podIP": format!("10.0.{}.{}", n / 250 % 250, n % 250)},
    })
}

fn document(n: usize, version: usize) -> Document {
    let mut pod = pod(n);
    pod["metadata"]["annotations"] = json!({"version": version.to_string()});
    let node = format!("node-{}", n % 500);
    Document::encode(&pod, [("spec.nodeName", node.as_str()), ("status.phase", "Running")])
        .expect("an object")
}

fn key(n: usize) -> String {
    format!("/pods/ns-{:02}/pod-{n:06}", n % 20)
}

/// Resident memory of this process in bytes; zero where not available.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or(0);
    pages * 4096
}

/// The CPU time of this thread, or the time of day where not available.
fn clock() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let run = stat.split(' ').next().and_then(|text| text.parse().ok()).map(Duration::from_nanos);
    run.unwrap_or_else(|| SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

fn since(start: Duration) -> Duration {
    clock().saturating_sub(start)
}

fn report(what: &str, total: Duration, count: usize) {
    println!("{what:<52} {:>10.1?} in all {:>10.2?} each", total, total / count.max(1) as u32);
}

impl Bench {
    async fn new() -> Self {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let resource = Resource { prefix: "/pods/".to_owned(), namespaced: true, cached: true };
        let cache = WatchCache::start(Arc::clone(&storage), resource, CacheOptions::default())
            .await
            .expect("a cache");
        Self { storage, cache: Arc::new(cache), head: TypeHead::new("v1", "Pod") }
    }

    async fn create(&self) {
        let before = resident();
        let documents: Vec<_> = (0..OBJECTS).map(|n| document(n, 0)).collect();
        let own = documents.iter().map(Document::encoded_len).sum::<usize>() / OBJECTS;
        let start = clock();
        for (n, document) in documents.into_iter().enumerate() {
            self.storage.create(&key(n), document).await.expect("created");
        }
        report(&format!("create {OBJECTS} objects, store and cache"), since(start), OBJECTS);
        let each = (resident() - before) / OBJECTS;
        println!(
            "{:<52} {each} bytes resident each, of which {own} are its JSON",
            "memory of a stored object"
        );
    }

    async fn list(&self) {
        for revision in [RevisionOption::Unset, RevisionOption::Any] {
            let start = clock();
            let response =
                self.cache.list(&ListRequest { revision, ..ListRequest::default() }).await.expect("a list");
            let read = since(start);
            let mut piece = Vec::with_capacity(80 * 1024);
            let mut bytes = 0;
            for stored in &response.items {
                stored.document.write(None, stored.revision, &mut piece);
                if piece.len() > 64 * 1024 {
                    bytes += piece.len();
                    piece.clear();
                }
            }
            bytes += piece.len();
            report(&format!("list {OBJECTS} objects, version {revision:?}"), read, OBJECTS);
            report(&format!("splice the {} MB of its body", bytes >> 20), since(start) - read, OBJECTS);
        }
        let selected =
            ListRequest { labels: "app=app-7".parse().expect("a selector"), ..ListRequest::default() };
        let start = clock();
        let found = self.cache.list(&selected).await.expect("a list").items.len();
        report(&format!("find {found} of {OBJECTS} by label"), since(start), OBJECTS);
    }

    async fn page(&self) {
        let start = clock();
        let (mut token, mut pages) = (None, 0);
        loop {
            let request = ListRequest { limit: 500, continue_token: token, ..ListRequest::default() };
            let response = self.cache.list(&request).await.expect("a page");
            pages += 1;
            token = response.continue_token;
            if token.is_none() {
                break;
            }
        }
        report(&format!("read {OBJECTS} objects in {pages} pages"), since(start), pages);
    }

    /// Writes while watchers, each in its own task, encode every event.
    async fn fan_out(&self) {
        self.watched("fan out to 1,000 watchers", |_| WatchRequest::default(), WATCHERS).await;
    }

    /// The same number of watchers, each of one node, like kubelets.
    async fn selective_fan_out(&self) {
        let of_node = |n: usize| {
            let fields = format!("spec.nodeName=node-{}", n % 500).parse().expect("a selector");
            WatchRequest { fields, ..WatchRequest::default() }
        };
        self.watched("the same, each watching one of 500 nodes", of_node, WATCHERS / 500).await;
    }

    async fn watched(&self, what: &str, request: impl Fn(usize) -> WatchRequest, expected: usize) {
        let (received, bytes) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = Vec::new();
        for n in 0..WATCHERS {
            let mut stream = self.cache.watch(&request(n)).await.expect("a watch");
            let (received, bytes, head) = (Arc::clone(&received), Arc::clone(&bytes), self.head.clone());
            tasks.push(tokio::spawn(async move {
                while let Some(WatchItem::Event(event)) = stream.next().await {
                    bytes.fetch_add(event.frame(&head).len(), Ordering::Relaxed);
                    received.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        tokio::task::yield_now().await;
        let documents: Vec<_> = (0..WRITES).map(|n| document(n, n + 1)).collect();
        let (mut writing, start) = (Duration::ZERO, clock());
        for (n, document) in documents.into_iter().enumerate() {
            let current = self.storage.get(&key(n)).await.expect("read").expect("there");
            let write = clock();
            self.storage.update(&key(n), current.revision, document).await.expect("written");
            writing += since(write);
            while received.load(Ordering::Relaxed) < (n + 1) * expected {
                tokio::task::yield_now().await;
            }
        }
        let total = since(start);
        report(&format!("{what}: until written"), writing, WRITES);
        report(&format!("{what}: until all have it"), total, WRITES);
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
        for task in tasks {
            let _ = task.await;
        }
    }

    async fn exact_lists(&self) {
        let current = self.storage.current_revision().await.expect("a revision");
        let start = clock();
        let count = 50;
        for n in 0..count {
            let request = ListRequest {
                revision: RevisionOption::At(current - 3 * n),
                revision_match: Some(RevisionMatch::Exact),
                limit: 500,
                ..ListRequest::default()
            };
            self.cache.list(&request).await.expect("a page");
        }
        report("a page of 500 at an older exact version", since(start), count as usize);
    }

    fn encode() {
        let values: Vec<_> = (0..1000).map(pod).collect();
        let start = clock();
        for (n, value) in values.iter().enumerate() {
            let node = format!("node-{n}");
            Document::encode(value, [("spec.nodeName", node.as_str())]).expect("an object");
        }
        report("encode an object from a JSON value", since(start), values.len());
    }

    async fn idle_watchers(&self) {
        let before = resident();
        let count = 20_000;
        let mut streams = Vec::with_capacity(count);
        let start = clock();
        for _ in 0..count {
            let mut stream = self.cache.watch(&WatchRequest::default()).await.expect("a watch");
            assert!(futures_util::FutureExt::now_or_never(stream.next()).is_none(), "nothing happens");
            streams.push(stream);
            tokio::task::yield_now().await;
        }
        report(&format!("open {count} watches"), since(start), count);
        println!("{:<52} {} bytes resident each", "memory of an idle watch", (resident() - before) / count);
    }
}
