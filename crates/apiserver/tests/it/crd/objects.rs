//! Requests to custom resources.

use serde_json::{Value, json};

use super::*;
use crate::cluster::MERGE;

fn with_subresources(subresources: Value, spec: Value) -> Value {
    let mut version = version("v1", spec);
    version["subresources"] = subresources;
    definition(&[version])
}

#[tokio::test(start_paused = true)]
async fn without_a_status_subresource_status_is_an_ordinary_field() {
    let c = cluster(plain()).await;
    let mut object = widget("a", json!({}));
    object["status"] = json!({"ready": false});
    let (_, created) = c.post(WIDGETS, object).await;
    assert_eq!(created["status"]["ready"], false);
    let (_, changed) = c.patch(&format!("{WIDGETS}/a"), MERGE, json!({"status": {"ready": true}})).await;
    assert_eq!((&changed["status"]["ready"], &changed["metadata"]["generation"]), (&json!(true), &json!(2)));
    assert_eq!(c.patch(&format!("{WIDGETS}/a/status"), MERGE, json!({})).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_status_write_requires_the_version_and_keeps_metadata() {
    let c = cluster(with_subresources(json!({"status": {}}), json!({"size": {"type": "integer"}}))).await;
    let (_, mut object) = c.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    object["metadata"]["labels"] = json!({"x": "1"});
    object["spec"]["size"] = 9.into();
    object["status"] = json!({"seen": 1});
    let path = format!("{WIDGETS}/a/status");
    let (code, written) = c.put(&path, object.clone()).await;
    assert_eq!((code, &written["spec"], &written["status"]), (200, &json!({"size": 1}), &json!({"seen": 1})));
    assert_eq!(
        (&written["metadata"]["labels"], &written["metadata"]["generation"]),
        (&Value::Null, &json!(1))
    );
    assert_eq!(c.put(&path, object.clone()).await.0, 409, "the version is stale now");
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(c.put(&path, object).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn scale_follows_its_paths() {
    let scale =
        json!({"scale": {"specReplicasPath": ".spec.deep.count", "statusReplicasPath": ".status.count"}});
    let spec =
        json!({"deep": {"type": "object", "properties": {"count": {"type": "integer", "maximum": 5}}}});
    let c = cluster(with_subresources(scale, spec)).await;
    c.post(WIDGETS, widget("a", json!({"deep": {"count": 2}}))).await;
    c.post(WIDGETS, widget("none", json!({}))).await;
    let path = format!("{WIDGETS}/a/scale");
    let (_, scale) = c.get(&path).await;
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]), (&json!(2), &json!({"replicas": 0})));
    let put = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "a"}, "spec": {"replicas": 4}});
    let (code, scaled) = c.put(&path, put).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(4)), "without a version the last one wins");
    let (code, status) = c.patch(&path, MERGE, json!({"spec": {"replicas": 6}})).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.deep.count")));
    let (code, status) = c.get(&format!("{WIDGETS}/none/scale")).await;
    assert_eq!(code, 500);
    assert!(
        message(&status).contains("the spec replicas field \".spec.deep.count\" does not exist"),
        "{status}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_replica_count_can_be_scaled() {
    let scale = json!({"scale": {"specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count"}});
    let c = cluster(with_subresources(scale, json!({"count": {"type": "integer"}}))).await;
    for name in ["a", "b"] {
        c.post(WIDGETS, widget(name, json!({}))).await;
    }
    let path = format!("{WIDGETS}/a/scale");
    let (code, status) = c.patch(&path, MERGE, json!({"metadata": {"labels": {"x": "1"}}})).await;
    assert_eq!((code, message(&status)), (400, "the spec replicas field \".spec.count\" cannot be empty"));
    let (code, scaled) = c.patch(&path, MERGE, json!({"spec": {"replicas": 3}})).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(3)), "{scaled}");
    let put = json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "b"}, "spec": {"replicas": 2}});
    let (code, scaled) = c.put(&format!("{WIDGETS}/b/scale"), put).await;
    assert_eq!((code, &scaled["spec"]["replicas"]), (200, &json!(2)), "{scaled}");
}

/// Clients that decode numbers as floating-point numbers (Gson, Lua) send a generation of 1.0.
#[tokio::test(start_paused = true)]
async fn integers_can_be_written_with_a_fraction_of_zero() {
    let spec = json!({"size": {"type": "integer", "maximum": 1000}, "any": {"type": "object",
        "x-kubernetes-preserve-unknown-fields": true}, "ratio": {"type": "number"}});
    let c = cluster(with_subresources(json!({"status": {}}), spec)).await;
    let (_, mut object) = c.post(WIDGETS, widget("a", json!({"size": 2}))).await;
    object["metadata"]["generation"] = json!(1.0);
    object["spec"] = json!({"size": 1e3, "any": {"list": [2.0, 2.5]}, "ratio": 3.0});
    let (code, updated) = c.put(&format!("{WIDGETS}/a"), object).await;
    assert_eq!(code, 200, "{updated}");
    assert_eq!(updated["spec"], json!({"size": 1000, "any": {"list": [2, 2.5]}, "ratio": 3}));
    assert_eq!(updated["metadata"]["generation"], 2);
    let (code, patched) = c.patch(&format!("{WIDGETS}/a"), MERGE, json!({"spec": {"size": 1000.0}})).await;
    let version = &patched["metadata"]["resourceVersion"];
    assert_eq!((code, version), (200, &updated["metadata"]["resourceVersion"]), "nothing changed");
    let (code, status) = c.patch(&format!("{WIDGETS}/a"), MERGE, json!({"spec": {"size": 1.5}})).await;
    assert_eq!(code, 422, "{status}");
}

#[tokio::test(start_paused = true)]
async fn schemas_are_enforced_on_every_write() {
    let spec = json!({"size": {"type": "integer", "maximum": 3}, "tags": {"type": "array", "x-kubernetes-list-type": "set",
        "items": {"type": "string"}}});
    let c = cluster(definition(&[version("v1", spec)])).await;
    assert_eq!(c.post(WIDGETS, widget("a", json!({"size": 4}))).await.0, 422);
    c.post(WIDGETS, widget("a", json!({"size": 3}))).await;
    let path = format!("{WIDGETS}/a");
    assert_eq!(c.patch(&path, MERGE, json!({"spec": {"size": 4}})).await.0, 422);
    let replace = json!([{"op": "replace", "path": "/spec/size", "value": 4}]);
    assert_eq!(c.patch(&path, "application/json-patch+json", replace).await.0, 422);
    let (code, status) = c.patch(&path, MERGE, json!({"spec": {"tags": ["x", "x"]}})).await;
    assert_eq!(
        (code, message(&status)),
        (422, "Widget.example.com \"a\" is invalid: spec.tags[1]: Duplicate value: \"x\"")
    );
    let (code, status) =
        c.patch(&format!("{path}?fieldValidation=Strict"), MERGE, json!({"spec": {"sise": 1}})).await;
    assert_eq!(code, 422);
    assert!(
        message(&status).contains("unknown field \\\"spec.sise\\\"")
            || message(&status).contains("unknown field \"spec.sise\""),
        "{status}"
    );
    let (code, _) = c
        .request(
            "PATCH",
            &format!("{path}?fieldManager=m"),
            "application/apply-patch+yaml",
            widget("a", json!({"size": 4})),
        )
        .await;
    assert_eq!(code, 409, "another manager owns the size");
}

#[tokio::test(start_paused = true)]
async fn names_may_be_restricted_by_the_schema() {
    let mut restricted = plain();
    restricted["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] =
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}});
    let c = cluster(restricted).await;
    assert_eq!(c.post(WIDGETS, widget("abc", json!({}))).await.0, 201);
    let (code, status) = c.post(WIDGETS, widget("abcd", json!({}))).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("metadata.name")));
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_selector() {
    let c = cluster(plain()).await;
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        let mut object = widget(name, json!({}));
        object["metadata"]["labels"] = json!({"x": label});
        c.post(WIDGETS, object).await;
    }
    let (code, deleted) = c.delete(&format!("{WIDGETS}?labelSelector=x%3D1"), Value::Null).await;
    assert_eq!((code, deleted["items"].as_array().map(Vec::len)), (200, Some(2)));
    let (_, left) = c.get(WIDGETS).await;
    assert_eq!(
        (left["items"].as_array().map(Vec::len), &left["items"][0]["metadata"]["name"]),
        (Some(1), &json!("b"))
    );
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_tables_and_partial_metadata() {
    let c = cluster(plain()).await;
    c.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    let (_, table) = c.get_as(WIDGETS, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let columns: Vec<&str> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|d| d["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Name", "Age"]);
    assert_eq!(table["rows"][0]["cells"][0], "a");
    let (_, list) =
        c.get_as(WIDGETS, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").await;
    assert_eq!(
        (&list["items"][0]["kind"], &list["items"][0]["spec"]),
        (&json!("PartialObjectMetadata"), &Value::Null)
    );
}

#[tokio::test(start_paused = true)]
async fn an_embedded_object_keeps_its_type_and_unknown_fields() {
    let template = json!({"template": {"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true}});
    let c = cluster(definition(&[version("v1", template)])).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"any": [1]}});
    let (code, created) = c.post(WIDGETS, widget("a", json!({"template": pod}))).await;
    assert_eq!((code, &created["spec"]["template"]), (201, &pod));
    let (code, status) = c.post(WIDGETS, widget("b", json!({"template": {"kind": "Pod"}}))).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.template.apiVersion")));
}
