//! Custom resources beyond the recorded scenarios, in process under a paused clock.

mod conversion;
mod discovery;
mod hostile_rules;
mod kube_rs;
mod lifecycle;
mod objects;
mod ownership;
mod ratcheting;
mod rules;
mod rules_suite;
mod shared_store;
mod versions;

use serde_json::{Value, json};

use crate::cluster::Cluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const WIDGET: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

/// A version, served and stored, whose `spec` has these properties.
fn version(name: &str, spec: Value) -> Value {
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"name": name, "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}, "status": status}}}})
}

/// The CRD `widgets.example.com` with these versions.
fn definition(versions: &[Value]) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions}})
}

fn plain() -> Value {
    definition(&[version("v1", json!({"size": {"type": "integer"}, "color": {"type": "string"}}))])
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

/// A server with this CRD.
async fn cluster(definition: Value) -> Cluster {
    let cluster = Cluster::new().await;
    let (code, created) = cluster.post(DEFINITIONS, definition).await;
    assert_eq!(code, 201, "{created}");
    cluster
}

fn conditions(definition: &Value) -> Vec<String> {
    let list = definition["status"]["conditions"].as_array().into_iter().flatten();
    list.map(|c| format!("{}={} {}", c["type"], c["status"], c["reason"]).replace('"', "")).collect()
}

fn message(status: &Value) -> &str {
    status["message"].as_str().unwrap_or_default()
}
