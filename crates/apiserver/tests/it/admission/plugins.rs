//! `LimitRanger`, `Priority`, `RuntimeClass`, and the lists of enabled plugins.

use kube_embedded_apiserver::{ApiServer, ApiServerBuilder};
use serde_json::{Value, json};

use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const RUNTIMES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

/// A pod with these fields in its spec.
fn with(name: &str, spec: Value) -> Value {
    let mut pod = pod(name, json!({}));
    pod["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    pod
}

async fn created(c: &Cluster, path: &str, object: Value) -> Value {
    let (code, created) = c.post(path, object).await;
    assert_eq!(code, 201, "{created}");
    created
}

/// Why an object is forbidden, without the name of the object.
async fn forbidden(c: &Cluster, path: &str, object: Value) -> String {
    let (code, status) = c.post(path, object).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")), "{status}");
    let message = status["message"].as_str().expect("a message");
    message.split_once(" is forbidden: ").expect("forbidden").1.to_owned()
}

async fn cluster(builder: ApiServerBuilder) -> Cluster {
    let server = builder.seed(5).in_process().await.expect("the server starts");
    let client = server.client();
    Cluster { server, client }
}

#[tokio::test(start_paused = true)]
async fn limit_ranges_give_defaults() {
    let c = Cluster::new().await;
    let limits = json!([{"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}]);
    created(&c, RANGES, json!({"metadata": {"name": "r"}, "spec": {"limits": limits}})).await;
    let made = created(&c, PODS, pod("a", json!({"requests": {"cpu": "200m"}}))).await;
    let resources = &made["spec"]["containers"][0]["resources"];
    assert_eq!(
        *resources,
        json!({"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "500m", "memory": "1Gi"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: memory request for container c; cpu, memory limit for container c"
    );
    assert_eq!(made["status"]["qosClass"], "Burstable");
    // The writer does not own what the plugin set.
    let owned = made["metadata"]["managedFields"][0]["fieldsV1"].to_string();
    assert!(owned.contains("f:requests") && !owned.contains("f:limits"), "{owned}");
}

#[tokio::test(start_paused = true)]
async fn limit_ranges_bound_containers_pods_and_claims() {
    let c = Cluster::new().await;
    let limits = json!([
        {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "2"}},
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}}]);
    created(&c, RANGES, json!({"metadata": {"name": "r"}, "spec": {"limits": limits}})).await;
    let resources = |cpu: &str, limit: &str, memory: &str| json!({"requests": {"cpu": cpu}, "limits": {"cpu": limit, "memory": memory}});
    created(&c, PODS, pod("ok", resources("500m", "1", "1Gi"))).await;
    assert_eq!(
        forbidden(&c, PODS, pod("a", resources("50m", "100m", "1Gi"))).await,
        "minimum cpu usage per Container is 100m, but request is 50m"
    );
    assert_eq!(
        forbidden(&c, PODS, pod("a", resources("100m", "2", "2Gi"))).await,
        "[maximum cpu usage per Container is 1, but limit is 2, cpu max limit to request ratio per Container is 2, but provided \
         ratio is 20.000000, maximum memory usage per Pod is 1Gi, but limit is 2Gi]"
    );
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = |name: &str, storage: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}}}})
    };
    created(&c, claims, claim("ok", "2Gi")).await;
    assert_eq!(
        forbidden(&c, claims, claim("a", "500Mi")).await,
        "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"
    );
    assert_eq!(
        forbidden(&c, claims, claim("a", "3Gi")).await,
        "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"
    );
    // Limits are those of one namespace.
    created(&c, "/api/v1/namespaces/kube-public/pods", pod("a", json!({}))).await;
}

#[tokio::test(start_paused = true)]
async fn priorities_come_from_classes() {
    let c = Cluster::new().await;
    let priority = |pod: &Value| (pod["spec"]["priority"].as_i64(), pod["spec"]["preemptionPolicy"].clone());
    let plain = created(&c, PODS, pod("plain", json!({}))).await;
    assert_eq!(priority(&plain), (Some(0), json!("PreemptLowerPriority")));
    assert_eq!(
        forbidden(&c, PODS, with("a", json!({"priorityClassName": "high"}))).await,
        "no PriorityClass with name high was found"
    );
    created(&c, CLASSES, json!({"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"}))
        .await;
    let high = created(&c, PODS, with("a", json!({"priorityClassName": "high"}))).await;
    assert_eq!(priority(&high), (Some(1000), json!("Never")));
    let sent = with("b", json!({"priorityClassName": "high", "priority": 5}));
    assert!(
        forbidden(&c, PODS, sent).await.starts_with("the integer value of priority (5) must not be provided")
    );
    let system =
        created(&c, PODS, with("system", json!({"priorityClassName": "system-node-critical"}))).await;
    assert_eq!(priority(&system).0, Some(2_000_001_000));
    assert_eq!(c.get(&format!("{CLASSES}/system-cluster-critical")).await.1["value"], 2_000_000_000);
    // An update may leave the priority out.
    let mut next = with("a", json!({"priorityClassName": "high"}));
    next["metadata"]["labels"] = json!({"x": "y"});
    let (code, updated) = c.put(&format!("{PODS}/a"), next).await;
    assert_eq!((code, priority(&updated)), (200, (Some(1000), json!("Never"))), "{updated}");
    assert_eq!(updated["metadata"]["generation"], high["metadata"]["generation"]);
}

#[tokio::test(start_paused = true)]
async fn one_priority_class_is_the_default() {
    let c = Cluster::new().await;
    let class = |name: &str| json!({"metadata": {"name": name}, "value": 7, "globalDefault": true});
    created(&c, CLASSES, class("first")).await;
    let made = created(&c, PODS, pod("a", json!({}))).await;
    assert_eq!(made["spec"]["priority"], 7);
    assert_eq!(made["spec"]["priorityClassName"], "first");
    assert_eq!(
        forbidden(&c, CLASSES, class("second")).await,
        "PriorityClass first is already marked as default. Only one default can exist"
    );
    let (_, mut first) = c.get(&format!("{CLASSES}/first")).await;
    first["description"] = json!("still the default");
    assert_eq!(c.put(&format!("{CLASSES}/first"), first).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn runtime_classes_set_overhead_and_nodes() {
    let c = Cluster::new().await;
    assert_eq!(
        forbidden(&c, PODS, with("a", json!({"runtimeClassName": "vm"}))).await,
        "pod rejected: RuntimeClass \"vm\" not found"
    );
    let class = json!({"metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}});
    created(&c, RUNTIMES, class).await;
    let made =
        created(&c, PODS, with("a", json!({"runtimeClassName": "vm", "nodeSelector": {"zone": "1"}}))).await;
    assert_eq!(made["spec"]["overhead"], json!({"cpu": "250m"}));
    assert_eq!(made["spec"]["nodeSelector"], json!({"vm": "yes", "zone": "1"}));
    let keys: Vec<&Value> =
        made["spec"]["tolerations"].as_array().unwrap().iter().map(|t| &t["key"]).collect();
    assert_eq!(keys, ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "vm"]);
    let other = with("b", json!({"runtimeClassName": "vm", "overhead": {"cpu": "1"}}));
    assert_eq!(
        forbidden(&c, PODS, other).await,
        "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    );
    let elsewhere = with("b", json!({"runtimeClassName": "vm", "nodeSelector": {"vm": "no"}}));
    assert_eq!(
        forbidden(&c, PODS, elsewhere).await,
        "conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no"
    );
    assert_eq!(
        forbidden(&c, PODS, with("b", json!({"overhead": {"cpu": "1"}}))).await,
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    );
}

#[tokio::test(start_paused = true)]
async fn new_nodes_are_not_ready() {
    let c = Cluster::new().await;
    let node = created(&c, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    assert_eq!(
        node["spec"]["taints"],
        json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
    );
}

#[tokio::test(start_paused = true)]
async fn disabled_plugins_have_no_effect() {
    let names = [
        "LimitRanger",
        "Priority",
        "RuntimeClass",
        "DefaultTolerationSeconds",
        "NamespaceLifecycle",
        "TaintNodesByCondition",
        "ServiceAccount",
    ];
    let c = cluster(ApiServer::builder().disable_admission_plugins(names)).await;
    let limits = json!([{"type": "Container", "default": {"cpu": "500m"}}]);
    created(&c, RANGES, json!({"metadata": {"name": "r"}, "spec": {"limits": limits}})).await;
    let made =
        created(&c, PODS, with("a", json!({"priorityClassName": "none", "runtimeClassName": "none"}))).await;
    let spec = &made["spec"];
    assert_eq!(spec["containers"][0]["resources"], json!({}));
    assert!(spec["priority"].is_null() && spec["tolerations"].is_null(), "{spec}");
    let node = created(&c, "/api/v1/nodes", json!({"metadata": {"name": "n"}})).await;
    assert!(node["spec"]["taints"].is_null(), "{node}");
    created(&c, "/api/v1/namespaces/missing/configmaps", json!({"metadata": {"name": "a"}})).await;
}

#[tokio::test(start_paused = true)]
async fn unknown_plugins_are_refused_at_the_start() {
    let start = async |builder: ApiServerBuilder| match builder.in_process().await {
        Ok(_) => "started".to_owned(),
        Err(error) => error.to_string(),
    };
    let unknown = start(ApiServer::builder().disable_admission_plugins(["Quota"])).await;
    assert!(
        unknown.starts_with("unknown admission plugin \"Quota\": this server has NamespaceLifecycle"),
        "{unknown}"
    );
    let missing = start(ApiServer::builder().enable_admission_plugins(["PodSecurity"])).await;
    assert!(missing.starts_with("admission plugin PodSecurity is not implemented"), "{missing}");
}
