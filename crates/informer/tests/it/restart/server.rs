//! Restarts against the embedded API server.

use super::Machine;
use crate::support::{Errors, pass, secs};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, PostParams};
use kube_embedded_apiserver::ApiServer;
use kube_informer::{InformerBuilder, InformerFactory, SharedInformer};
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

async fn create<K>(client: &kube::Client, name: &str)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + serde::de::DeserializeOwned,
{
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    Api::<K>::default_namespaced(client.clone()).create(&PostParams::default(), &object).await.unwrap();
}

/// An informer of one process, and how many lists it sent.
struct Process {
    factory: InformerFactory,
    maps: SharedInformer<ConfigMap>,
    errors: Errors,
    lists: Arc<AtomicUsize>,
    queries: Arc<AtomicUsize>,
}

async fn start(machine: &Machine, client: &kube::Client) -> Process {
    let (lists, queries, errors) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Errors::default());
    let (listed, queried, streamed, hook) =
        (Arc::clone(&lists), Arc::clone(&queries), Arc::clone(&lists), errors.clone());
    let configure = move |builder: InformerBuilder| {
        let (listed, queried, streamed) = (Arc::clone(&listed), Arc::clone(&queried), Arc::clone(&streamed));
        hook.hook(builder)
            .tweak_list(move |options| {
                let counter = if options.limit == Some(1) { &queried } else { &listed };
                counter.fetch_add(1, Relaxed);
            })
            .tweak_watch(move |options| {
                streamed.fetch_add(usize::from(options.send_initial_events.is_some()), Relaxed);
            })
    };
    let builder = InformerFactory::builder(client.clone()).configure(configure);
    let factory = builder.persist(machine.options()).unwrap().build();
    let maps = factory.of::<ConfigMap>();
    factory.start();
    factory.synced(secs(60)).await.unwrap();
    Process { factory, maps, errors, lists, queries }
}

/// Other kinds have moved the version on, and no event of this kind shows it: the bookmark does that the server sends two
/// seconds before a short watch ends.
#[tokio::test(start_paused = true)]
async fn an_early_bookmark_is_proof_enough() {
    let server = ApiServer::builder().in_process().await.unwrap();
    let client = server.client();
    let machine = Machine::new();
    create::<ConfigMap>(&client, "a").await;
    create::<ConfigMap>(&client, "b").await;
    let first = start(&machine, &client).await;
    assert_eq!((first.lists.load(Relaxed), first.queries.load(Relaxed)), (1, 0));
    pass(1).await;
    first.factory.shutdown().await;
    drop(first);

    create::<Secret>(&client, "other").await;
    let second = start(&machine, &client).await;
    assert_eq!(
        (second.lists.load(Relaxed), second.queries.load(Relaxed)),
        (0, 1),
        "{:?}",
        second.errors.take()
    );
    assert_eq!(second.maps.lister().len(), 2);
    pass(1).await;
    second.factory.shutdown().await;
    drop(second);

    let maps = Api::<ConfigMap>::default_namespaced(client.clone());
    maps.delete("b", &DeleteParams::default()).await.unwrap();
    create::<ConfigMap>(&client, "c").await;
    let third = start(&machine, &client).await;
    assert_eq!((third.lists.load(Relaxed), third.queries.load(Relaxed)), (0, 1), "{:?}", third.errors.take());
    let names: Vec<_> = third.maps.lister().list().iter().map(|map| map.name().to_owned()).collect();
    assert_eq!(names, ["a", "c"], "the newest object was deleted");
}
