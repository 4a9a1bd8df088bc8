//! kube-runtime's reflector as a contender: the same commands as `bench contender`.
//!
//! It has no indexes and no handlers. Its users scan the store and loop over the stream of the reflector, and so does
//! this program.

mod controller;
mod event_calls;
mod program;

use anyhow::{Context, bail};
use event_calls::{EventCalls, unix_nanos};
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Pod, Secret};
use kube::{
    Api, Client, Resource, ResourceExt,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    fmt::Debug,
    hash::Hash,
    hint::black_box,
    io::{BufRead, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

type Options = HashMap<String, String>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options: Options = words
        .chunks_exact(2)
        .map(|pair| (pair[0].trim_start_matches("--").to_owned(), pair[1].clone()))
        .collect();
    let server = options.get("server").context("--server")?;
    let mut config = match options.get("kubeconfig") {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file)?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        None => kube::Config::new(server.parse()?),
    };
    config.cluster_url = server.parse()?;
    let client = Client::try_from(config)?;
    match options.get("variant").map(String::as_str) {
        Some("controller") => return controller::run(client).await,
        Some("reflector") => return program::run(client).await,
        _ => {}
    }
    let tuned = options.get("variant").is_some_and(|variant| variant == "tuned");
    match options.get("kind").map_or("pods", String::as_str) {
        "pods" => run::<Pod>(namespaced(client, &options), (), tuned, Some(reads)).await,
        "configmaps" => run::<ConfigMap>(namespaced(client, &options), (), tuned, None).await,
        "secrets" => run::<Secret>(namespaced(client, &options), (), tuned, None).await,
        "events" => run::<Event>(namespaced(client, &options), (), tuned, None).await,
        "widgets" => {
            let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
            let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
            let api = match options.get("namespace") {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            run::<DynamicObject>(api, resource, tuned, None).await
        }
        other => bail!("unknown kind {other:?}"),
    }
}

fn namespaced<K>(client: Client, options: &Options) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    match options.get("namespace") {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    }
}

async fn run<K>(
    api: Api<K>,
    kind: K::DynamicType,
    tuned: bool,
    reads: Option<fn(&Store<K>) -> anyhow::Result<Value>>,
) -> anyhow::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync + 'static,
{
    let calls = Arc::new(EventCalls::default());
    let mut store: Option<Store<K>> = None;
    let mut other: Option<Store<K>> = None;
    let mut readers: Option<Arc<AtomicBool>> = None;
    let mut commands = commands();
    while let Some(line) = commands.recv().await {
        let words: Vec<&str> = line.split_whitespace().collect();
        let response = match words.as_slice() {
            ["start"] => {
                let start = Instant::now();
                let reader = follow(api.clone(), kind.clone(), tuned, Some(Arc::clone(&calls)));
                reader.wait_until_ready().await?;
                let objects = reader.len();
                calls.wait_for_count(objects as u64).await;
                store = Some(reader);
                json!({"objects": objects, "wall_s": start.elapsed().as_secs_f64()})
            }
            ["settle"] => {
                trim();
                json!({})
            }
            ["reset"] => calls.reset(),
            ["await", version] => calls.wait_for_version(version.parse()?).await,
            ["latency"] => calls.latency(),
            ["reads"] => match (&store, reads) {
                (Some(store), Some(reads)) => reads(store)?,
                _ => json!({"error": "only pods have reads"}),
            },
            ["decode-all"] => json!({"error": "all objects are stored decoded"}),
            ["other"] => {
                let reader = follow(api.clone(), kind.clone(), tuned, None);
                reader.wait_until_ready().await?;
                other = Some(reader);
                json!({})
            }
            ["readers", which, rate] => {
                let store = if *which == "other" { &other } else { &store };
                readers = Some(read(store.clone().context("not started")?, rate.parse()?));
                json!({})
            }
            ["stop-readers"] => {
                if let Some(stop) = readers.take() {
                    stop.store(true, Relaxed);
                }
                json!({})
            }
            ["stall"] => {
                json!({"error": "it has no handlers, and a subscriber of its shared stream that stalls stops the watch for all"})
            }
            _ => json!({"error": format!("unknown command {line:?}")}),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{response}")?;
        out.flush()?;
    }
    std::process::exit(0)
}

/// The lines of standard input.
fn commands() -> tokio::sync::mpsc::Receiver<String> {
    let (send, receive) = tokio::sync::mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// Starts a reflector as its documentation shows, and records its events.
///
/// Tuned is what its documentation recommends for large clusters: `modify` drops the managed fields before the store.
fn follow<K>(api: Api<K>, kind: K::DynamicType, tuned: bool, calls: Option<Arc<EventCalls>>) -> Store<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync + 'static,
{
    let writer = reflector::store::Writer::new(kind);
    let reader = writer.as_reader();
    tokio::spawn(async move {
        let events = watcher(api, watcher::Config::default())
            .default_backoff()
            .modify(move |object| {
                if tuned {
                    object.managed_fields_mut().clear();
                }
            })
            .reflect(writer);
        pin_mut!(events);
        while let Some(event) = events.next().await {
            let Some(calls) = &calls else { continue };
            match event {
                Ok(
                    watcher::Event::Apply(object)
                    | watcher::Event::InitApply(object)
                    | watcher::Event::Delete(object),
                ) => calls.record(object.meta(), unix_nanos()),
                Ok(_) => {}
                Err(error) => eprintln!("kube-rs: {error}"),
            }
        }
    });
    reader
}

/// Returns free memory to the system, for its best figure.
fn trim() {
    // SAFETY: has no preconditions.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Nanoseconds per call, in the best of ten rounds.
fn per_call(mut call: impl FnMut(usize)) -> f64 {
    let mut calls = 0;
    let mut round = || {
        let (start, before) = (Instant::now(), calls);
        while start.elapsed() < Duration::from_millis(70) {
            for _ in 0..16 {
                call(calls);
                calls += 1;
            }
        }
        start.elapsed().as_nanos() as f64 / (calls - before) as f64
    };
    (0..10).map(|_| round()).fold(f64::INFINITY, f64::min)
}

fn reads(store: &Store<Pod>) -> anyhow::Result<Value> {
    let all = store.state();
    let mut keys: Vec<ObjectRef<Pod>> = all.iter().map(|pod| ObjectRef::from_obj(&**pod)).collect();
    fastrand::Rng::with_seed(1).shuffle(&mut keys);
    let key = |i: usize| &keys[i % keys.len()];
    let node_of = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    let node = all.first().and_then(|pod| node_of(pod)).context("no pods")?;
    let app = all[0].labels()["app.kubernetes.io/name"].clone();
    let selector: kube::core::Selector =
        kube::core::Expression::Equal("app.kubernetes.io/name".into(), app).into();
    Ok(json!({
        "get_ns": per_call(|i| { black_box(store.get(key(i))); }),
        "get_labels_ns": per_call(|i| { black_box(store.get(key(i)).map(|pod| pod.labels().get("team").map(String::len))); }),
        "get_decoded_cold_us": per_call(|i| { black_box(store.get(key(i))); }) / 1e3,
        "view_cold_us": per_call(|i| { black_box(store.get(key(i)).map(|pod| read_fields(&pod))); }) / 1e3,
        "list_us": per_call(|_| { black_box(list_and_read(store)); }) / 1e3,
        "list_label_us": per_call(|_| {
            black_box(store.state().iter().filter_map(|pod| pod.labels().get("team")).map(String::len).sum::<usize>());
        }) / 1e3,
        "list_field_us": per_call(|_| { black_box(store.state().iter().map(|pod| read_fields(pod)).sum::<usize>()); }) / 1e3,
        "by_index_us": per_call(|_| {
            let of_node = |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_ref() == Some(&node));
            black_box(store.state_filter(of_node).len());
        }) / 1e3,
        "by_selector_us": per_call(|_| { black_box(store.state_filter_selector(&selector).len()); }) / 1e3,
        "objects": all.len(),
    }))
}

/// Reads three fields.
fn read_fields(pod: &Pod) -> usize {
    let status = pod.status.as_ref();
    let texts = [
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()),
        status.and_then(|status| status.phase.as_ref()),
        status.and_then(|status| status.pod_ip.as_ref()),
    ];
    texts.into_iter().flatten().map(String::len).sum()
}

/// Lists all objects and reads each.
fn list_and_read<K>(store: &Store<K>) -> usize
where
    K: Resource + Clone + 'static,
    K::DynamicType: Clone + Eq + Hash,
{
    let version = |object: &Arc<K>| object.meta().resource_version.as_ref().map_or(0, String::len);
    store.state().iter().map(version).sum()
}

/// Two threads that list all objects at a fixed total rate, until stopped.
fn read<K>(store: Store<K>, per_second: u32) -> Arc<AtomicBool>
where
    K: Resource + Clone + Send + Sync + 'static,
    K::DynamicType: Clone + Eq + Hash + Send + Sync + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let period = Duration::from_secs(2) / per_second.max(1);
    for _ in 0..2 {
        let (store, stop) = (store.clone(), Arc::clone(&stop));
        std::thread::spawn(move || {
            let mut next = Instant::now();
            while !stop.load(Relaxed) {
                black_box(list_and_read(&store));
                next += period;
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
            }
        });
    }
    stop
}
