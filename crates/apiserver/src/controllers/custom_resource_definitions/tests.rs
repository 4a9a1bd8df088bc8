//! The work for one CRD, counted.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::Api;
use crate::http::handle;
use crate::server::ApiServer;
use crate::work::visits;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition(n: usize) -> Value {
    let (plural, kind) = (format!("things{n}s"), format!("Thing{n}"));
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}}}]}})
}

async fn send(api: &Arc<Api>, method: &str, path: &str, body: Value) -> u16 {
    let request =
        http::Request::builder().method(method).uri(path).header("Content-Type", "application/json");
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = request.body(Full::<Bytes>::from(body)).expect("a request");
    handle(Arc::clone(api), request).await.expect("a response").status().as_u16()
}

#[tokio::test]
async fn a_definition_costs_the_same_however_many_there_are() {
    let api = ApiServer::builder().seed(3).in_process().await.expect("the server starts").api;
    let mut costs = Vec::new();
    for n in 0..120 {
        let before = visits::count();
        assert_eq!(send(&api, "POST", DEFINITIONS, definition(n)).await, 201);
        costs.push(visits::count() - before);
    }
    assert_eq!(costs[10], costs[119], "{costs:?}");
    let path = "/apis/example.com/v1/namespaces/default/things119s";
    assert_eq!(
        send(
            &api,
            "POST",
            path,
            json!({"apiVersion": "example.com/v1", "kind": "Thing119", "metadata": {"name": "a"}})
        )
        .await,
        201
    );

    let before = visits::count();
    let removed = format!("{DEFINITIONS}/things119s.example.com");
    assert_eq!(send(&api, "DELETE", &removed, Value::Null).await, 200);
    let with_object = visits::count() - before;
    assert!(with_object < 100, "{with_object}");
    assert_eq!(send(&api, "GET", path, Value::Null).await, 404);
}
