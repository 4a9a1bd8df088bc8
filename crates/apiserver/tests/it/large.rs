//! Requests that are small and make much of themselves: many errors, many defaults, large objects.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Map, Value, json};

use crate::cluster::Cluster;
use crate::golden::exchange::{read, send};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

/// `widgets.example.com` with these properties in its objects.
fn definition(properties: Value) -> Value {
    json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}}}]}})
}

async fn cluster(properties: Value) -> Cluster {
    let cluster = Cluster::new().await;
    let (code, made) = cluster.post(DEFINITIONS, definition(properties)).await;
    assert_eq!(code, 201, "{made}");
    cluster
}

fn widget(name: &str, field: &str, value: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, field: value})
}

fn assert_too_large((code, status): (u16, Value)) {
    assert_eq!(code, 500, "{:.200}", status.to_string());
    assert_eq!(
        (status["reason"].as_str(), status["message"].as_str()),
        (None, Some("etcdserver: request is too large"))
    );
}

#[tokio::test(start_paused = true)]
async fn defaults_make_no_object_that_cannot_be_stored() {
    let defaults: Map<String, Value> =
        (0..100).map(|n| (format!("f{n}"), json!({"type": "string", "default": "x".repeat(200)}))).collect();
    let item = json!({"type": "object", "properties": defaults});
    let c = cluster(json!({"items": {"type": "array", "items": item}})).await;
    // 20 GB with all defaults.
    assert_too_large(c.post(WIDGETS, widget("a", "items", json!(vec![json!({}); 1_000_000]))).await);
    let (code, made) = c.post(WIDGETS, widget("a", "items", json!([{}, {}]))).await;
    assert_eq!((code, made["items"][1]["f99"].as_str().map(str::len)), (201, Some(200)));
    let many = json!({"items": vec![json!({}); 1_000_000]});
    assert_too_large(c.patch(&format!("{WIDGETS}/a"), crate::cluster::MERGE, many).await);
}

#[tokio::test(start_paused = true)]
async fn defaults_of_built_in_kinds_stop_as_well() {
    let c = Cluster::new().await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": vec![json!({}); 900_000]}});
    assert_too_large(c.post(PODS, pod).await);
}

#[tokio::test(start_paused = true)]
async fn an_object_has_a_limit() {
    let c = cluster(json!({"text": {"type": "string"}, "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}})).await;
    assert_too_large(c.post(WIDGETS, widget("a", "text", "x".repeat(1_600_000).into())).await);
    let (code, made) = c.post(WIDGETS, widget("a", "text", "x".repeat(1_500_000).into())).await;
    assert_eq!(code, 201);
    assert!(made["metadata"]["managedFields"].is_array());
    let larger = json!({"free": {"y": "x".repeat(200_000)}});
    assert_too_large(c.patch(&format!("{WIDGETS}/a"), crate::cluster::MERGE, larger).await);
    let (_, stored) = c.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(stored["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_with_its_managers_is_stored_without_them() {
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let c = cluster(json!({"free": free})).await;
    let fields: Map<String, Value> = (0..80_000).map(|n| (format!("field{n}"), json!(1))).collect();
    let (code, made) = c.post(WIDGETS, widget("a", "free", fields.into())).await;
    assert_eq!(code, 201);
    assert!(made["metadata"].get("managedFields").is_none());
}

/// kube-apiserver stores built-in kinds as protobuf, in which a quote is one byte.
#[tokio::test(start_paused = true)]
async fn the_limit_of_built_in_kinds_is_on_their_protobuf_form() {
    let c = Cluster::new().await;
    let map = |length: usize| json!({"metadata": {"name": "a"}, "data": {"k": "\"".repeat(length)}});
    assert_eq!(c.post(MAPS, map(1_000_000)).await.0, 201);
    assert_eq!(c.post(MAPS, map(1_200_000)).await.0, 422, "the limit of a ConfigMap itself");
}

#[tokio::test]
async fn a_pod_of_empty_volumes_is_refused_with_a_few_of_its_errors() {
    let server = ApiServer::start().await.expect("the server starts");
    let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": vec![json!({}); 500_000]}});
    let request = json!({"method": "POST", "path": PODS, "json": body});
    let got = read(send(server.address(), &request).await.expect("a response")).await.expect("whole");
    assert_eq!(got["status"], 422);
    assert_eq!(got["body"]["details"]["causes"].as_array().map(Vec::len), Some(1000));
    let message = got["body"]["message"].as_str().expect("a message");
    assert!(message.ends_with("too many errors: only the first 1000 are listed]"), "{:.200}", message);
}

#[tokio::test]
async fn bad_labels_without_number_are_refused_with_a_few_of_their_errors() {
    let server = ApiServer::start().await.expect("the server starts");
    let labels: Map<String, Value> = (0..100_000).map(|n| (format!("-{n}"), json!("v"))).collect();
    let body = json!({"metadata": {"name": "a", "labels": labels}});
    let request = json!({"method": "POST", "path": MAPS, "json": body});
    let got = read(send(server.address(), &request).await.expect("a response")).await.expect("whole");
    assert_eq!(got["status"], 422);
    assert_eq!(got["body"]["details"]["causes"].as_array().map(Vec::len), Some(1000));
}
