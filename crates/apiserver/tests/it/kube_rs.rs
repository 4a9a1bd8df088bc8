//! kube-rs, an independent client, against the server.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use kube_embedded_apiserver::{ApiServer, Faults};
use kube_runtime::{WatchStreamExt, watcher};
use serde_json::json;

type Known = Arc<Mutex<BTreeMap<String, String>>>;

fn map(name: &str, value: u64) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value.to_string()}}))
        .expect("a config map")
}

/// Watches config maps, and keeps their names and versions in `known`.
fn follow(client: Client, config: watcher::Config, known: &Known) -> tokio::task::JoinHandle<()> {
    let known = Arc::clone(known);
    tokio::spawn(async move {
        let mut fresh = BTreeMap::new();
        let mut events = watcher::watcher(Api::<ConfigMap>::all(client), config).default_backoff().boxed();
        while let Some(event) = events.next().await {
            let key = |o: &ConfigMap| format!("{}/{}", o.namespace().unwrap_or_default(), o.name_any());
            match event {
                Ok(watcher::Event::Init) => fresh.clear(),
                Ok(watcher::Event::InitApply(o)) => {
                    fresh.insert(key(&o), o.resource_version().unwrap_or_default());
                }
                Ok(watcher::Event::InitDone) => {
                    *known.lock().expect("unpoisoned") = std::mem::take(&mut fresh)
                }
                Ok(watcher::Event::Apply(o)) => {
                    known
                        .lock()
                        .expect("unpoisoned")
                        .insert(key(&o), o.resource_version().unwrap_or_default());
                }
                Ok(watcher::Event::Delete(o)) => {
                    known.lock().expect("unpoisoned").remove(&key(&o));
                }
                Err(_) => {} // the watcher retries
            }
        }
    })
}

async fn disturb(faults: &Faults, rng: &mut fastrand::Rng) {
    match rng.u32(0..200) {
        0..=3 => faults.cut_watches(None),
        4 => faults.compact().await.expect("compacted"),
        5 => {
            faults.compact().await.expect("compacted");
            faults.forget_window(Some("configmaps")).await.expect("forgotten");
        }
        _ => {}
    }
}

async fn write(api: &Api<ConfigMap>, rng: &mut fastrand::Rng, step: u64) {
    let name = format!("m{}", rng.u32(0..40));
    let result = match rng.u32(0..10) {
        0..=3 => api.create(&PostParams::default(), &map(&name, step)).await.map(drop),
        4..=5 => api.delete(&name, &DeleteParams::default()).await.map(drop),
        6 => api.replace(&name, &PostParams::default(), &map(&name, step)).await.map(drop),
        _ => {
            let patch = json!({"data": {"k": step.to_string()}});
            api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
    };
    match result {
        Ok(()) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(other) => panic!("step {step}: {other}"),
    }
}

async fn listed(client: &Client) -> BTreeMap<String, String> {
    let list = Api::<ConfigMap>::all(client.clone()).list(&ListParams::default()).await.expect("a list");
    let pair = |o: ConfigMap| {
        (
            format!("{}/{}", o.namespace().unwrap_or_default(), o.name_any()),
            o.resource_version().unwrap_or_default(),
        )
    };
    list.into_iter().map(pair).collect()
}

async fn agree(client: &Client, known: &Known, label: &str) {
    let want = listed(client).await;
    let caught_up = async {
        while *known.lock().expect("unpoisoned") != want {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    if tokio::time::timeout(Duration::from_secs(400), caught_up).await.is_err() {
        panic!("{label}: the watcher has {:?}, the list has {want:?}", known.lock().expect("unpoisoned"));
    }
}

async fn stay_in_step(client: Client, faults: Faults, seed: u64, writes: u64) {
    let (listing, streaming) = (Known::default(), Known::default());
    let tasks = [
        follow(client.clone(), watcher::Config::default(), &listing),
        follow(client.clone(), watcher::Config::default().streaming_lists(), &streaming),
    ];
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let mut rng = fastrand::Rng::with_seed(seed);
    for step in 0..writes {
        write(&api, &mut rng, step).await;
        disturb(&faults, &mut rng).await;
        if rng.u32(0..50) == 0 {
            tokio::time::sleep(Duration::from_millis(rng.u64(0..2000))).await;
        }
    }
    agree(&client, &listing, &format!("list and watch, seed {seed}")).await;
    agree(&client, &streaming, &format!("streaming list, seed {seed}")).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn watchers_stay_in_step_through_ten_thousand_writes() {
    let server = ApiServer::builder().seed(11).in_process().await.expect("the server starts");
    stay_in_step(server.client(), server.faults(), 11, 10_000).await;
}

#[tokio::test]
async fn objects_are_served_over_sockets() {
    let server = ApiServer::start().await.expect("the server starts");
    let client = server.client().expect("a client");
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pod =
        json!({"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let created = pods
        .create(&PostParams::default(), &serde_json::from_value(pod).expect("a pod"))
        .await
        .expect("created");
    assert!(created.name_any().starts_with("p-"));
    let evicted = pods.evict(&created.name_any(), &Default::default()).await;
    assert!(evicted.is_ok(), "{evicted:?}");
    assert_eq!(pods.get_opt(&created.name_any()).await.expect("a response"), None);
    let namespaces: Api<Namespace> = Api::all(client);
    let deleted = namespaces.delete("default", &DeleteParams::default()).await;
    assert!(matches!(deleted, Err(kube::Error::Api(status)) if status.code == 403));
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_objects() {
    let run = async || {
        let server = ApiServer::builder()
            .seed(3)
            .clock(|| std::time::UNIX_EPOCH)
            .in_process()
            .await
            .expect("the server starts");
        let api: Api<ConfigMap> = Api::namespaced(server.client(), "default");
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"generateName": "g-"}})).expect("a config map");
        api.create(&PostParams::default(), &map).await.expect("created")
    };
    let (one, two) = (run().await, run().await);
    assert_eq!(one, two);
    assert_eq!(one.metadata.creation_timestamp.map(|t| t.0.as_second()), Some(0));
}

#[tokio::test(start_paused = true)]
async fn deleting_a_namespace_deletes_its_objects() {
    let server = ApiServer::builder().seed(1).in_process().await.expect("the server starts");
    let client = server.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let team: Namespace = serde_json::from_value(json!({"metadata": {"name": "team"}})).expect("a namespace");
    namespaces.create(&PostParams::default(), &team).await.expect("created");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    let pods: Api<Pod> = Api::namespaced(client, "team");
    maps.create(&PostParams::default(), &map("plain", 1)).await.expect("created");
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    maps.create(&PostParams::default(), &serde_json::from_value(held).expect("a config map"))
        .await
        .expect("created");
    let running = json!({"metadata": {"name": "running"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(running).expect("a pod"))
        .await
        .expect("created");
    namespaces.delete("team", &DeleteParams::default()).await.expect("deleted");

    let left: Vec<String> =
        maps.list(&ListParams::default()).await.expect("a list").into_iter().map(|m| m.name_any()).collect();
    assert_eq!(left, ["held"]);
    assert_eq!(pods.list(&ListParams::default()).await.expect("a list").items.len(), 0);
    let phase = namespaces.get("team").await.expect("still there").status.and_then(|s| s.phase);
    assert_eq!(phase.as_deref(), Some("Terminating"));

    let free = json!({"metadata": {"finalizers": null}});
    maps.patch("held", &PatchParams::default(), &Patch::Merge(free)).await.expect("patched");
    assert!(namespaces.get_opt("team").await.expect("a response").is_none());
}
