//! Server-side apply of custom resources: the schema determines how lists are owned.

use serde_json::{Value, json};

use super::*;
use crate::cluster::{APPLY, MERGE};

fn listed() -> Value {
    definition(&[version(
        "v1",
        json!({
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "required": ["port"], "properties": {"port": {"type": "integer"},
                    "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }),
    )])
}

async fn apply(c: &Cluster, manager: &str, spec: Value) -> (u16, Value) {
    c.patch(&format!("{WIDGETS}/a?fieldManager={manager}"), APPLY, widget("a", spec)).await
}

fn owned<'o>(object: &'o Value, manager: &str) -> &'o Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("owners");
    let entry = entries.iter().find(|e| e["manager"] == manager).expect("an entry of that manager");
    &entry["fieldsV1"]["f:spec"]
}

#[tokio::test(start_paused = true)]
async fn sets_and_maps_merge_and_other_lists_do_not() {
    let c = cluster(listed()).await;
    assert_eq!(
        apply(&c, "m1", json!({"set": ["a"], "ports": [{"port": 80}], "whole": {"a": "1"}})).await.0,
        201
    );
    let (code, both) = apply(
        &c,
        "m2",
        json!({"set": ["b"], "ports": [{"port": 80, "protocol": "UDP"}, {"port": 80, "name": "web"}]}),
    )
    .await;
    assert_eq!(code, 200, "{both}");
    assert_eq!(both["spec"]["set"], json!(["a", "b"]));
    assert_eq!(
        both["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}]),
        "an absent key has its default"
    );
    assert_eq!(owned(&both, "m1")["f:set"], json!({"v:\"a\"": {}}));
    assert_eq!(owned(&both, "m1")["f:whole"], json!({}));
    let (code, status) = apply(&c, "m2", json!({"whole": {"b": "2"}})).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (409, &json!(".spec.whole")));
    let (_, less) = apply(&c, "m1", json!({})).await;
    assert_eq!(less["spec"]["set"], json!(["b"]), "fields that m1 no longer applies are removed: {less}");
    assert_eq!(less["spec"]["whole"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn unknown_content_is_owned_field_by_field() {
    let c = cluster(listed()).await;
    apply(&c, "m1", json!({"free": {"x": 1, "deep": {"y": [1]}}})).await;
    let (code, both) = apply(&c, "m2", json!({"free": {"z": 2}})).await;
    assert_eq!((code, &both["spec"]["free"]), (200, &json!({"x": 1, "deep": {"y": [1]}, "z": 2})));
    assert_eq!(owned(&both, "m1")["f:free"], json!({"f:deep": {"f:y": {}}, "f:x": {}}));
    let (code, _) = apply(&c, "m2", json!({"free": {"z": 2, "deep": {"y": [2]}}})).await;
    assert_eq!(code, 409);
}

#[tokio::test(start_paused = true)]
async fn defaults_are_owned_by_the_writer() {
    let c = cluster(definition(&[version("v1", json!({"size": {"type": "integer", "default": 3}}))])).await;
    let (_, created) = c.post(&format!("{WIDGETS}?fieldManager=m0"), widget("a", json!({}))).await;
    assert_eq!(owned(&created, "m0"), &json!({".": {}, "f:size": {}}));
}

#[tokio::test(start_paused = true)]
async fn status_has_separate_owners() {
    let mut with_status = listed();
    with_status["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    let c = cluster(with_status).await;
    apply(&c, "m1", json!({"set": ["a"]})).await;
    let mut status = widget("a", json!({}));
    status["status"] = json!({"ready": true});
    status["metadata"]["labels"] = json!({"x": "1"});
    status.as_object_mut().unwrap().remove("spec");
    let (code, applied) = c.patch(&format!("{WIDGETS}/a/status?fieldManager=m2"), APPLY, status).await;
    assert_eq!(
        (code, &applied["status"]["ready"], &applied["metadata"]["labels"]),
        (200, &json!(true), &Value::Null)
    );
    let entries = applied["metadata"]["managedFields"].as_array().expect("owners");
    let entry = entries.iter().find(|e| e["manager"] == "m2").expect("an owner of status");
    assert_eq!(
        (&entry["subresource"], &entry["fieldsV1"]),
        (&json!("status"), &json!({"f:status": {"f:ready": {}}}))
    );
    let (_, patched) = c
        .patch(&format!("{WIDGETS}/a/status?fieldManager=m3"), MERGE, json!({"status": {"ready": false}}))
        .await;
    let managers: Vec<&str> = patched["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["manager"].as_str().unwrap())
        .collect();
    assert_eq!(managers, ["m1", "m3"], "the last writer owns it");
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_cannot_be_applied() {
    let c = cluster(listed()).await;
    let (code, status) = apply(&c, "m1", json!({"bogus": 1})).await;
    assert_eq!(code, 500, "as elsewhere");
    assert!(message(&status).contains(".spec.bogus: field not declared in schema"), "{status}");
}
