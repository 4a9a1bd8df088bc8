//! CRDs with several versions, and schema changes with stored objects.

use serde_json::{Value, json};

use super::*;
use crate::cluster::MERGE;

const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// `v1` is the storage version; `v2` has one more field, with a default.
fn two_versions() -> Value {
    let v1 = version("v1", json!({"size": {"type": "integer"}}));
    let mut v2 =
        version("v2", json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "auto"}}));
    v2["storage"] = false.into();
    definition(&[v1, v2])
}

#[tokio::test(start_paused = true)]
async fn an_object_is_served_in_every_version() {
    let c = cluster(two_versions()).await;
    c.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    let shown = |object: &Value| (object["apiVersion"].clone(), object["spec"].clone());
    let in_v2 = |size: u8| (json!("example.com/v2"), json!({"size": size}));
    let (code, seen) = c.get(&format!("{V2}/a")).await;
    assert_eq!((code, shown(&seen)), (200, in_v2(1)));
    let (_, list) = c.get(V2).await;
    assert_eq!(shown(&list["items"][0]), in_v2(1));
    let mut watch = c.watch(&format!("{V2}?watch=true")).await;
    let state = watch.next().await.expect("the state");
    assert_eq!(shown(&state["object"]), in_v2(1));
    c.patch(&format!("{V2}/a"), MERGE, json!({"spec": {"size": 2}})).await;
    let change = watch.next().await.expect("the change");
    assert_eq!((&change["type"], shown(&change["object"])), (&json!("MODIFIED"), in_v2(2)));
    let (_, old) = c.get(&format!("{WIDGETS}/a")).await;
    assert_eq!(shown(&old), (json!("example.com/v1"), json!({"size": 2})));
}

#[tokio::test(start_paused = true)]
async fn the_body_must_have_the_version_of_the_url() {
    let c = cluster(two_versions()).await;
    let (code, status) = c.post(V2, widget("a", json!({}))).await;
    assert_eq!(
        (code, message(&status)),
        (
            400,
            "the API version in the data (example.com/v1) does not match the expected API version (example.com/v2)"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_storage_version_is_recorded_and_the_old_one_must_stay() {
    let c = cluster(two_versions()).await;
    let flip = json!([{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]);
    let (code, flipped) = c.patch(WIDGET, "application/json-patch+json", flip).await;
    assert_eq!((code, &flipped["status"]["storedVersions"]), (200, &json!(["v1", "v2"])));
    let remove = json!([{"op": "remove", "path": "/spec/versions/0"}]);
    let (code, status) = c.patch(WIDGET, "application/json-patch+json", remove.clone()).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("status.storedVersions[0]")));
    let migrated = json!({"status": {"storedVersions": ["v2"]}});
    assert_eq!(c.patch(&format!("{WIDGET}/status"), MERGE, migrated).await.0, 200);
    assert_eq!(c.patch(WIDGET, "application/json-patch+json", remove).await.0, 200);
    assert_eq!(c.get(WIDGETS).await.0, 404);
    assert_eq!(c.get(V2).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn versions_can_be_added_and_removed() {
    let c = cluster(two_versions()).await;
    let unserved = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    c.patch(WIDGET, "application/json-patch+json", unserved).await;
    assert_eq!((c.get(V2).await.0, c.get(WIDGETS).await.0), (404, 200));
    let both = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": false}]);
    c.post(WIDGETS, widget("a", json!({}))).await;
    c.patch(WIDGET, "application/json-patch+json", both).await;
    assert_eq!(c.get(WIDGETS).await.0, 404);
    assert_eq!(c.delete(WIDGET, Value::Null).await.0, 200);
    assert_eq!(c.get(WIDGET).await.0, 404, "unserved objects are deleted too");
    c.post(DEFINITIONS, two_versions()).await;
    assert_eq!(c.get(WIDGETS).await.1["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn stored_objects_are_converted_to_the_current_schema() {
    let c = cluster(plain()).await;
    c.post(WIDGETS, widget("a", json!({"size": 1, "color": "red"}))).await;
    let changed = json!([version(
        "v1",
        json!({"size": {"type": "integer"}, "mode": {"type": "string", "default": "auto"}})
    )]);
    assert_eq!(c.patch(WIDGET, MERGE, json!({"spec": {"versions": changed}})).await.0, 200);
    let shown = json!({"size": 1, "mode": "auto"});
    assert_eq!(c.get(&format!("{WIDGETS}/a")).await.1["spec"], shown);
    assert_eq!(c.get(WIDGETS).await.1["items"][0]["spec"], shown);
    let mut watch = c.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.next().await.expect("the state")["object"]["spec"], shown);
}

#[tokio::test(start_paused = true)]
async fn invalid_stored_values_may_stay_but_not_change() {
    let c = cluster(plain()).await;
    c.post(WIDGETS, widget("a", json!({"size": 9, "color": "x"}))).await;
    let stricter = json!([version(
        "v1",
        json!({"size": {"type": "integer", "maximum": 5}, "color": {"type": "string"}})
    )]);
    assert_eq!(c.patch(WIDGET, MERGE, json!({"spec": {"versions": stricter}})).await.0, 200);
    let path = format!("{WIDGETS}/a");
    assert_eq!(c.patch(&path, MERGE, json!({"spec": {"color": "y"}})).await.0, 200, "the size is unchanged");
    assert_eq!(c.patch(&path, MERGE, json!({"spec": {"size": 8}})).await.0, 422);
    assert_eq!(c.patch(&path, MERGE, json!({"spec": {"size": 5}})).await.0, 200);
    assert_eq!(c.patch(&path, MERGE, json!({"spec": {"size": 9}})).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn fields_of_stored_objects_become_selectable() {
    let c = cluster(plain()).await;
    c.post(WIDGETS, widget("r", json!({"color": "red"}))).await;
    c.post(WIDGETS, widget("g", json!({"color": "green"}))).await;
    let red = format!("{WIDGETS}?fieldSelector=spec.color%3Dred");
    assert_eq!(c.get(&red).await.0, 400);
    let add = json!([{"op": "add", "path": "/spec/versions/0/selectableFields", "value": [{"jsonPath": ".spec.color"}]}]);
    assert_eq!(c.patch(WIDGET, "application/json-patch+json", add).await.0, 200);
    let (code, list) = c.get(&red).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)));
    let mut watch = c.watch(&format!("{red}&watch=true")).await;
    assert_eq!(watch.next().await.expect("the state")["object"]["metadata"]["name"], "r");
    c.patch(&format!("{WIDGETS}/r"), MERGE, json!({"spec": {"color": "blue"}})).await;
    let left = watch.next().await.expect("it no longer matches");
    assert_eq!((&left["type"], &left["object"]["spec"]["color"]), (&json!("DELETED"), &json!("red")));
    c.patch(&format!("{WIDGETS}/g"), MERGE, json!({"spec": {"color": "red"}})).await;
    assert_eq!(watch.next().await.expect("it matches")["type"], "ADDED");
}

#[tokio::test(start_paused = true)]
async fn deprecated_versions_warn() {
    let mut old = two_versions();
    old["spec"]["versions"][0]["deprecated"] = true.into();
    old["spec"]["versions"][1]["deprecated"] = true.into();
    old["spec"]["versions"][1]["deprecationWarning"] = "use gizmos".into();
    let c = cluster(old).await;
    let (_, _, warnings) = c.request_with_warnings("GET", WIDGETS, Value::Null).await;
    assert_eq!(warnings, ["299 - \"example.com/v1 Widget is deprecated\""]);
    let (_, _, warnings) = c.request_with_warnings("GET", V2, Value::Null).await;
    assert_eq!(warnings, ["299 - \"use gizmos\""]);
    // The version comes first, as in kube-apiserver.
    let odd = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "odd"}, "spec": {"no": 1}});
    let (_, _, warnings) = c.request_with_warnings("POST", WIDGETS, odd).await;
    assert_eq!(
        warnings,
        ["299 - \"example.com/v1 Widget is deprecated\"", "299 - \"unknown field \\\"spec.no\\\"\""]
    );
}
