//! One informer for each resource, however often it is requested.

use crate::support::{Recorder, pass, secs, settle};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Secret};
use kube::core::ApiResource;
use kube_informer::{
    FactoryBuilder, HandlerFuncs, IndexError, InformerFactory, InformerOptions, Kind, ListWatch, Scope,
    SharedInformer, Stop, Transform, WaitError, kind_of,
    testing::{FakeSource, Fault},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

/// A fake server: one collection for each kind, and its requests.
#[derive(Clone, Default)]
struct Server {
    sources: Arc<Mutex<BTreeMap<String, FakeSource>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// Resource, options, namespace.
type Asked = (String, InformerOptions, Option<String>);

impl Server {
    fn of(&self, kind: &Kind) -> FakeSource {
        let mut sources = self.sources.lock().unwrap();
        sources.entry(kind.to_string()).or_insert_with(|| FakeSource::new(kind.clone())).clone()
    }

    fn pods(&self) -> FakeSource {
        self.of(&kind_of::<Pod>())
    }

    fn factory(&self) -> FactoryBuilder {
        let server = self.clone();
        InformerFactory::from_sources(move |origin, options, namespace| -> Arc<dyn ListWatch> {
            let asked = (origin.kind().to_string(), options.clone(), namespace.map(str::to_owned));
            server.asked.lock().unwrap().push(asked);
            server.of(origin.kind()).source(namespace)
        })
    }
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({"metadata": {"namespace": namespace, "name": name, "managedFields": []}, "spec": {"nodeName": "n1"}})
}

#[derive(Deserialize)]
struct Slim {
    spec: SlimSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SlimSpec {
    node_name: String,
}

#[tokio::test(start_paused = true)]
async fn every_handle_of_a_resource_is_the_same_watch_and_store() {
    let server = Server::default();
    server.pods().put(pod("ns", "a"));
    let factory = server.factory().build();
    let typed = factory.of::<Pod>();
    let slim = factory.of_as::<Pod, Slim>();
    let dynamic = factory.dynamic(&ApiResource::erase::<Pod>(&()));
    let chained = factory.core().v1().pods();
    let recorder = Recorder::default();
    dynamic.add_handler(recorder.clone());
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    settle().await;
    assert_eq!((factory.informers().len(), server.pods().requests().len()), (1, 1));
    let key = "ns/a".parse().unwrap();
    assert_eq!(slim.lister().get(&key).unwrap().decode().unwrap().spec.node_name, "n1");
    let typed = typed.lister().get(&key).unwrap();
    assert!(typed.is_identical(&chained.lister().get(&key).unwrap()));
    assert!(typed.is_identical(&chained.informer().lister().get(&key).unwrap()));
    assert_eq!(recorder.take(), ["+a@101!"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn what_differs_is_not_shared() {
    let server = Server::default();
    let factory = server.factory().build();
    factory.of::<Pod>();
    factory.of::<Node>();
    factory.metadata::<Pod>();
    let with = |change: fn(&mut InformerOptions)| {
        factory.of_with::<Pod, Pod>(|mut options| {
            change(&mut options);
            options
        });
    };
    with(|options| options.scope = Scope::namespace("ns").unwrap());
    with(|options| options.label_selector = "app=x".parse().unwrap());
    with(|options| options.field_selector = "spec.nodeName=n1".parse().unwrap());
    with(|options| options.transform = Transform::drop_managed_fields());
    assert_eq!(factory.informers().len(), 7);
    with(|options| options.transform = Transform::drop_managed_fields());
    with(|options| options.scope = Scope::namespace("ns").unwrap());
    assert_eq!(factory.informers().len(), 7, "the same once more");
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.iter().filter(|(_, options, _)| options.metadata_only).count(), 1);
    assert_eq!(asked.iter().filter(|(_, options, _)| !options.label_selector.is_everything()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn defaults_are_for_everything_that_can_have_them() {
    let server = Server::default();
    server.pods().put(pod("ns", "mine"));
    server.pods().put(pod("other", "theirs"));
    server.of(&kind_of::<Node>()).put(json!({"metadata": {"name": "n1"}}));
    let factory = server
        .factory()
        .namespace("ns")
        .unwrap()
        .label_selector("app=x".parse().unwrap())
        .resync(secs(10))
        .transform(Transform::drop_managed_fields())
        .build();
    let (pods, nodes) = (factory.of::<Pod>(), factory.of::<Node>());
    let recorder = Recorder::default();
    pods.add_handler(recorder.clone());
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    settle().await;
    assert_eq!((pods.lister().len(), nodes.lister().len()), (1, 1), "a node is in no namespace");
    let content: Value = pods.lister().list().iter().next().unwrap().view().unwrap();
    assert!(content["metadata"].get("managedFields").is_none());
    recorder.take();
    pass(11).await;
    assert_eq!(recorder.take(), ["~mine@101>101"]);
    let asked = server.asked.lock().unwrap().clone();
    assert!(asked.iter().all(|(_, options, _)| options.label_selector.to_string() == "app=x"));
    let namespaces: Vec<_> = asked.iter().map(|(kind, _, ns)| (kind.as_str(), ns.as_deref())).collect();
    assert_eq!(namespaces, [("pods", Some("ns")), ("nodes", None)]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn start_starts_what_is_not_started() {
    let server = Server::default();
    let factory = server.factory().build();
    let pods = factory.of::<Pod>();
    factory.start();
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    let nodes = factory.of::<Node>();
    assert!(nodes.synced(secs(5)).await.is_err(), "asked for after the start: not started");
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    assert!(pods.is_synced() && nodes.is_synced());
    assert_eq!(server.pods().requests().len(), 1, "nothing is started twice");
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn those_that_are_not_synced_are_named() {
    let server = Server::default();
    let secrets = server.of(&kind_of::<Secret>());
    for _ in 0..50 {
        secrets.fail_watch(Fault::forbidden()).fail_list(Fault::forbidden());
    }
    let factory = server.factory().build();
    factory.of::<Pod>();
    factory.of::<Secret>();
    factory.start();
    let error = factory.synced(secs(30)).await.unwrap_err();
    assert_eq!(error.unsynced.len(), 1);
    let text = error.to_string();
    assert!(text.contains("secrets (denied") && text.contains("403"), "{text}");
    secrets.heal();
    factory.synced(secs(120)).await.unwrap();
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_nothing_runs_and_nothing_starts() {
    let server = Server::default();
    let factory = server.factory().build();
    let pods = factory.of::<Pod>();
    let recorder = Recorder::default();
    pods.add_handler(recorder.clone());
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    tokio::join!(factory.shutdown(), factory.shutdown_with(Stop::Drain), factory.shutdown());
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert_eq!((tasks, server.pods().open_watches()), (0, 0));
    server.pods().put(pod("ns", "late"));
    let nodes = factory.of::<Node>();
    factory.start();
    pass(10).await;
    assert!(pods.is_stopped() && recorder.calls().is_empty());
    assert!(server.of(&kind_of::<Node>()).requests().is_empty() && !nodes.is_synced());
}

#[tokio::test(start_paused = true)]
async fn one_that_was_stopped_is_replaced_and_the_others_go_on() {
    let server = Server::default();
    server.pods().put(pod("ns", "a"));
    let factory = server.factory().build();
    let (pods, nodes) = (factory.of::<Pod>(), factory.of::<Node>());
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    pods.stop(Stop::Drop).await;
    assert!(nodes.status().is_live());
    let again: SharedInformer<Pod> = factory.of();
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    assert_eq!((again.lister().len(), again.is_stopped(), pods.is_stopped()), (1, false, true));
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn add_update_and_delete_flow_within_namespace_and_selection() {
    let server = Server::default();
    let source = server.pods();
    let factory = server.factory().scope(Scope::namespaces(["x", "y"]).unwrap()).build();
    let recorder = Recorder::default();
    factory.dynamic(&ApiResource::erase::<Pod>(&())).add_handler(recorder.clone());
    factory.start();
    factory.synced(secs(5)).await.unwrap();
    source.put(pod("x", "a"));
    source.put(pod("z", "b"));
    source.put(pod("y", "c"));
    settle().await;
    source.put(pod("x", "a"));
    source.delete("y/c");
    source.delete("z/b");
    settle().await;
    let mut calls = recorder.take();
    calls.sort();
    assert_eq!(calls, ["+a@101", "+c@103", "-c@105", "~a@101>104"]);
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_of_a_factory_that_was_shut_down_never_starts() {
    let fake = FakeSource::new(kind_of::<ConfigMap>());
    let source = fake.clone();
    let factory = InformerFactory::from_sources(move |_, _, namespace| source.source(namespace)).build();
    factory.shutdown().await;
    let late = factory.of::<ConfigMap>();
    assert!(late.is_stopped());
    late.start();
    factory.start();
    let error = late.synced(secs(5)).await.unwrap_err();
    assert!(error.to_string().contains("stopped"), "{error}");
    let waited = late.wait_until(&"ns/a".parse().unwrap(), secs(5), |object| object.is_none()).await;
    assert!(matches!(waited, Err(WaitError::Stopped { .. })), "{waited:?}");
    assert!(matches!(late.index_field("data.value"), Err(IndexError::Stopped)));
    assert!(late.add_handler(HandlerFuncs::new()).synced().await.is_err());
    late.stop(Stop::Drain).await;
    assert_eq!((fake.requests().len(), late.status().word()), (0, "stopped"));
}

#[tokio::test(start_paused = true)]
async fn an_informer_names_its_selectors_and_knows_its_other_handles() {
    let factory = Server::default().factory().build();
    let select = |options: InformerOptions| {
        options
            .label_selector("app=cart".parse().unwrap())
            .field_selector("status.phase=Running".parse().unwrap())
    };
    let (all, some) = (factory.of::<Pod>(), factory.of_with::<Pod, Value>(select));
    assert!(all.label_selector().is_everything() && all.field_selector().is_everything());
    assert_eq!(some.label_selector().to_string(), "app=cart");
    assert_eq!(some.field_selector().to_string(), "status.phase=Running");
    assert!(all.is_same(&factory.of_as::<Pod, Value>()) && !all.is_same(&some));
}
