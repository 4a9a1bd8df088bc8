//! Servers as processes over one etcd, one of them killed and started again.

use crate::process::{Running, program};
use futures_util::{StreamExt, TryStreamExt};
use harness::{ETCD_TIMEOUT, Etcd};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams},
};
use kube_embedded_apiserver::storage::{EtcdOptions, EtcdStorage, Range, Storage};
use kube_informer::{InformerFactory, SharedInformer};
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// Names and versions.
type State = BTreeMap<String, u64>;

const WRITERS: u64 = 4;
const NAMES: u64 = 30;

fn serve(etcd: &Etcd, port: u16) -> Running {
    let (storage, listen) = (format!("etcd={}", etcd.url), format!("127.0.0.1:{port}"));
    let mut serving = Running::start(program(&["serve", "--storage", &storage, "--listen", &listen]));
    let line = serving.out("serving at ");
    assert!(line.contains("objects in etcd"), "{line}");
    serving
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn config(port: u16) -> kube::Config {
    let mut config = kube::Config::new(format!("http://127.0.0.1:{port}").parse().unwrap());
    config.default_namespace = "default".to_owned();
    config
}

fn api(port: u16) -> Api<ConfigMap> {
    Api::default_namespaced(Client::try_from(config(port)).unwrap())
}

/// Writes random objects until `stop` is set. Ignores errors of the server and conflicts.
async fn write(
    api: Api<ConfigMap>,
    seed: u64,
    writes: Arc<AtomicUsize>,
    mut stop: tokio::sync::watch::Receiver<bool>,
) {
    let mut rng = fastrand::Rng::with_seed(seed);
    while !*stop.borrow_and_update() {
        let name = format!("m{}", rng.u64(..NAMES));
        let data = BTreeMap::from([("n".to_owned(), rng.u32(..).to_string())]);
        let written = match api.get_opt(&name).await {
            Ok(Some(_)) if rng.u8(..4) == 0 => api.delete(&name, &DeleteParams::default()).await.is_ok(),
            Ok(Some(mut map)) => {
                map.data = Some(data);
                api.replace(&name, &PostParams::default(), &map).await.is_ok()
            }
            Ok(None) => {
                let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
                let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
                api.create(&PostParams::default(), &map).await.is_ok()
            }
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(50)).await;
                false
            }
        };
        writes.fetch_add(usize::from(written), Ordering::Relaxed);
    }
}

/// The simplest watcher: lists, watches from there, and lists again after any error.
async fn follow(api: Api<ConfigMap>, state: Arc<Mutex<State>>) {
    loop {
        if follow_once(&api, &state).await.is_err() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn follow_once(api: &Api<ConfigMap>, state: &Mutex<State>) -> kube::Result<()> {
    let list = api.list(&ListParams::default()).await?;
    *state.lock().unwrap() = list.items.iter().map(|map| (map.name_any(), version(map))).collect();
    let mut position = list.metadata.resource_version.unwrap_or_default();
    loop {
        let mut events = api.watch(&WatchParams::default(), &position).await?.boxed();
        while let Some(event) = events.try_next().await? {
            match event {
                WatchEvent::Added(map) | WatchEvent::Modified(map) => {
                    position = map.resource_version().unwrap();
                    let old = state.lock().unwrap().insert(map.name_any(), version(&map));
                    assert!(old.is_none_or(|old| old < version(&map)), "an older version came later");
                }
                WatchEvent::Deleted(map) => {
                    position = map.resource_version().unwrap();
                    assert!(
                        state.lock().unwrap().remove(&map.name_any()).is_some(),
                        "deleted an unknown object"
                    );
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(_) => return Ok(()),
            }
        }
    }
}

fn version(map: &ConfigMap) -> u64 {
    map.resource_version().unwrap().parse().unwrap()
}

fn cached(informer: &SharedInformer<ConfigMap>) -> State {
    let own = informer.lister().in_namespace("default").into_iter();
    own.map(|map| (map.key().name().to_owned(), map.resource_version().to_string().parse().unwrap()))
        .collect()
}

/// The objects in etcd.
async fn truth(storage: &EtcdStorage) -> State {
    let range = Range { prefix: "/configmaps/default/".to_owned(), ..Range::default() };
    let page = storage.list(&range).await.unwrap();
    page.items.iter().map(|stored| (stored.name().to_owned(), stored.revision)).collect()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ETCD_TIMEOUT, looking).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_ends_equal_to_etcd() {
    let Some(mut etcd) = Etcd::start() else { return };
    let ports = [free_port(), free_port()];
    let mut killed = serve(&etcd, ports[0]);
    let _other = serve(&etcd, ports[1]);

    let mut watchers = Vec::new();
    let mut informers = Vec::new();
    let mut factories = Vec::new();
    for port in ports {
        for _ in 0..2 {
            let state = Arc::new(Mutex::new(State::new()));
            tokio::spawn(follow(api(port), Arc::clone(&state)));
            watchers.push(state);
        }
        let factory = InformerFactory::from_config(config(port)).unwrap();
        informers.push(factory.of::<ConfigMap>());
        factory.start();
        factories.push(factory);
    }
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let writes = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| tokio::spawn(write(api(ports[n as usize % 2]), n, Arc::clone(&writes), stopped.clone())))
        .collect();
    let made = async |more: usize| {
        let enough = writes.load(Ordering::Relaxed) + more;
        until("writes go on", async || writes.load(Ordering::Relaxed) >= enough).await;
    };

    for _ in 0..2 {
        made(150).await;
        drop(killed); // as kill -9 does
        made(100).await;
        killed = serve(&etcd, ports[0]);
    }
    made(100).await;
    etcd.restart();
    made(100).await;
    stop.send_replace(true);
    for writer in writers {
        writer.await.unwrap();
    }

    let storage = EtcdStorage::connect(EtcdOptions::new([etcd.url.clone()])).await.unwrap();
    let truth = truth(&storage).await;
    assert!(!truth.is_empty());
    for (number, watcher) in watchers.iter().enumerate() {
        until(&format!("watcher {number} is equal to etcd"), async || *watcher.lock().unwrap() == truth)
            .await;
    }
    for (number, informer) in informers.iter().enumerate() {
        until(&format!("informer {number} is equal to etcd"), async || cached(informer) == truth).await;
    }
    for factory in factories {
        factory.shutdown().await;
    }
}
