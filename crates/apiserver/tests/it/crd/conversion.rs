//! Pruning and defaulting of custom resources whose versions have different schemas.
//!
//! As in kube-apiserver, a stored object has only fields of the storage version, its defaults on read are those of the version it was
//! stored in, and the requested version then drops the fields that it does not have.

use serde_json::{Value, json};

use super::*;
use crate::cluster::{APPLY, MERGE};

const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";
const JSON_PATCH: &str = "application/json-patch+json";

fn text() -> Value {
    json!({"type": "string"})
}

/// A CRD with the versions `v1`, which is the storage version, and `v2`.
fn versions(v1: Value, v2: Value) -> Value {
    let mut second = version("v2", v2);
    second["storage"] = false.into();
    definition(&[version("v1", v1), second])
}

/// `v1` has the field `a`, and `v2` the fields `a` and `b`.
fn one_and_two_fields() -> Value {
    versions(json!({"a": text()}), json!({"a": text(), "b": text()}))
}

fn widget_v2(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "x"}, "spec": spec})
}

async fn spec_in(c: &Cluster, collection: &str) -> Value {
    c.get(&format!("{collection}/x")).await.1["spec"].clone()
}

/// Makes `v2` the storage version.
async fn move_storage(c: &Cluster) {
    let flip = json!([{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]);
    assert_eq!(c.patch(WIDGET, JSON_PATCH, flip).await.0, 200);
}

fn owned<'o>(object: &'o Value, manager: &str) -> &'o Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("managers");
    let entry = entries.iter().find(|e| e["manager"] == manager).expect("an entry of that manager");
    &entry["fieldsV1"]["f:spec"]
}

#[tokio::test(start_paused = true)]
async fn a_create_stores_only_fields_of_the_storage_version() {
    let c = cluster(one_and_two_fields()).await;
    let both = widget_v2(json!({"a": "1", "b": "2"}));
    let (code, tried) = c.post(&format!("{V2}?dryRun=All"), both.clone()).await;
    assert_eq!((code, &tried["spec"]), (201, &json!({"a": "1"})), "a dry run");
    let (code, created) = c.post(V2, both).await;
    assert_eq!(
        (code, &created["apiVersion"], &created["spec"]),
        (201, &json!("example.com/v2"), &json!({"a": "1"}))
    );
    assert_eq!(spec_in(&c, V2).await, json!({"a": "1"}));
    assert_eq!(spec_in(&c, WIDGETS).await, json!({"a": "1"}));
    assert_eq!(c.get(V2).await.1["items"][0]["spec"], json!({"a": "1"}));
}

#[tokio::test(start_paused = true)]
async fn updates_and_patches_store_only_fields_of_the_storage_version() {
    let c = cluster(one_and_two_fields()).await;
    c.post(V2, widget_v2(json!({"a": "1"}))).await;
    let path = format!("{V2}/x");
    let mut sent = c.get(&path).await.1;
    sent["spec"] = json!({"a": "2", "b": "2"});
    let (code, tried) = c.put(&format!("{path}?dryRun=All"), sent.clone()).await;
    assert_eq!((code, &tried["spec"]), (200, &json!({"a": "2"})), "a dry run");
    let (code, updated) = c.put(&path, sent).await;
    assert_eq!((code, &updated["spec"]), (200, &json!({"a": "2"})));
    let (code, merged) = c.patch(&path, MERGE, json!({"spec": {"a": "3", "b": "3"}})).await;
    assert_eq!((code, &merged["spec"]), (200, &json!({"a": "3"})));
    let add = json!([{"op": "add", "path": "/spec/b", "value": "4"}]);
    let (code, patched) = c.patch(&path, JSON_PATCH, add).await;
    assert_eq!((code, &patched["spec"]), (200, &json!({"a": "3"})));
    assert_eq!((spec_in(&c, V2).await, spec_in(&c, WIDGETS).await), (json!({"a": "3"}), json!({"a": "3"})));
    // The old and the new object differ before they are converted.
    assert_eq!(patched["metadata"]["generation"], 4);
}

#[tokio::test(start_paused = true)]
async fn status_and_scale_are_pruned_too() {
    let mut definition = versions(
        json!({"replicas": {"type": "integer"}}),
        json!({"replicas": {"type": "integer"}, "count": {"type": "integer"}}),
    );
    for (n, status, replicas) in
        [(0, json!({"s": text()}), "replicas"), (1, json!({"s": text(), "t": text()}), "count")]
    {
        let version = &mut definition["spec"]["versions"][n];
        version["schema"]["openAPIV3Schema"]["properties"]["status"] =
            json!({"type": "object", "properties": status});
        version["subresources"] = json!({"status": {}, "scale": {
            "specReplicasPath": format!(".spec.{replicas}"), "statusReplicasPath": ".status.replicas"}});
    }
    let c = cluster(definition).await;
    c.post(V2, widget_v2(json!({"replicas": 1}))).await;
    let (code, written) =
        c.patch(&format!("{V2}/x/status"), MERGE, json!({"status": {"s": "1", "t": "1"}})).await;
    assert_eq!((code, &written["status"]), (200, &json!({"s": "1"})));
    let scale = json!({"spec": {"replicas": 3}});
    assert_eq!(c.patch(&format!("{WIDGETS}/x/scale"), MERGE, scale.clone()).await.1["spec"]["replicas"], 3);
    // The field of v2 cannot be stored, so the Scale in the response has no replica count.
    let (code, status) = c.patch(&format!("{V2}/x/scale"), MERGE, scale).await;
    assert_eq!(code, 500, "{status}");
    assert_eq!(spec_in(&c, V2).await, json!({"replicas": 3}));
}

#[tokio::test(start_paused = true)]
async fn an_applied_field_appears_once_the_storage_version_has_it() {
    let c = cluster(one_and_two_fields()).await;
    let (path, config) =
        (format!("{V2}/x?fieldManager=m&force=true"), widget_v2(json!({"a": "1", "b": "2"})));
    let (code, created) = c.patch(&path, APPLY, config.clone()).await;
    assert_eq!((code, &created["spec"]), (201, &json!({"a": "1"})));
    // The manager owns what it applied: ownership is computed before the object is converted.
    assert_eq!(owned(&created, "m"), &json!({"f:a": {}, "f:b": {}}));
    let (code, again) = c.patch(&path, APPLY, config.clone()).await;
    assert_eq!((code, &again["spec"]), (200, &json!({"a": "1"})));
    move_storage(&c).await;
    assert_eq!(spec_in(&c, V2).await, json!({"a": "1"}));
    let (code, applied) = c.patch(&path, APPLY, config).await;
    assert_eq!((code, &applied["spec"]), (200, &json!({"a": "1", "b": "2"})));
    assert_eq!(owned(&applied, "m"), &json!({"f:a": {}, "f:b": {}}));
    assert_eq!(spec_in(&c, WIDGETS).await, json!({"a": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_what_a_read_shows() {
    let with_default = json!({"type": "string", "default": "of v1"});
    let c = cluster(versions(
        json!({"a": text(), "d": with_default}),
        json!({"a": text(), "b": text(), "d": {"type": "string", "default": "of v2"}}),
    ))
    .await;
    c.post(WIDGETS, widget("x", json!({"a": "1"}))).await;
    let mut watch = c.watch(&format!("{V2}?watch=true")).await;
    let shown = async |watch: &mut crate::cluster::Watch| {
        let event = watch.next().await.expect("an event");
        (event["type"].clone(), event["object"]["apiVersion"].clone(), event["object"]["spec"].clone())
    };
    let expected =
        |event: &str, a: &str| (json!(event), json!("example.com/v2"), json!({"a": a, "d": "of v1"}));
    assert_eq!(shown(&mut watch).await, expected("ADDED", "1"));
    c.patch(&format!("{V2}/x"), MERGE, json!({"spec": {"a": "2", "b": "2"}})).await;
    assert_eq!(shown(&mut watch).await, expected("MODIFIED", "2"));
    c.delete(&format!("{V2}/x"), Value::Null).await;
    assert_eq!(shown(&mut watch).await, expected("DELETED", "2"));
}

#[tokio::test(start_paused = true)]
async fn an_object_keeps_its_stored_version_until_it_is_written_again() {
    let c = cluster(versions(
        json!({"a": text(), "old": text(), "d": {"type": "string"}}),
        json!({"a": text(), "b": text(), "d": {"type": "string", "default": "of v2"}}),
    ))
    .await;
    let (_, created) = c.post(WIDGETS, widget("x", json!({"a": "1", "old": "1"}))).await;
    move_storage(&c).await;
    assert_eq!(spec_in(&c, WIDGETS).await, json!({"a": "1", "old": "1"}));
    assert_eq!(
        spec_in(&c, V2).await,
        json!({"a": "1"}),
        "the default of v2 is not one of the stored version"
    );
    // A write that changes nothing migrates the object, because its stored version changes.
    let (code, migrated) = c.patch(&format!("{WIDGETS}/x"), MERGE, json!({})).await;
    assert_eq!(code, 200);
    assert_ne!(migrated["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    assert_eq!(spec_in(&c, WIDGETS).await, json!({"a": "1", "d": "of v2"}));
    assert_eq!(spec_in(&c, V2).await, json!({"a": "1", "d": "of v2"}));
    let (_, set) = c.patch(&format!("{V2}/x"), MERGE, json!({"spec": {"b": "2"}})).await;
    assert_eq!(set["spec"], json!({"a": "1", "b": "2", "d": "of v2"}));
    assert_eq!(spec_in(&c, WIDGETS).await, json!({"a": "1", "d": "of v2"}));
    let (_, same) = c.patch(&format!("{V2}/x"), MERGE, json!({})).await;
    assert_eq!(
        same["metadata"]["resourceVersion"], set["metadata"]["resourceVersion"],
        "now it changes nothing"
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_stay_only_if_both_versions_preserve_them() {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let closed = json!({"type": "object", "properties": {"a": text()}});
    let free = json!({"free": {"a": "1", "x": "1"}});
    let pruned = json!({"free": {"a": "1"}});
    for (storage_preserves, in_v1, in_v2) in [(false, &pruned, &pruned), (true, &free, &pruned)] {
        let (v1, v2) = if storage_preserves { (&open, &closed) } else { (&closed, &open) };
        let c = cluster(versions(json!({"free": v1}), json!({"free": v2}))).await;
        let collection = if storage_preserves { WIDGETS } else { V2 };
        let mut sent = widget("x", free.clone());
        sent["apiVersion"] = if storage_preserves { "example.com/v1" } else { "example.com/v2" }.into();
        assert_eq!(c.post(collection, sent).await.0, 201);
        assert_eq!((&spec_in(&c, V2).await, &spec_in(&c, WIDGETS).await), (in_v2, in_v1));
        // A write through a version loses the fields that this version does not have.
        let label = json!({"metadata": {"labels": {"l": "1"}}});
        assert_eq!(c.patch(&format!("{V2}/x"), MERGE, label).await.0, 200);
        assert_eq!(spec_in(&c, WIDGETS).await, pruned);
    }
}

#[tokio::test(start_paused = true)]
async fn defaults_on_read_are_those_of_the_stored_version() {
    let with_default = |value: &str| json!({"type": "string", "default": value});
    let c = cluster(versions(
        json!({"both": with_default("of v1"), "first": with_default("of v1"), "second": text()}),
        json!({"both": with_default("of v2"), "first": text(), "second": with_default("of v2")}),
    ))
    .await;
    // The body is defaulted by the version of the request, and the stored object by its own.
    let (_, created) = c.post(V2, widget_v2(json!({}))).await;
    assert_eq!(created["spec"], json!({"both": "of v2", "first": "of v1", "second": "of v2"}));
    c.post(WIDGETS, widget("y", json!({}))).await;
    let of_v1 = json!({"both": "of v1", "first": "of v1"});
    assert_eq!(c.get(&format!("{V2}/y")).await.1["spec"], of_v1);
    assert_eq!(c.get(V2).await.1["items"][1]["spec"], of_v1);
    // A default that only the requested version gets later is not shown, as in kube-apiserver.
    let add = |n: usize| {
        json!([{"op": "add", "path": format!("/spec/versions/{n}/schema/openAPIV3Schema/properties/spec/properties/late"),
        "value": with_default("late")}])
    };
    assert_eq!(c.patch(WIDGET, JSON_PATCH, add(1)).await.0, 200);
    assert_eq!(c.get(&format!("{V2}/y")).await.1["spec"], of_v1);
    assert_eq!(c.patch(WIDGET, JSON_PATCH, add(0)).await.0, 200);
    assert_eq!(c.get(&format!("{V2}/y")).await.1["spec"]["late"], "late");
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_not_stored_is_not_selectable() {
    let mut definition = one_and_two_fields();
    definition["spec"]["versions"][1]["selectableFields"] = json!([{"jsonPath": ".spec.b"}]);
    let c = cluster(definition).await;
    c.post(V2, widget_v2(json!({"a": "1", "b": "2"}))).await;
    let (code, list) = c.get(&format!("{V2}?fieldSelector=spec.b%3D2")).await;
    assert_eq!((code, &list["items"]), (200, &json!([])));
}
