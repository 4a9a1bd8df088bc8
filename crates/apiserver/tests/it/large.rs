//! Requests that are small and make much of themselves: many errors.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Map, Value, json};

use crate::golden::exchange::{read, send};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";

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
