//! Garbage collection and pod deletion without a controller or a kubelet, under a paused clock.

use futures_util::{FutureExt, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{
    Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy, WatchEvent,
    WatchParams,
};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use kube_embedded_apiserver::{ApiServer, LocalServer};
use serde_json::{Value, json};

async fn server(garbage_collection: bool, finalize_pods: bool) -> LocalServer {
    let builder =
        ApiServer::builder().seed(3).garbage_collection(garbage_collection).finalize_pods(finalize_pods);
    builder.in_process().await.expect("the server starts")
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

/// Creates a config map with these owners and this `blockOwnerDeletion`.
async fn make(client: &Client, name: &str, owners: &[&ConfigMap], block: bool) -> ConfigMap {
    let owner = |owner: &&ConfigMap| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid().unwrap(), "blockOwnerDeletion": block});
    let owners: Vec<Value> = owners.iter().map(owner).collect();
    let map = json!({"metadata": {"name": name, "ownerReferences": owners}});
    let map: ConfigMap = serde_json::from_value(map).unwrap();
    maps(client).create(&PostParams::default(), &map).await.expect("stored")
}

/// `a` owns `b` and `c`, `b` owns `d`.
async fn family(client: &Client) -> ConfigMap {
    let a = make(client, "a", &[], true).await;
    let b = make(client, "b", &[&a], true).await;
    make(client, "c", &[&a], true).await;
    make(client, "d", &[&b], true).await;
    a
}

async fn names(client: &Client) -> Vec<String> {
    maps(client).list(&Default::default()).await.expect("a list").iter().map(ResourceExt::name_any).collect()
}

fn policy(policy: PropagationPolicy) -> DeleteParams {
    DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() }
}

/// The events of config maps since a version: sign and name.
async fn events_since(client: &Client, since: &str) -> Vec<String> {
    let stream = maps(client).watch(&WatchParams::default(), since).await.expect("a watch");
    let mut stream = Box::pin(stream.boxed());
    let mut events = Vec::new();
    while let Some(Some(event)) =
        tokio::task::unconstrained(stream.try_next()).now_or_never().transpose().expect("events")
    {
        events.push(match event {
            WatchEvent::Added(map) => format!("+{}", map.name_any()),
            WatchEvent::Modified(map) => format!("~{}", map.name_any()),
            WatchEvent::Deleted(map) => format!("-{}", map.name_any()),
            other => format!("{other:?}"),
        });
    }
    events
}

async fn version(client: &Client) -> String {
    maps(client)
        .list(&Default::default())
        .await
        .expect("a list")
        .metadata
        .resource_version
        .expect("a version")
}

#[tokio::test(start_paused = true)]
async fn background_deletion_deletes_dependents_after_the_owner() {
    let server = server(true, false).await;
    let client = server.client();
    family(&client).await;
    let since = version(&client).await;
    maps(&client).delete("a", &policy(PropagationPolicy::Background)).await.expect("deleted");
    assert_eq!(names(&client).await, Vec::<String>::new());
    assert_eq!(events_since(&client, &since).await, ["-a", "-b", "-c", "-d"]);
}

#[tokio::test(start_paused = true)]
async fn foreground_deletion_deletes_dependents_first() {
    let server = server(true, false).await;
    let client = server.client();
    family(&client).await;
    let since = version(&client).await;
    let response = maps(&client).delete("a", &policy(PropagationPolicy::Foreground)).await.expect("deleted");
    let marked = response.left().expect("an object with a finalizer");
    assert_eq!(marked.finalizers(), ["foregroundDeletion"]);
    assert_eq!(names(&client).await, Vec::<String>::new());
    let events = events_since(&client, &since).await;
    let at = |event: &str| {
        events.iter().position(|s| s == event).unwrap_or_else(|| panic!("{event} in {events:?}"))
    };
    assert!(
        at("~a") < at("-d") && at("-d") < at("-b") && at("-b") < at("-a") && at("-c") < at("-a"),
        "{events:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn orphaned_dependents_lose_the_owner_reference() {
    let server = server(true, false).await;
    let client = server.client();
    family(&client).await;
    maps(&client).delete("a", &policy(PropagationPolicy::Orphan)).await.expect("deleted");
    assert_eq!(names(&client).await, ["b", "c", "d"]);
    assert!(maps(&client).get("b").await.expect("there").owner_references().is_empty());
    assert_eq!(
        maps(&client).get("d").await.expect("there").owner_references().len(),
        1,
        "only direct dependents are orphaned"
    );
}

#[tokio::test(start_paused = true)]
async fn a_dependent_needs_one_owner_and_loses_references_to_deleted_ones() {
    let server = server(true, false).await;
    let client = server.client();
    let (a, b) = (make(&client, "a", &[], false).await, make(&client, "b", &[], false).await);
    make(&client, "child", &[&a, &b], false).await;
    maps(&client).delete("a", &DeleteParams::default()).await.expect("deleted");
    let child = maps(&client).get("child").await.expect("there");
    assert_eq!(child.owner_references().iter().map(|o| o.name.as_str()).collect::<Vec<_>>(), ["b"]);
    maps(&client).delete("b", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(names(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_owner_does_not_exist_is_deleted() {
    let server = server(true, false).await;
    let client = server.client();
    let ghost: ConfigMap = serde_json::from_value(
        json!({"metadata": {"name": "ghost", "uid": "4be1b2a2-1c1e-4d6e-8a0e-0f6f6b1f0000"}}),
    )
    .unwrap();
    make(&client, "child", &[&ghost], false).await;
    let unknown = json!({"metadata": {"name": "other", "ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "4be1b2a2-1c1e-4d6e-8a0e-0f6f6b1f0001"}]}});
    maps(&client)
        .create(&PostParams::default(), &serde_json::from_value(unknown).unwrap())
        .await
        .expect("stored");
    assert_eq!(names(&client).await, ["other"], "an owner of an unknown kind may exist");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_a_dependent_blocks_foreground_deletion() {
    let server = server(true, false).await;
    let client = server.client();
    family(&client).await;
    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    maps(&client).patch("d", &PatchParams::default(), &Patch::Merge(&hold)).await.expect("held");
    maps(&client).delete("a", &policy(PropagationPolicy::Foreground)).await.expect("deleted");
    assert_eq!(names(&client).await, ["a", "b", "d"], "the others wait for d");
    let free = json!({"metadata": {"finalizers": []}});
    maps(&client).patch("d", &PatchParams::default(), &Patch::Merge(&free)).await.expect("released");
    assert_eq!(names(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn objects_that_own_each_other_can_be_deleted() {
    let server = server(true, false).await;
    let client = server.client();
    let a = make(&client, "a", &[], true).await;
    let b = make(&client, "b", &[&a], true).await;
    let cycle = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": b.uid(), "blockOwnerDeletion": true}]}});
    maps(&client).patch("a", &PatchParams::default(), &Patch::Merge(&cycle)).await.expect("a cycle");
    maps(&client).delete("a", &policy(PropagationPolicy::Foreground)).await.expect("deleted");
    assert_eq!(names(&client).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn jobs_orphan_their_pods_by_default() {
    let server = server(true, false).await;
    let client = server.client();
    let jobs: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("batch", "v1", "Job")),
    );
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template}});
    let job =
        jobs.create(&PostParams::default(), &serde_json::from_value(job).unwrap()).await.expect("stored");
    let owner = json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": job.uid()}]);
    let map = json!({"metadata": {"name": "m", "ownerReferences": owner}});
    maps(&client)
        .create(&PostParams::default(), &serde_json::from_value(map).unwrap())
        .await
        .expect("stored");
    jobs.delete("j", &DeleteParams::default()).await.expect("deleted");
    assert!(jobs.get_opt("j").await.expect("read").is_none());
    assert!(maps(&client).get("m").await.expect("it stays").owner_references().is_empty());
}

async fn post(client: &Client, path: &str, body: Value) -> Value {
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(&body).unwrap()).unwrap();
    client.request(request).await.expect("stored")
}

async fn delete(client: &Client, path: &str) {
    let request = http::Request::delete(path).body(Vec::new()).unwrap();
    client.request::<Value>(request).await.expect("deleted");
}

#[tokio::test(start_paused = true)]
async fn dependents_of_custom_resources_are_deleted_with_them_and_with_their_crd() {
    let server = server(true, false).await;
    let client = server.client();
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    post(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    for name in ["one", "two"] {
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
        let widget = post(&client, "/apis/example.com/v1/namespaces/default/widgets", widget).await;
        let owner = json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": widget["metadata"]["uid"]}]);
        let map = json!({"metadata": {"name": format!("of-{name}"), "ownerReferences": owner}});
        post(&client, "/api/v1/namespaces/default/configmaps", map).await;
    }
    delete(&client, "/apis/example.com/v1/namespaces/default/widgets/one").await;
    assert_eq!(names(&client).await, ["of-two"]);
    delete(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com").await;
    assert_eq!(names(&client).await, Vec::<String>::new(), "although the kind is no longer served");
}

fn pod(name: &str) -> Pod {
    let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    serde_json::from_value(pod).unwrap()
}

#[tokio::test(start_paused = true)]
async fn deleted_pods_are_removed_without_a_kubelet() {
    let server = server(false, true).await;
    let pods: Api<Pod> = Api::default_namespaced(server.client());
    for name in ["a", "b", "c"] {
        pods.create(&PostParams::default(), &pod(name)).await.expect("stored");
    }
    let response = pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert_eq!(response.left().expect("a pod").metadata.deletion_grace_period_seconds, Some(30), "unchanged");
    assert!(pods.get_opt("a").await.expect("read").is_none());

    let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    pods.patch("b", &PatchParams::default(), &Patch::Merge(&hold)).await.expect("held");
    pods.delete("b", &DeleteParams::default()).await.expect("deleted");
    assert!(pods.get("b").await.expect("held").metadata.deletion_timestamp.is_some());
    pods.patch("b", &PatchParams::default(), &Patch::Merge(&json!({"metadata": {"finalizers": []}})))
        .await
        .expect("released");
    assert!(pods.get_opt("b").await.expect("read").is_none());

    pods.delete_collection(&DeleteParams::default(), &Default::default()).await.expect("deleted");
    assert!(pods.list(&Default::default()).await.expect("a list").items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_the_options_nothing_is_collected() {
    let server = server(false, false).await;
    let client = server.client();
    family(&client).await;
    maps(&client).delete("a", &policy(PropagationPolicy::Background)).await.expect("deleted");
    assert_eq!(names(&client).await, ["b", "c", "d"]);
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod("a")).await.expect("stored");
    pods.delete("a", &DeleteParams::default()).await.expect("deleted");
    assert!(pods.get("a").await.expect("there").metadata.deletion_timestamp.is_some());
}

#[tokio::test]
async fn pending_garbage_collection_continues_at_the_start() {
    let storage = std::sync::Arc::new(kube_embedded_apiserver::storage::MemoryStorage::new());
    let first = ApiServer::builder().storage(storage.clone()).in_process().await.expect("the server starts");
    let client = first.client();
    family(&client).await;
    maps(&client).delete("a", &policy(PropagationPolicy::Foreground)).await.expect("deleted");
    maps(&client).delete("b", &policy(PropagationPolicy::Background)).await.expect("deleted");
    assert_eq!(names(&client).await, ["a", "c", "d"]);
    let second = ApiServer::builder()
        .storage(storage)
        .garbage_collection(true)
        .in_process()
        .await
        .expect("the server starts");
    assert_eq!(names(&second.client()).await, Vec::<String>::new());
}

/// A server collects the dependents of objects that another server deleted.
#[tokio::test]
async fn deletes_by_other_servers_are_collected() {
    let storage = std::sync::Arc::new(kube_embedded_apiserver::storage::MemoryStorage::new());
    let writer = ApiServer::builder().storage(storage.clone()).in_process().await.expect("the server starts");
    let builder = ApiServer::builder().storage(storage).garbage_collection(true);
    let _collector = builder.start().await.expect("the server starts");
    let client = writer.client();
    family(&client).await;
    maps(&client).delete("a", &DeleteParams::default()).await.expect("deleted");
    let collected = async {
        while !names(&client).await.is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), collected).await.expect("collected");
}

#[tokio::test(start_paused = true)]
async fn a_new_server_finishes_the_termination_of_namespaces() {
    let storage = std::sync::Arc::new(kube_embedded_apiserver::storage::MemoryStorage::new());
    let first = ApiServer::builder().storage(storage.clone()).empty_namespaces(false);
    let first = first.in_process().await.expect("the server starts").client();
    let namespaces: Api<Namespace> = Api::all(first.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.expect("stored");
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m"}})).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(first, "n");
    maps.create(&PostParams::default(), &map).await.expect("stored");
    namespaces.delete("n", &DeleteParams::default()).await.expect("marked");
    assert!(maps.get_opt("m").await.expect("a response").is_some(), "nothing empties the namespace");

    let second = ApiServer::builder().storage(storage).in_process().await.expect("the server starts");
    let namespaces: Api<Namespace> = Api::all(second.client());
    assert!(namespaces.get_opt("n").await.expect("a response").is_none());
    let maps: Api<ConfigMap> = Api::namespaced(second.client(), "n");
    assert!(maps.get_opt("m").await.expect("a response").is_none());
}
