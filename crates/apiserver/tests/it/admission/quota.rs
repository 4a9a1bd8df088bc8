//! `ResourceQuota`: usage is computed, and objects beyond the quota are rejected.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::cluster::Cluster;

const DEFAULT: &str = "/api/v1/namespaces/default";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

fn quota(name: &str, hard: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"hard": hard}})
}

fn pod(name: &str, cpu: &str) -> Value {
    let resources = json!({"requests": {"cpu": cpu}});
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}})
}

async fn created(c: &Cluster, path: &str, object: Value) -> Value {
    let (code, created) = c.post(path, object).await;
    assert_eq!(code, 201, "{created}");
    created
}

async fn forbidden(c: &Cluster, path: &str, object: Value) -> String {
    let (code, status) = c.post(path, object).await;
    assert_eq!(code, 403, "{status}");
    status["message"].as_str().expect("a message").to_owned()
}

async fn used(c: &Cluster, name: &str) -> Value {
    c.get(&format!("{QUOTAS}/{name}")).await.1["status"]["used"].clone()
}

#[tokio::test(start_paused = true)]
async fn usage_follows_the_objects_of_a_namespace() {
    let c = Cluster::new().await;
    created(&c, &format!("{DEFAULT}/configmaps"), json!({"metadata": {"name": "before"}})).await;
    let hard = json!({"configmaps": "3", "count/deployments.apps": "1", "pods": "2", "requests.cpu": "1", "resourcequotas": "1",
        "services.nodeports": "2"});
    created(&c, QUOTAS, quota("q", hard.clone())).await;
    let (_, stored) = c.get(&format!("{QUOTAS}/q")).await;
    assert_eq!(stored["status"]["hard"], hard);
    let none = json!({"configmaps": "1", "count/deployments.apps": "0", "pods": "0", "requests.cpu": "0", "resourcequotas": "1",
        "services.nodeports": "0"});
    assert_eq!(stored["status"]["used"], none);
    let pods = format!("{DEFAULT}/pods");
    created(&c, &pods, pod("a", "300m")).await;
    created(&c, &pods, pod("b", "500m")).await;
    assert_eq!(used(&c, "q").await["requests.cpu"], "800m");
    assert_eq!(used(&c, "q").await["pods"], "2");
    // A pod that has ended uses nothing.
    let (_, mut b) = c.get(&format!("{pods}/b")).await;
    b["status"]["phase"] = json!("Succeeded");
    assert_eq!(c.put(&format!("{pods}/b/status"), b).await.0, 200);
    assert_eq!(used(&c, "q").await["requests.cpu"], "300m");
    let (code, _) = c.delete(&format!("{pods}/a"), json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(code, 200);
    assert_eq!(used(&c, "q").await["pods"], "0");
    // A changed quota has its usage at once.
    let (_, mut stored) = c.get(&format!("{QUOTAS}/q")).await;
    stored["spec"]["hard"] = json!({"count/pods": "5"});
    assert_eq!(c.put(&format!("{QUOTAS}/q"), stored).await.0, 200);
    assert_eq!(used(&c, "q").await, json!({"count/pods": "1"}));
}

#[tokio::test(start_paused = true)]
async fn objects_beyond_a_quota_are_rejected() {
    let c = Cluster::new().await;
    created(&c, QUOTAS, quota("q", json!({"pods": "2", "requests.cpu": "1", "configmaps": "1"}))).await;
    let pods = format!("{DEFAULT}/pods");
    created(&c, &pods, pod("a", "600m")).await;
    assert_eq!(
        forbidden(&c, &pods, pod("b", "600m")).await,
        "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1"
    );
    let bare = json!({"metadata": {"name": "b"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    assert_eq!(
        forbidden(&c, &pods, bare).await,
        "pods \"b\" is forbidden: failed quota: q: must specify requests.cpu for: c"
    );
    // A rejected object is not charged, nor one that already exists, nor a dry run.
    assert_eq!(c.post(&pods, pod("a", "100m")).await.0, 409);
    assert_eq!(c.post(&format!("{pods}?dryRun=All"), pod("b", "100m")).await.0, 201);
    assert_eq!(used(&c, "q").await, json!({"configmaps": "0", "pods": "1", "requests.cpu": "600m"}));
    created(&c, &pods, pod("b", "400m")).await;
    assert_eq!(
        forbidden(&c, &pods, pod("c", "1m")).await,
        "pods \"c\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=1m, used: pods=2,requests.cpu=1, limited: \
         pods=2,requests.cpu=1"
    );
    created(&c, &format!("{DEFAULT}/configmaps"), json!({"metadata": {"name": "a"}})).await;
    assert!(
        forbidden(&c, &format!("{DEFAULT}/configmaps"), json!({"metadata": {"name": "b"}})).await.contains(
            "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
        )
    );
    // Other namespaces have no quota.
    created(&c, "/api/v1/namespaces/kube-public/configmaps", json!({"metadata": {"name": "b"}})).await;
}

#[tokio::test(start_paused = true)]
async fn scopes_select_pods() {
    let c = Cluster::new().await;
    let scoped = |name: &str, scope: &str| {
        let mut quota = quota(name, json!({"pods": "1"}));
        quota["spec"]["scopes"] = json!([scope]);
        quota
    };
    created(&c, QUOTAS, scoped("best-effort", "BestEffort")).await;
    created(&c, QUOTAS, scoped("terminating", "Terminating")).await;
    let selector =
        json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]});
    let mut by_priority = quota("high", json!({"pods": "1"}));
    by_priority["spec"]["scopeSelector"] = selector;
    created(&c, QUOTAS, by_priority).await;
    let class = json!({"metadata": {"name": "high"}, "value": 10});
    created(&c, "/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
    let pods = format!("{DEFAULT}/pods");
    created(&c, &pods, pod("burstable", "1m")).await;
    let mut important = pod("important", "1m");
    important["spec"]["priorityClassName"] = json!("high");
    created(&c, &pods, important.clone()).await;
    important["metadata"]["name"] = json!("also-important");
    assert!(forbidden(&c, &pods, important).await.contains("exceeded quota: high"));
    let mut brief = pod("brief", "1m");
    brief["spec"]["activeDeadlineSeconds"] = json!(5);
    created(&c, &pods, brief).await;
    for (name, pods) in [("best-effort", "0"), ("terminating", "1"), ("high", "1")] {
        assert_eq!(used(&c, name).await, json!({"pods": pods}), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn changed_services_and_claims_are_checked() {
    let c = Cluster::new().await;
    let hard = json!({"services.loadbalancers": "0", "requests.storage": "2Gi", "fast.storageclass.storage.k8s.io/requests.storage": "2Gi"});
    created(&c, QUOTAS, quota("q", hard)).await;
    let services = format!("{DEFAULT}/services");
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let mut service = created(&c, &services, service).await;
    service["spec"]["type"] = json!("LoadBalancer");
    let (code, status) = c.put(&format!("{services}/s"), service).await;
    assert_eq!(code, 403, "{status}");
    assert!(status["message"].as_str().unwrap().contains("requested: services.loadbalancers=1"), "{status}");
    let claims = format!("{DEFAULT}/persistentvolumeclaims");
    let claim = |name: &str, storage: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
            "resources": {"requests": {"storage": storage}}}})
    };
    created(&c, &claims, claim("a", "1536Mi")).await;
    let fast = "fast.storageclass.storage.k8s.io/requests.storage";
    assert_eq!(used(&c, "q").await[fast], "1536Mi");
    assert!(forbidden(&c, &claims, claim("b", "1Gi")).await.contains("requests.storage=1Gi, used:"));
}

#[tokio::test(start_paused = true)]
async fn the_plugin_needs_the_usage() {
    let start = async |builder: kube_embedded_apiserver::ApiServerBuilder| {
        let server = builder.seed(5).in_process().await.expect("the server starts");
        let client = server.client();
        Cluster { server, client }
    };
    let maps = format!("{DEFAULT}/configmaps");
    // Nothing computes the usage, so that the plugin is off.
    let c = start(ApiServer::builder().quota_usage(false)).await;
    created(&c, QUOTAS, quota("q", json!({"configmaps": "0"}))).await;
    created(&c, &maps, json!({"metadata": {"name": "a"}})).await;
    assert!(c.get(&format!("{QUOTAS}/q")).await.1["status"]["used"].is_null());
    // Enabled by name, for a cluster whose controller computes the usage.
    let c = start(ApiServer::builder().quota_usage(false).enable_admission_plugins(["ResourceQuota"])).await;
    let mut stored = created(&c, QUOTAS, quota("q", json!({"configmaps": "1"}))).await;
    created(&c, &maps, json!({"metadata": {"name": "a"}})).await;
    stored["status"] = json!({"hard": {"configmaps": "1"}});
    assert_eq!(c.put(&format!("{QUOTAS}/q/status"), stored.clone()).await.0, 200);
    assert!(
        forbidden(&c, &maps, json!({"metadata": {"name": "b"}}))
            .await
            .contains("status unknown for quota: q, resources: configmaps")
    );
    let (_, mut stored) = c.get(&format!("{QUOTAS}/q")).await;
    stored["status"] = json!({"hard": {"configmaps": "1"}, "used": {"configmaps": "0"}});
    assert_eq!(c.put(&format!("{QUOTAS}/q/status"), stored).await.0, 200);
    created(&c, &maps, json!({"metadata": {"name": "b"}})).await;
    assert_eq!(used(&c, "q").await, json!({"configmaps": "1"}));
    assert_eq!(c.post(&maps, json!({"metadata": {"name": "c"}})).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn claims_count_the_devices_of_each_class() {
    let c = Cluster::new().await;
    let (gold, silver) =
        ("gold.deviceclass.resource.k8s.io/devices", "silver.deviceclass.resource.k8s.io/devices");
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let hard = json!({gold: "40", silver: "5", "count/resourceclaims.resource.k8s.io": "9"});
    created(&c, QUOTAS, quota("q", hard)).await;
    let claim = |name: &str, requests: Value| {
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name},
            "spec": {"devices": {"requests": requests}}})
    };
    let one = json!([{"name": "r", "exactly": {"deviceClassName": "gold"}}]);
    let one = created(&c, claims, claim("one", one)).await;
    let exactly = &one["spec"]["devices"]["requests"][0]["exactly"];
    assert_eq!(
        (&exactly["allocationMode"], &exactly["count"]),
        (&json!("ExactCount"), &json!(1)),
        "defaults"
    );
    // The worst case of the alternatives, for each class.
    let alternatives = json!([
        {"name": "a", "deviceClassName": "gold", "count": 2},
        {"name": "b", "deviceClassName": "silver", "count": 4},
        {"name": "c", "deviceClassName": "silver"},
    ]);
    created(&c, claims, claim("either", json!([{"name": "r", "firstAvailable": alternatives}]))).await;
    let all = json!([{"name": "r", "exactly": {"deviceClassName": "gold", "allocationMode": "All"}}]);
    created(&c, claims, claim("all", all.clone())).await;
    let expected = json!({gold: "35", silver: "4", "count/resourceclaims.resource.k8s.io": "3"});
    assert_eq!(used(&c, "q").await, expected);
    let message = forbidden(&c, claims, claim("more", all)).await;
    assert!(message.contains(&format!("requested: {gold}=32, used: {gold}=35")), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_in_the_scope_of_every_attributes_class_it_has_or_gets() {
    let c = Cluster::new().await;
    let mut scoped = quota("q", json!({"persistentvolumeclaims": "3"}));
    scoped["spec"]["scopeSelector"] = json!({"matchExpressions":
        [{"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]}]});
    created(&c, QUOTAS, scoped).await;
    let claims = format!("{DEFAULT}/persistentvolumeclaims");
    let claim = json!({"metadata": {"name": "a"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "volumeAttributesClassName": "silver", "resources": {"requests": {"storage": "1Gi"}}}});
    created(&c, &claims, claim).await;
    assert_eq!(used(&c, "q").await, json!({"persistentvolumeclaims": "0"}));
    let (_, mut claim) = c.get(&format!("{claims}/a")).await;
    claim["status"]["currentVolumeAttributesClassName"] = json!("gold");
    assert_eq!(c.put(&format!("{claims}/a/status"), claim).await.0, 200);
    assert_eq!(used(&c, "q").await, json!({"persistentvolumeclaims": "1"}));
}
