//! CRDs outlive a server, and servers with the same store share them.

use std::sync::Arc;

use kube_embedded_apiserver::ApiServer;
use kube_embedded_apiserver::storage::{MemoryStorage, Storage};
use serde_json::{Value, json};

use super::*;

async fn server_on(storage: &Arc<dyn Storage>, seed: u64) -> Cluster {
    let builder = ApiServer::builder().seed(seed).storage(Arc::clone(storage));
    let server = builder.in_process().await.expect("the server starts");
    let client = server.client();
    Cluster { server, client }
}

#[tokio::test(start_paused = true)]
async fn a_server_serves_definitions_of_its_predecessor() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let first = server_on(&storage, 1).await;
    first.post(DEFINITIONS, plain()).await;
    let (_, created) = first.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    drop(first);
    let second = server_on(&storage, 2).await;
    let (code, seen) = second.get(&format!("{WIDGETS}/a")).await;
    assert_eq!((code, seen), (200, created));
    let (_, list) = second.get("/apis/example.com/v1").await;
    assert_eq!(list["resources"][0]["kind"], "Widget");
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_by_all_servers_of_its_store() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let (one, two) = (server_on(&storage, 1).await, server_on(&storage, 2).await);
    assert_eq!(two.get(WIDGETS).await.0, 404);
    one.post(DEFINITIONS, plain()).await;
    assert_eq!(two.post(WIDGETS, widget("a", json!({"size": 1}))).await.0, 201);
    let mut watch = two.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.next().await.expect("the state")["type"], "ADDED");
    one.delete(WIDGET, Value::Null).await;
    assert_eq!(watch.next().await.expect("a delete event")["type"], "DELETED");
    assert_eq!(watch.next().await, None);
    assert_eq!(two.get(WIDGETS).await.0, 404);
}

/// The same on a store that several processes can share.
#[cfg(feature = "etcd")]
#[tokio::test]
async fn definitions_on_etcd_are_served_by_all_servers() {
    let Some(etcd) = crate::etcd::shared().await else { return };
    let (one_store, two_store) = (etcd.store().await, etcd.store().await);
    let one = server_on(&(Arc::new(one_store) as Arc<dyn Storage>), 1).await;
    let two = server_on(&(Arc::new(two_store) as Arc<dyn Storage>), 2).await;
    assert_eq!(one.post(DEFINITIONS, plain()).await.0, 201);
    assert_eq!(
        one.post(WIDGETS, widget("a", json!({"size": 1}))).await.0,
        201,
        "immediately on the server that defined it"
    );
    // The other server receives the definition from its own watch; a read of definitions waits for it.
    assert_eq!(two.get(WIDGET).await.0, 200);
    let (_, list) = two.get(DEFINITIONS).await;
    assert_eq!(list["items"][0]["metadata"]["name"], "widgets.example.com");
    let mut watch = two.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.next().await.expect("the state")["object"]["metadata"]["name"], "a");
    assert_eq!(one.delete(WIDGET, Value::Null).await.0, 200);
    assert_eq!(one.get(WIDGETS).await.0, 404);
    assert_eq!(watch.next().await.expect("a delete event")["type"], "DELETED");
    assert_eq!(watch.next().await, None);
    assert_eq!(one.post(DEFINITIONS, plain()).await.0, 201);
    assert_eq!(one.get(WIDGETS).await.1["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_definition_is_completed_at_the_next_start() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let first = server_on(&storage, 1).await;
    first.post(DEFINITIONS, plain()).await;
    // The state after a server stopped between the create and setting the conditions.
    let undone = json!({"status": {"conditions": [], "acceptedNames": null}});
    let key = "/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
    let stored = storage.get(key).await.expect("readable").expect("there");
    let head = kube_embedded_apiserver::storage::TypeHead::new(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
    );
    let mut value = stored.to_value(&head).expect("an object");
    value["status"]["conditions"] = undone["status"]["conditions"].clone();
    let document = kube_embedded_apiserver::storage::Document::encode(&value, []).expect("a document");
    storage.update(key, stored.revision, document).await.expect("written");
    assert_eq!(first.get(WIDGETS).await.0, 404);
    let second = server_on(&storage, 2).await;
    assert_eq!(second.get(WIDGETS).await.0, 200);
    assert_eq!(first.get(WIDGETS).await.0, 200);
}
