//! Built-in kinds in several versions, and kinds that kube-apiserver serves in a special way.

use serde_json::{Value, json};

use crate::cluster::{APPLY, Cluster, MERGE};

const V1: &str = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers";
const V2: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

fn autoscaler(version: &str, spec: Value) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let mut object = json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "a"}, "spec": spec});
    object["spec"]["scaleTargetRef"] = target;
    object
}

fn memory() -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": 60});
    json!([{"type": "Resource", "resource": {"name": "memory", "target": target}}])
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_is_one_object_in_two_versions() {
    let c = Cluster::new().await;
    let (code, created) = c.post(V1, autoscaler("v1", json!({"maxReplicas": 5}))).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(created["spec"]["targetCPUUtilizationPercentage"], 80, "the default");
    assert_eq!(created["spec"]["minReplicas"], 1);

    let (_, v2) = c.get(&format!("{V2}/a")).await;
    assert_eq!(
        (&v2["apiVersion"], &v2["metadata"]["uid"]),
        (&json!("autoscaling/v2"), &created["metadata"]["uid"])
    );
    assert_eq!(v2["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 80);
    assert!(v2["spec"].get("targetCPUUtilizationPercentage").is_none(), "{v2}");

    let patch = json!({"spec": {"metrics": memory()}});
    assert_eq!(c.patch(&format!("{V2}/a"), MERGE, patch).await.0, 200);
    let (_, list) = c.get(V1).await;
    let v1 = &list["items"][0];
    assert!(v1["spec"].get("targetCPUUtilizationPercentage").is_none(), "{v1}");
    assert_eq!(
        v1["metadata"]["annotations"][METRICS],
        r#"[{"resource":{"name":"memory","targetAverageUtilization":60},"type":"Resource"}]"#
    );

    // A client of v1 does not lose what it cannot see.
    let (code, _) = c.patch(&format!("{V1}/a"), MERGE, json!({"spec": {"maxReplicas": 7}})).await;
    assert_eq!(code, 200);
    let (_, v2) = c.get(&format!("{V2}/a")).await;
    assert_eq!((&v2["spec"]["maxReplicas"], &v2["spec"]["metrics"]), (&json!(7), &memory()));
    assert!(v2["metadata"].get("annotations").is_none(), "{v2}");
}

#[tokio::test(start_paused = true)]
async fn autoscalers_of_both_versions_can_be_applied_watched_and_deleted() {
    let c = Cluster::new().await;
    let spec = json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 40});
    let (code, applied) = c.patch(&format!("{V1}/a?fieldManager=m"), APPLY, autoscaler("v1", spec)).await;
    assert_eq!(code, 201, "{applied}");
    assert_eq!(applied["metadata"]["managedFields"][0]["apiVersion"], "autoscaling/v1");
    let spec = json!({"maxReplicas": 3, "minReplicas": 4});
    let (code, refused) = c.post(V1, autoscaler("v1", spec)).await;
    assert_eq!(code, 422, "{refused}");
    assert_eq!(refused["details"]["causes"][0]["field"], "spec.maxReplicas");
    for path in [V1, V2] {
        let (_, table) = c.get_as(path, TABLE).await;
        assert_eq!(table["rows"][0]["cells"][2], "cpu: <unknown>/40%", "{path}");
    }
    assert_eq!(c.delete(&format!("{V1}/a"), Value::Null).await.0, 200);
    assert_eq!(c.get(&format!("{V2}/a")).await.0, 404);
}

fn api_service(name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec});
    for (field, value) in [("group", "metrics.example.com"), ("version", "v1")] {
        object["spec"][field] = value.into();
    }
    object
}

#[tokio::test(start_paused = true)]
async fn api_services_are_stored_and_requests_are_not_forwarded() {
    let c = Cluster::new().await;
    let service = json!({"namespace": "default", "name": "metrics"});
    let spec = json!({"groupPriorityMinimum": 100, "versionPriority": 100, "service": service});
    let object = api_service("v1.metrics.example.com", spec);
    let (code, created, warnings) = c.request_with_warnings("POST", API_SERVICES, object).await;
    assert_eq!((code, &created["spec"]["service"]["port"]), (201, &json!(443)), "{created}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("forwards no requests"), "{warnings:?}");
    assert_eq!(c.get("/apis/metrics.example.com/v1/pods").await.0, 404);
    let status = json!({"status": {"conditions": [{"type": "Available", "status": "False", "reason": "ServiceNotFound"}]}});
    assert_eq!(c.patch(&format!("{API_SERVICES}/v1.metrics.example.com/status"), MERGE, status).await.0, 200);
    let (_, table) = c.get_as(API_SERVICES, TABLE).await;
    assert_eq!(table["rows"][0]["cells"][1], "default/metrics");
    assert_eq!(table["rows"][0]["cells"][2], "False (ServiceNotFound)");

    let local = json!({"groupPriorityMinimum": 20_001, "insecureSkipTLSVerify": true});
    let (code, refused) = c.post(API_SERVICES, api_service("other", local)).await;
    assert_eq!(code, 422, "{refused}");
    let fields: Vec<&str> = refused["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        ["metadata.name", "spec.groupPriorityMinimum", "spec.versionPriority", "spec.insecureSkipTLSVerify"]
    );
}

#[tokio::test(start_paused = true)]
async fn component_statuses_can_only_be_read() {
    let c = Cluster::new().await;
    let (code, list) = c.get("/api/v1/componentstatuses").await;
    assert_eq!((code, &list["kind"], &list["items"]), (200, &json!("ComponentStatusList"), &json!([])));
    assert_eq!(c.post("/api/v1/componentstatuses", json!({"metadata": {"name": "a"}})).await.0, 405);
    assert_eq!(c.get("/api/v1/componentstatuses/scheduler").await.0, 404);
}

/// Every group version that clients of 1.36 expect of each cluster.
#[tokio::test(start_paused = true)]
async fn both_versions_are_in_discovery_and_the_newer_one_is_preferred() {
    let c = Cluster::new().await;
    let (_, group) = c.get("/apis/autoscaling").await;
    assert_eq!(group["preferredVersion"]["version"], "v2");
    for version in ["v1", "v2"] {
        let (_, resources) = c.get(&format!("/apis/autoscaling/{version}")).await;
        assert_eq!(resources["resources"][0]["name"], "horizontalpodautoscalers");
        // Both versions are stored in the same form.
        assert_eq!(resources["resources"][0]["storageVersionHash"], "qwQve8ut294=");
    }
    let (_, resources) = c.get("/apis/apiregistration.k8s.io/v1").await;
    assert_eq!(resources["resources"][0]["name"], "apiservices");
}
