//! Warnings about the body of a write, on every path that has a body.

use serde_json::json;

use crate::cluster::{APPLY, Cluster, MERGE, STRATEGIC};

const JSON: &str = "application/json";
const JSON_PATCH: &str = "application/json-patch+json";
const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// A server with one object for each path of a write.
async fn cluster() -> Cluster {
    let cluster = Cluster::new().await;
    let container = json!([{"name": "c", "image": "i"}]);
    for name in ["changed", "bound", "evicted"] {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": container}});
        create(&cluster, PODS, pod).await;
    }
    create(&cluster, MAPS, json!({"metadata": {"name": "m"}})).await;
    create(
        &cluster,
        DEPLOYMENTS,
        json!({"metadata": {"name": "d"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": container}}}}),
    )
    .await;
    create(
        &cluster,
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        json!({"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}),
    )
    .await;
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"n": 1}});
    create(&cluster, WIDGETS, widget).await;
    cluster
}

async fn create(cluster: &Cluster, path: &str, body: serde_json::Value) {
    let (code, created) = cluster.post(path, body).await;
    assert_eq!(code, 201, "{created}");
}

/// The body with a field that occurs twice.
fn twice(rest: &str) -> String {
    format!(r#"{{"metadata":{{"labels":{{"k":"1","k":"2"}}}}{rest}}}"#)
}

fn named(name: &str, rest: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","labels":{{"k":"1","k":"2"}}}}{rest}}}"#)
}

#[tokio::test(start_paused = true)]
async fn every_write_reports_duplicate_fields() {
    let cluster = cluster().await;
    let pod = r#","spec":{"containers":[{"name":"c","image":"i"}]}"#;
    let map = r#","kind":"ConfigMap","apiVersion":"v1""#;
    let widget = r#","kind":"Widget","apiVersion":"example.com/v1""#;
    let scale = r#","kind":"Scale","apiVersion":"autoscaling/v1","spec":{"replicas":2}"#;
    let operation = r#"[{"op":"add","op":"add","path":"/metadata/labels","value":{"k":"v"}}]"#.to_owned();
    let add_replicas = r#"[{"op":"add","op":"add","path":"/spec/replicas","value":3}]"#.to_owned();
    let yaml =
        "metadata:\n  name: yaml\n  labels: {k: '1', k: '2'}\nkind: ConfigMap\napiVersion: v1\n".to_owned();
    let (m, d, w) = (format!("{MAPS}/m"), format!("{DEPLOYMENTS}/d"), format!("{WIDGETS}/w"));
    let p = format!("{PODS}/changed");
    let manager = "?fieldManager=f&force=true";
    for (method, path, media, body) in [
        ("POST", MAPS.to_owned(), JSON, named("new", "")),
        ("POST", format!("{MAPS}?dryRun=All"), JSON, named("dry", "")),
        ("POST", MAPS.to_owned(), "application/yaml", yaml.clone()),
        ("PUT", m.clone(), JSON, named("m", "")),
        ("PUT", format!("{m}?dryRun=All"), JSON, named("m", "")),
        ("PUT", "/api/v1/namespaces/default/endpoints/e".to_owned(), JSON, named("e", "")),
        ("PATCH", m.clone(), MERGE, twice("")),
        ("PATCH", m.clone(), STRATEGIC, twice("")),
        ("PATCH", m.clone(), JSON_PATCH, operation),
        ("PATCH", format!("{m}{manager}"), APPLY, named("m", map)),
        ("PATCH", format!("{m}{manager}&dryRun=All"), APPLY, named("m", map)),
        ("PATCH", format!("{MAPS}/applied{manager}"), APPLY, named("applied", map)),
        ("PATCH", format!("{MAPS}/yaml{manager}"), APPLY, yaml),
        ("PUT", format!("{p}/status"), JSON, named("changed", pod)),
        ("PATCH", format!("{p}/status"), MERGE, twice("")),
        (
            "PATCH",
            format!("{p}/status{manager}"),
            APPLY,
            named("changed", r#","kind":"Pod","apiVersion":"v1""#),
        ),
        ("POST", format!("{PODS}/bound/binding"), JSON, named("bound", r#","target":{"name":"n"}"#)),
        ("POST", format!("{PODS}/evicted/eviction"), JSON, named("evicted", "")),
        ("PUT", format!("{d}/scale"), JSON, named("d", scale)),
        ("PATCH", format!("{d}/scale"), MERGE, twice(r#","spec":{"replicas":3}"#)),
        ("PATCH", format!("{d}/scale"), JSON_PATCH, add_replicas),
        ("PUT", "/api/v1/namespaces/kube-public/finalize".to_owned(), JSON, named("kube-public", "")),
        ("POST", WIDGETS.to_owned(), JSON, named("v", widget)),
        ("PATCH", w.clone(), MERGE, twice("")),
        ("PATCH", format!("{w}{manager}"), APPLY, named("w", widget)),
        ("PATCH", format!("{w}/status"), MERGE, twice("")),
        ("PUT", format!("{w}/scale"), JSON, named("w", scale)),
        (
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(),
            JSON,
            twice(r#","spec":{}"#),
        ),
    ] {
        let (code, response, warnings) = cluster.send_text(method, &path, media, body).await;
        assert!(code < 300, "{method} {path}: {response}");
        // JSON names the path, YAML the line.
        let duplicate =
            |w: &String| w.starts_with(r#"299 - "duplicate field "#) || w.contains("already set in map");
        assert!(warnings.iter().any(duplicate), "{method} {path} {media}: {warnings:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn strict_validation_rejects_what_would_be_a_warning() {
    let cluster = cluster().await;
    let applied = named("m", r#","kind":"ConfigMap","apiVersion":"v1""#);
    let bound = named("bound", r#","target":{"name":"n"}"#);
    for (method, path, media, body) in [
        ("POST", format!("{MAPS}?fieldValidation=Strict"), JSON, named("new", "")),
        ("PATCH", format!("{MAPS}/m?fieldValidation=Strict&fieldManager=f"), APPLY, applied),
        ("POST", format!("{PODS}/bound/binding?fieldValidation=Strict"), JSON, bound),
        ("POST", format!("{PODS}/evicted/eviction?fieldValidation=Strict"), JSON, named("evicted", "")),
    ] {
        let (code, response, _) = cluster.send_text(method, &path, media, body).await;
        let message = response["message"].as_str().unwrap_or_default();
        assert_eq!(code, 400, "{method} {path}: {response}");
        assert!(message.contains("duplicate field \"metadata.labels.k\""), "{message}");
    }
    let (_, pod) = cluster.get(&format!("{PODS}/bound")).await;
    assert!(pod["spec"].get("nodeName").is_none(), "{pod}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_binds_and_evicts_nothing() {
    let cluster = cluster().await;
    let bound = json!({"metadata": {"name": "bound"}, "target": {"name": "n"}});
    let (code, _) = cluster.post(&format!("{PODS}/bound/binding?dryRun=All"), bound).await;
    assert_eq!(code, 201);
    let (code, _) = cluster.post(&format!("{PODS}/evicted/eviction?dryRun=All"), json!({})).await;
    assert_eq!(code, 201);
    let (_, pod) = cluster.get(&format!("{PODS}/bound")).await;
    assert!(pod["spec"].get("nodeName").is_none(), "{pod}");
    assert_eq!(cluster.get(&format!("{PODS}/evicted")).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn warnings_are_shortened_when_they_are_long() {
    let cluster = Cluster::new().await;
    let long: String = (0..60).map(|n| format!(r#","unknown-{n:02}-{}":1"#, "x".repeat(300))).collect();
    let body = format!(r#"{{"metadata":{{"name":"m"}}{long}}}"#);
    let (code, _, warnings) = cluster.send_text("POST", MAPS, JSON, body).await;
    assert_eq!(code, 201);
    let total: usize = warnings.iter().map(String::len).sum();
    assert!(warnings.len() > 10 && total < 6000, "{} warnings of {total} bytes", warnings.len());
    assert!(warnings.iter().all(|warning| warning.len() < 300));
}

/// As in kube-apiserver, which enforces the annotation: here, a second warning says that it has no effect.
#[tokio::test(start_paused = true)]
async fn limiting_accounts_to_their_secrets_is_deprecated() {
    let c = Cluster::new().await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let key = "kubernetes.io/enforce-mountable-secrets";
    let account = |value: &str| json!({"metadata": {"name": "a", "annotations": {key: value}}});
    let deprecated = format!(
        "299 - \"metadata.annotations[{key}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets\""
    );
    let (code, _, warnings) = c.request_with_warnings("POST", accounts, account("false")).await;
    assert_eq!((code, warnings), (201, vec![deprecated.clone()]));
    let path = format!("{accounts}/a");
    let (_, _, warnings) = c.request_with_warnings("PUT", &path, account("false")).await;
    assert_eq!(warnings, Vec::<String>::new(), "it was set before");
    let (_, _, warnings) = c.request_with_warnings("PUT", &path, account("true")).await;
    assert!(warnings.len() == 1 && warnings[0].contains("stored but not enforced"), "{warnings:?}");
    let mut plain = account("true");
    plain["metadata"]["annotations"] = json!({});
    let (_, _, warnings) = c.request_with_warnings("PUT", &path, plain).await;
    assert_eq!(warnings, Vec::<String>::new());
    let (_, _, warnings) = c.request_with_warnings("PUT", &path, account("1")).await;
    assert!(warnings.len() == 2 && warnings.contains(&deprecated), "{warnings:?}");
}
