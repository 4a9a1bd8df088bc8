//! Snapshots of all objects, in Rust and over HTTP.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": text}})
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_restore_undoes_creates_updates_and_deletes() {
    let c = Cluster::new().await;
    c.post(MAPS, map("changed", "1")).await;
    let (_, deleted) = c.post(MAPS, map("deleted", "1")).await;
    let mut held = map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let snapshot = c.server.snapshot().await.expect("a snapshot");

    c.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd()).await;
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert_eq!(c.post(widgets, widget).await.0, 201);
    let mut watch = c.watch(&format!("{widgets}?watch=1")).await;
    c.post(MAPS, map("new", "1")).await;
    c.post(MAPS, held).await;
    c.put(&format!("{MAPS}/changed"), map("changed", "2")).await;
    c.delete(&format!("{MAPS}/deleted"), Value::Null).await;
    c.post("/api/v1/namespaces", json!({"metadata": {"name": "more"}})).await;

    c.server.restore(&snapshot).await.expect("restored");
    let (_, list) = c.get(MAPS).await;
    let names: Vec<&str> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .filter_map(|i| i["metadata"]["name"].as_str())
        .collect();
    assert_eq!(names, ["changed", "deleted"], "finalizers hold nothing");
    assert_eq!(list["items"][0]["data"]["k"], "1");
    assert_eq!(list["items"][1]["metadata"]["uid"], deleted["metadata"]["uid"]);
    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok());
    assert!(version(&list["items"][1]) > version(&deleted), "every write has a new version");
    assert_eq!(c.get("/api/v1/namespaces/more").await.0, 404);
    assert_eq!(c.get(widgets).await.0, 404);
    let mut events = Vec::new();
    while let Some(event) = watch.next().await {
        events.push(event["type"].as_str().unwrap_or_default().to_owned());
    }
    assert_eq!(events.last().map(String::as_str), Some("DELETED"), "{events:?}");
    let again = c.server.snapshot().await.expect("a snapshot");
    assert_eq!((again.len(), again.is_empty()), (snapshot.len(), false));
}

#[tokio::test(start_paused = true)]
async fn restored_dependents_keep_their_owners() {
    let server = ApiServer::builder().garbage_collection(true).seed(5).in_process().await.expect("it starts");
    let c = Cluster { client: server.client(), server };
    // In key order the dependent comes before its owner.
    let (_, owner) = c.post(MAPS, map("owner", "1")).await;
    let mut dependent = map("dependent", "1");
    dependent["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}]);
    c.post(MAPS, dependent).await;
    let snapshot = c.server.snapshot().await.expect("a snapshot");
    c.delete(&format!("{MAPS}/owner"), Value::Null).await;
    assert_eq!(c.get(&format!("{MAPS}/dependent")).await.0, 404, "collected");
    c.server.restore(&snapshot).await.expect("restored");
    assert_eq!(c.get(&format!("{MAPS}/dependent")).await.0, 200);
    assert_eq!(c.get(&format!("{MAPS}/owner")).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn named_snapshots_over_http() {
    let server = ApiServer::builder().fault_endpoints(true).in_process().await.expect("it starts");
    let c = Cluster { client: server.client(), server };
    assert_eq!(c.get("/snapshots").await, (200, json!({"snapshots": ["start"]})));
    c.post(MAPS, map("a", "1")).await;
    assert_eq!(c.post("/snapshots/with-a", Value::Null).await.1["snapshots"], json!(["start", "with-a"]));
    assert_eq!(c.post("/snapshots/start/restore", Value::Null).await.0, 200);
    assert_eq!(c.get(&format!("{MAPS}/a")).await.0, 404);
    assert_eq!(c.post("/snapshots/with-a/restore", Value::Null).await.0, 200);
    assert_eq!(c.get(&format!("{MAPS}/a")).await.0, 200);
    assert_eq!(c.delete("/snapshots/with-a", Value::Null).await.0, 200);
    let (code, error) = c.post("/snapshots/with-a/restore", Value::Null).await;
    assert_eq!(code, 400);
    assert!(error["message"].as_str().is_some_and(|m| m.contains("no snapshot \"with-a\"")), "{error}");
    assert_eq!(c.put("/snapshots/x", Value::Null).await.0, 405);
    let closed = Cluster::new().await;
    assert_eq!(closed.get("/snapshots").await.0, 404, "off by default");
}
