//! Dry runs, status, field validation, patches and apply.

use serde_json::{Value, json};

use super::{Kind, create, kinds, without_versions};
use crate::cluster::{APPLY, Cluster, MERGE, STRATEGIC};

const JSON_PATCH: &str = "application/json-patch+json";

/// The version of the store.
async fn version(c: &Cluster, kind: &Kind) -> Value {
    c.get(&kind.path()).await.1["metadata"]["resourceVersion"].clone()
}

#[tokio::test(start_paused = true)]
async fn dry_runs_change_nothing() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let before = version(&c, kind).await;
        let (code, shown) = c.post(&format!("{}?dryRun=All", kind.path()), kind.sample()).await;
        assert_eq!(code, 201, "{}: {shown}", kind.kind);
        assert!(
            shown["metadata"]["uid"].is_string() && shown["metadata"]["resourceVersion"].is_null(),
            "{shown}"
        );
        assert_eq!(c.get(&kind.object_path()).await.0, 404, "{}", kind.kind);
        assert_eq!(version(&c, kind).await, before, "{}", kind.kind);
        create(&c, kind).await;
        let (_, stored) = c.get(&kind.object_path()).await;
        let dry = format!("{}?dryRun=All", kind.object_path());
        let mut changed = stored.clone();
        changed["metadata"]["labels"]["x"] = "y".into();
        let label = json!({"metadata": {"labels": {"x": "y"}}});
        let applied = json!({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name":
            stored["metadata"]["name"], "labels": {"x": "y"}}});
        for (method, path, media, body) in [
            ("PUT", dry.clone(), "application/json", changed),
            ("PATCH", dry.clone(), MERGE, label.clone()),
            (
                "PATCH",
                dry.clone(),
                JSON_PATCH,
                json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}]),
            ),
            ("PATCH", format!("{dry}&fieldManager=m&force=true"), APPLY, applied),
        ] {
            let (code, shown) = c.request(method, &path, media, body).await;
            assert_eq!(
                (code, &shown["metadata"]["labels"]["x"]),
                (200, &json!("y")),
                "{method} {}: {shown}",
                kind.kind
            );
        }
        for body in [Value::Null, json!({"dryRun": ["All"]})] {
            let path = if body.is_null() { dry.clone() } else { kind.object_path() };
            assert_eq!(c.delete(&path, body).await.0, 200, "{}", kind.kind);
        }
        assert_eq!(c.get(&kind.object_path()).await.1, stored, "{}", kind.kind);
    }
}

/// `/status` writes the status and nothing else; the object itself writes everything but the status.
#[tokio::test(start_paused = true)]
async fn status_and_the_rest_are_written_separately() {
    let c = Cluster::new().await;
    let all = kinds(&c).await;
    // Conditions are in the status of nearly every kind.
    let condition = json!([{"type": "Tested", "status": "True", "reason": "Test", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let without_conditions =
        ["PersistentVolume", "ResourceQuota", "Ingress", "VolumeAttachment", "CronJob", "ResourceClaim"];
    let tested = |kind: &&Kind| {
        kind.has_subresource("status")
            && !kind.is_alias()
            && !without_conditions.contains(&kind.kind.as_str())
    };
    for kind in all.iter().filter(tested) {
        create(&c, kind).await;
        let path = kind.object_path();
        let (_, stored) = c.get(&path).await;
        let status = format!("{path}/status");
        let patch = json!({"status": {"conditions": condition}, "spec": {"unknown": 1}});
        let (code, written) = c.patch(&status, MERGE, patch).await;
        assert_eq!(code, 200, "{}: {written}", kind.kind);
        let found = |object: &Value| {
            let list = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            list.iter().any(|condition| condition["type"] == "Tested")
        };
        assert!(found(&written), "{}: {written}", kind.kind);
        assert_eq!(written["spec"], stored["spec"], "{}", kind.kind);
        let (code, read) = c.get(&status).await;
        assert!(code == 200 && found(&read), "{}: {read}", kind.kind);
        let mut main = read;
        main["metadata"]["labels"]["x"] = "y".into();
        main["status"]["conditions"] = json!([]);
        let (code, put) = c.put(&path, main).await;
        assert_eq!(code, 200, "{}: {put}", kind.kind);
        assert!(found(&put), "{}: a PUT of the object changes the status: {put}", kind.kind);
        assert_eq!(put["metadata"]["labels"]["x"], "y");
    }
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_reported_for_every_kind() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await {
        let mut object = kind.sample();
        object["unknownField"] = 1.into();
        let warned =
            |warnings: &[String]| warnings.iter().any(|w| w.contains(r#"unknown field \"unknownField\""#));
        let path = |validation: &str| format!("{}?dryRun=All&fieldValidation={validation}", kind.path());
        for (validation, wanted) in [("", true), ("Warn", true), ("Ignore", false)] {
            let (code, made, warnings) =
                c.request_with_warnings("POST", &path(validation), object.clone()).await;
            assert_eq!((code, warned(&warnings)), (201, wanted), "{} {validation}: {made}", kind.kind);
            assert!(made["unknownField"].is_null(), "{}: {made}", kind.kind);
        }
        let (code, status) = c.post(&path("Strict"), object).await;
        assert_eq!(code, 400, "{}: {status}", kind.kind);
        let message = status["message"].as_str().unwrap_or_default();
        assert!(message.contains("strict decoding error: unknown field \"unknownField\""), "{message}");
    }
}

/// An apply that repeats another one changes nothing, and one without a field removes it.
#[tokio::test(start_paused = true)]
async fn every_kind_can_be_applied() {
    for kind in kinds(&Cluster::new().await).await.iter().filter(|kind| !kind.is_alias()) {
        // Alone, because limit ranges and quotas act on other objects.
        let c = Cluster::new().await;
        let path = format!("{}?fieldManager=m", kind.object_path());
        let mut config = kind.sample();
        config["metadata"]["annotations"] = json!({"a": "b"});
        let (code, created) = c.patch(&path, APPLY, config.clone()).await;
        assert_eq!(code, 201, "{}: {created}", kind.kind);
        let (_, stored) = c.get(&kind.object_path()).await;
        let (code, again) = c.patch(&path, APPLY, config.clone()).await;
        assert_eq!((code, &again), (200, &stored), "{}", kind.kind);
        let entry = &stored["metadata"]["managedFields"][0];
        assert_eq!((&entry["manager"], &entry["operation"]), (&json!("m"), &json!("Apply")), "{}", kind.kind);
        assert_eq!(entry["apiVersion"], kind.api_version.as_str());
        config["metadata"].as_object_mut().expect("metadata").remove("annotations");
        let (code, removed) = c.patch(&path, APPLY, config).await;
        assert_eq!(code, 200, "{}: {removed}", kind.kind);
        assert!(removed["metadata"]["annotations"]["a"].is_null(), "{}: {removed}", kind.kind);
    }
}

/// The three kinds of patches agree about a change that all of them can express.
#[tokio::test(start_paused = true)]
async fn patches_of_every_type_agree() {
    for kind in kinds(&Cluster::new().await).await.iter().filter(|kind| !kind.is_alias()) {
        // Alone, because limit ranges and quotas act on other objects.
        let c = Cluster::new().await;
        let created = create(&c, kind).await;
        let dry = format!("{}?dryRun=All", kind.object_path());
        let merge = json!({"metadata": {"labels": {"x": "y"}, "annotations": {"a": "b"}}});
        // A value in a map that exists, or the map.
        let add = |map: &str, key: &str, value: &str| match created["metadata"][map].is_object() {
            true => json!({"op": "add", "path": format!("/metadata/{map}/{key}"), "value": value}),
            false => json!({"op": "add", "path": format!("/metadata/{map}"), "value": {key: value}}),
        };
        let same = json!({"op": "test", "path": "/metadata/uid", "value": created["metadata"]["uid"]});
        let operations = json!([same, add("labels", "x", "y"), add("annotations", "a", "b")]);
        let (code, merged) = c.patch(&dry, MERGE, merge.clone()).await;
        assert_eq!(code, 200, "{}: {merged}", kind.kind);
        for (media, patch) in [(STRATEGIC, merge), (JSON_PATCH, operations)] {
            let (code, patched) = c.patch(&dry, media, patch).await;
            assert_eq!(code, 200, "{} {media}: {patched}", kind.kind);
            assert_eq!(without_versions(&patched), without_versions(&merged), "{} {media}", kind.kind);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_body_belongs_to_the_namespace_of_the_url() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await {
        let mut object = kind.sample();
        object["metadata"]["namespace"] = "kube-system".into();
        let (code, response) = c.post(&format!("{}?dryRun=All", kind.path()), object).await;
        if kind.namespaced {
            assert_eq!(code, 400, "{}: {response}", kind.kind);
        } else {
            // A namespace in an object of the cluster is dropped.
            assert_eq!((code, &response["metadata"]["namespace"]), (201, &Value::Null), "{}", kind.kind);
        }
        let missing = kind.path().replace("/default/", "/nowhere/");
        let mut object = kind.sample();
        object["metadata"].as_object_mut().expect("metadata").remove("namespace");
        let (code, response) = c.post(&missing, object).await;
        assert_eq!(code, if kind.namespaced { 404 } else { 201 }, "{}: {response}", kind.kind);
        if !kind.namespaced {
            c.delete(&kind.object_path(), Value::Null).await;
        }
    }
}
