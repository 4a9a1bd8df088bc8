//! Creation, update and deletion of CRDs.

use serde_json::{Value, json};

use super::*;
use crate::cluster::MERGE;

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_before_its_create_completes() {
    let c = Cluster::new().await;
    let mut watch = c.watch(&format!("{DEFINITIONS}?watch=true&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")).await;
    let (code, created) = c.post(DEFINITIONS, plain()).await;
    assert_eq!((code, &created["status"]["storedVersions"]), (201, &json!(["v1"])));
    assert_eq!(c.post(WIDGETS, widget("w", json!({"size": 1}))).await.0, 201);
    let mut steps = Vec::new();
    for _ in 0..3 {
        let event = watch.next().await.expect("an event");
        steps.push((event["type"].as_str().unwrap().to_owned(), conditions(&event["object"])));
    }
    let names = "NamesAccepted=True NoConflicts".to_owned();
    assert_eq!(
        steps,
        [
            ("ADDED".to_owned(), vec![]),
            ("MODIFIED".to_owned(), vec![names.clone(), "Established=False Installing".to_owned()]),
            ("MODIFIED".to_owned(), vec![names, "Established=True InitialNamesAccepted".to_owned()]),
        ]
    );
    let (_, now) = c.get(WIDGET).await;
    assert_eq!(
        now["status"]["acceptedNames"],
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_defines_nothing() {
    let c = Cluster::new().await;
    assert_eq!(c.post(&format!("{DEFINITIONS}?dryRun=All"), plain()).await.0, 201);
    assert_eq!(c.get(WIDGET).await.0, 404);
    assert_eq!(c.get(WIDGETS).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn invalid_definitions_are_rejected_field_by_field() {
    let c = Cluster::new().await;
    let mut bad = plain();
    bad["metadata"]["name"] = "gadgets.example.com".into();
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"properties": {}});
    let (code, status) = c.post(DEFINITIONS, bad).await;
    assert_eq!(code, 422);
    let fields: Vec<&str> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["metadata.name", "spec.validation.openAPIV3Schema.properties[spec].type"]);
}

/// Schemas and objects up to the depth limit of JSON are either rejected or served.
#[tokio::test(start_paused = true)]
async fn deep_schemas_do_not_crash_the_server() {
    let c = Cluster::new().await;
    let deep = |levels: usize, wrap: fn(Value) -> Value| {
        (0..levels).fold(json!({"type": "string"}), |inner, _| wrap(inner))
    };
    let wraps: [fn(Value) -> Value; 5] = [
        |inner| json!({"type": "array", "items": inner}),
        |inner| json!({"type": "object", "additionalProperties": inner}),
        |inner| json!({"type": "object", "properties": {"a": inner}}),
        |inner| json!({"type": "string", "not": inner}),
        |inner| json!({"type": "string", "allOf": [inner]}),
    ];
    for wrap in wraps {
        for levels in [20, 50, 100, 120] {
            let (code, response) =
                c.post(DEFINITIONS, definition(&[version("v1", json!({"x": deep(levels, wrap)}))])).await;
            assert!(matches!(code, 201 | 400 | 422), "{response}");
            if code == 201 {
                let list = (0..levels).fold(json!("x"), |inner, _| json!([inner]));
                let object = (0..levels).fold(json!("x"), |inner, _| json!({"a": inner}));
                for x in [list, object] {
                    let (code, response) = c.post(WIDGETS, widget("a", json!({"x": x}))).await;
                    assert!(matches!(code, 201 | 400 | 409 | 422), "{response}");
                }
                c.delete(WIDGET, Value::Null).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn typos_deep_in_a_schema_are_found_by_strict_validation() {
    let c = Cluster::new().await;
    let typo = definition(&[version(
        "v1",
        json!({"list": {"type": "array", "items": {"type": "string", "maxLen": 3}}}),
    )]);
    let (code, status) = c.post(&format!("{DEFINITIONS}?fieldValidation=Strict"), typo).await;
    assert_eq!(code, 400);
    let path = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.list.items.maxLen";
    assert!(message(&status).contains(&format!("unknown field {path:?}")), "{status}");
}

#[tokio::test(start_paused = true)]
async fn names_belong_to_one_definition_until_it_is_deleted() {
    let c = cluster(plain()).await;
    let mut rival = plain();
    rival["metadata"]["name"] = "gizmos.example.com".into();
    rival["spec"]["names"] = json!({"plural": "gizmos", "kind": "Widget"});
    assert_eq!(c.post(DEFINITIONS, rival).await.0, 201);
    let path = format!("{DEFINITIONS}/gizmos.example.com");
    let (_, waiting) = c.get(&path).await;
    assert_eq!(
        conditions(&waiting),
        ["NamesAccepted=False ListKindConflict", "Established=False NotAccepted"],
        "{waiting}"
    );
    assert_eq!(c.get("/apis/example.com/v1/gizmos").await.0, 404);
    assert_eq!(c.delete(WIDGET, Value::Null).await.0, 200);
    let (_, served) = c.get(&path).await;
    assert_eq!(
        conditions(&served),
        ["NamesAccepted=True NoConflicts", "Established=True InitialNamesAccepted"]
    );
    assert_eq!(c.get("/apis/example.com/v1/gizmos").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_deletes_its_objects() {
    let c = cluster(plain()).await;
    c.post(WIDGETS, widget("a", json!({}))).await;
    let mut watch = c.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.next().await.expect("the state")["type"], "ADDED");
    let (code, marked) = c.delete(WIDGET, Value::Null).await;
    assert_eq!(code, 200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert!(
        conditions(&marked).contains(&"Terminating=True InstanceDeletionInProgress".to_owned()),
        "{marked}"
    );
    assert_eq!(watch.next().await.expect("a delete event")["type"], "DELETED");
    assert_eq!(watch.next().await, None, "the watch ends");
    assert_eq!(c.get(WIDGET).await.0, 404);
    assert_eq!(c.get(WIDGETS).await.0, 404);
    assert_eq!(c.get("/apis/example.com/v1").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_definition_is_new_and_empty() {
    let c = cluster(plain()).await;
    let (_, first) = c.get(WIDGET).await;
    c.post(WIDGETS, widget("a", json!({"size": 1}))).await;
    c.delete(WIDGET, Value::Null).await;
    assert_eq!(c.post(DEFINITIONS, plain()).await.0, 201);
    let (_, second) = c.get(WIDGET).await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let (code, list) = c.get(WIDGETS).await;
    assert_eq!((code, &list["items"]), (200, &json!([])));
    assert_eq!(c.post(WIDGETS, widget("a", json!({"size": 2}))).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn finalizers_of_objects_block_the_definition() {
    let c = cluster(plain()).await;
    let mut held = widget("a", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    c.post(WIDGETS, held).await;
    c.post(WIDGETS, widget("b", json!({}))).await;
    c.delete(WIDGET, Value::Null).await;
    let (code, list) = c.get(WIDGETS).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)));
    assert!(list["items"][0]["metadata"]["deletionTimestamp"].is_string());
    let (code, status) = c.post(WIDGETS, widget("c", json!({}))).await;
    assert_eq!(
        (code, message(&status)),
        (405, "create not allowed while custom resource definition is terminating")
    );
    let (_, resources) = c.get("/apis/example.com/v1").await;
    assert_eq!(
        resources["resources"][0]["verbs"],
        json!(["delete", "deletecollection", "get", "list", "watch"])
    );
    assert_eq!(c.delete(WIDGET, Value::Null).await.0, 200, "a second delete has no effect");
    let freed = c.patch(&format!("{WIDGETS}/a"), MERGE, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(freed.0, 200);
    assert_eq!(c.get(WIDGET).await.0, 404);
    assert_eq!(c.get(WIDGETS).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_changed_schema_ends_watches_and_a_label_does_not() {
    let c = cluster(plain()).await;
    c.post(WIDGETS, widget("a", json!({}))).await;
    let mut watch = c.watch(&format!("{WIDGETS}?watch=true")).await;
    watch.next().await.expect("the state");
    c.patch(WIDGET, MERGE, json!({"metadata": {"labels": {"x": "1"}}})).await;
    c.patch(&format!("{WIDGETS}/a"), MERGE, json!({"spec": {"size": 2}})).await;
    assert_eq!(watch.next().await.expect("still open")["type"], "MODIFIED");
    let wider = json!([version("v1", json!({"size": {"type": "integer"}, "weight": {"type": "integer"}}))]);
    let (code, changed) = c.patch(WIDGET, MERGE, json!({"spec": {"versions": wider}})).await;
    assert_eq!((code, &changed["metadata"]["generation"]), (200, &json!(2)));
    assert_eq!(watch.next().await, None);
    let (_, object) = c.patch(&format!("{WIDGETS}/a"), MERGE, json!({"spec": {"weight": 3}})).await;
    assert_eq!(object["spec"], json!({"size": 2, "weight": 3}));
}

#[tokio::test(start_paused = true)]
async fn some_fields_of_a_definition_are_immutable() {
    let c = cluster(plain()).await;
    let (code, status) = c.patch(WIDGET, MERGE, json!({"spec": {"scope": "Cluster"}})).await;
    assert_eq!((code, &status["details"]["causes"][0]["field"]), (422, &json!("spec.scope")));
    let (_, mut now) = c.get(WIDGET).await;
    now["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert_eq!(c.put(WIDGET, now).await.0, 422, "a PUT requires the version");
}

#[tokio::test(start_paused = true)]
async fn deleting_a_namespace_deletes_its_custom_resources() {
    let c = cluster(plain()).await;
    c.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let widgets = "/apis/example.com/v1/namespaces/n/widgets";
    assert_eq!(c.post(widgets, widget("a", json!({}))).await.0, 201);
    c.delete("/api/v1/namespaces/n", Value::Null).await;
    assert_eq!(c.get("/api/v1/namespaces/n").await.0, 404);
    let (_, list) = c.get("/apis/example.com/v1/widgets").await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn deleting_a_definition_may_complete_the_deletion_of_a_namespace() {
    let c = cluster(plain()).await;
    c.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let widgets = "/apis/example.com/v1/namespaces/n/widgets";
    let mut held = widget("a", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    c.post(widgets, held).await;
    c.delete("/api/v1/namespaces/n", Value::Null).await;
    c.delete(WIDGET, Value::Null).await;
    assert_eq!(c.get("/api/v1/namespaces/n").await.1["status"]["phase"], "Terminating");
    c.patch(&format!("{widgets}/a"), MERGE, json!({"metadata": {"finalizers": []}})).await;
    assert_eq!(c.get("/api/v1/namespaces/n").await.0, 404);
    assert_eq!(c.get(WIDGET).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn many_definitions_can_be_deleted_at_once() {
    let c = cluster(plain()).await;
    let mut other = plain();
    other["metadata"]["name"] = "gizmos.example.com".into();
    other["spec"]["names"] = json!({"plural": "gizmos", "kind": "Gizmo"});
    c.post(DEFINITIONS, other).await;
    assert_eq!(c.delete(DEFINITIONS, Value::Null).await.0, 200);
    let (_, list) = c.get(DEFINITIONS).await;
    assert_eq!(list["items"], json!([]));
    assert_eq!(c.get("/apis/example.com").await.0, 404);
}

/// A create during the deletion of the definition either succeeds and its object is deleted, or fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_object_outlives_its_definition() {
    let c = cluster(plain()).await;
    for round in 0..20 {
        let creators: Vec<_> = (0..4)
            .map(|creator| {
                let c = Cluster { server: c.server.clone(), client: c.server.client() };
                tokio::spawn(async move {
                    for i in 0..20 {
                        let (code, response) =
                            c.post(WIDGETS, widget(&format!("w{round}-{creator}-{i}"), json!({}))).await;
                        assert!(matches!(code, 201 | 404 | 405), "{response}");
                    }
                })
            })
            .collect();
        c.delete(WIDGET, Value::Null).await;
        for creator in creators {
            creator.await.expect("no creator panics");
        }
        assert_eq!(c.get(WIDGETS).await.0, 404);
        assert_eq!(c.post(DEFINITIONS, plain()).await.0, 201);
        let (_, list) = c.get(WIDGETS).await;
        assert_eq!(list["items"], json!([]), "round {round}");
    }
}
