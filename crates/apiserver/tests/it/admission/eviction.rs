//! Evictions respect disruption budgets, whose status a controller maintains.

use serde_json::{Value, json};

use crate::cluster::Cluster;

const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// A pod with the label `app=web` on a node, in a phase, and ready or not.
async fn pod(c: &Cluster, name: &str, phase: &str, ready: bool) {
    let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let (code, mut pod) = c.post(PODS, pod).await;
    assert_eq!(code, 201, "{pod}");
    pod["status"] = json!({"phase": phase, "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}]});
    let (code, pod) = c.put(&format!("{PODS}/{name}/status"), pod).await;
    assert_eq!(code, 200, "{pod}");
}

/// A disruption budget for `app=web` with this status.
async fn budget(c: &Cluster, name: &str, spec: Value, status: Value) {
    let mut budget = json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        budget["spec"][field] = value.clone();
    }
    let (code, mut budget) = c.post(BUDGETS, budget).await;
    assert_eq!(code, 201, "{budget}");
    if !status.is_null() {
        budget["status"] = status;
        let (code, budget) = c.put(&format!("{BUDGETS}/{name}/status"), budget).await;
        assert_eq!(code, 200, "{budget}");
    }
}

fn status(allowed: i64, current: i64, desired: i64) -> Value {
    json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": current, "desiredHealthy": desired,
        "expectedPods": current})
}

async fn evict(c: &Cluster, name: &str) -> (u16, Value) {
    c.post(&format!("{PODS}/{name}/eviction"), json!({"metadata": {"name": name}})).await
}

/// The cause of a rejected eviction.
fn cause(response: &(u16, Value)) -> &str {
    assert_eq!((response.0, &response.1["reason"]), (429, &json!("TooManyRequests")), "{}", response.1);
    let text = "Cannot evict pod as it would violate the pod's disruption budget.";
    assert_eq!(response.1["message"], text);
    let cause = &response.1["details"]["causes"][0];
    assert_eq!(cause["reason"], "DisruptionBudget");
    cause["message"].as_str().expect("a message")
}

async fn exists(c: &Cluster, name: &str) -> bool {
    let (code, pod) = c.get(&format!("{PODS}/{name}")).await;
    code == 200 && pod["metadata"]["deletionTimestamp"].is_null()
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_charged_until_it_is_used_up() {
    let c = Cluster::new().await;
    for name in ["a", "b"] {
        pod(&c, name, "Running", true).await;
    }
    budget(&c, "web", json!({}), status(1, 2, 1)).await;
    let (code, dry) =
        c.post(&format!("{PODS}/a/eviction?dryRun=All"), json!({"metadata": {"name": "a"}})).await;
    assert_eq!(code, 201, "{dry}");
    assert!(exists(&c, "a").await);
    assert_eq!(evict(&c, "a").await.0, 201);
    let (_, deleted) = c.get(&format!("{PODS}/a")).await;
    let conditions = deleted["status"]["conditions"].as_array().expect("conditions");
    assert!(
        conditions.iter().any(|c| c["type"] == "DisruptionTarget" && c["reason"] == "EvictionByEvictionAPI")
    );
    let (_, charged) = c.get(&format!("{BUDGETS}/web")).await;
    assert_eq!(charged["status"]["disruptionsAllowed"], 0);
    assert!(charged["status"]["disruptedPods"]["a"].is_string(), "{charged}");
    assert_eq!(charged["status"]["conditions"][0]["reason"], "InsufficientPods");
    let blocked = evict(&c, "b").await;
    assert_eq!(cause(&blocked), "The disruption budget web does not allow evicting pods currently");
    assert!(exists(&c, "b").await);
}

#[tokio::test(start_paused = true)]
async fn the_cause_names_the_budget() {
    let c = Cluster::new().await;
    pod(&c, "a", "Running", true).await;
    // No controller has seen it yet.
    budget(&c, "web", json!({}), Value::Null).await;
    let blocked = evict(&c, "a").await;
    assert_eq!(cause(&blocked), "The disruption budget web is still being processed by the server.");
    assert_eq!(blocked.1["details"]["retryAfterSeconds"], 10);
    let (_, mut now) = c.get(&format!("{BUDGETS}/web")).await;
    now["status"] = status(0, 1, 1);
    assert_eq!(c.put(&format!("{BUDGETS}/web/status"), now).await.0, 200);
    let blocked = evict(&c, "a").await;
    assert_eq!(cause(&blocked), "The disruption budget web needs 1 healthy pods and has 1 currently");
    assert!(blocked.1["details"]["retryAfterSeconds"].is_null());
    budget(&c, "other", json!({}), status(1, 1, 0)).await;
    let (code, several) = evict(&c, "a").await;
    assert_eq!(code, 500);
    let text =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!(several["message"], text);
    assert!(exists(&c, "a").await);
}

#[tokio::test(start_paused = true)]
async fn pods_that_do_not_run_are_not_protected() {
    let c = Cluster::new().await;
    budget(&c, "web", json!({}), status(0, 0, 1)).await;
    for phase in ["Pending", "Succeeded", "Failed"] {
        let name = phase.to_lowercase();
        pod(&c, &name, phase, false).await;
        assert_eq!(evict(&c, &name).await.0, 201, "{phase}");
        assert!(!exists(&c, &name).await);
    }
    pod(&c, "running", "Running", true).await;
    assert_eq!(evict(&c, "running").await.0, 429);
}

#[tokio::test(start_paused = true)]
async fn unready_pods_follow_the_policy_of_the_budget() {
    let c = Cluster::new().await;
    for name in ["a", "b", "c"] {
        pod(&c, name, "Running", false).await;
    }
    // Not enough healthy pods: an unready one may become healthy.
    budget(&c, "web", json!({}), status(0, 0, 1)).await;
    assert_eq!(evict(&c, "a").await.0, 429);
    let update = async |spec: Value, status: Value| {
        let (_, mut now) = c.get(&format!("{BUDGETS}/web")).await;
        for (field, value) in spec.as_object().into_iter().flatten() {
            now["spec"][field] = value.clone();
        }
        let (code, mut now) = c.put(&format!("{BUDGETS}/web"), now).await;
        assert_eq!(code, 200, "{now}");
        now["status"] = status;
        now["status"]["observedGeneration"] = now["metadata"]["generation"].clone();
        assert_eq!(c.put(&format!("{BUDGETS}/web/status"), now).await.0, 200);
    };
    // Enough of them: the budget is not charged.
    update(json!({}), status(0, 1, 1)).await;
    assert_eq!(evict(&c, "a").await.0, 201);
    update(json!({"unhealthyPodEvictionPolicy": "AlwaysAllow"}), status(0, 0, 1)).await;
    assert_eq!(evict(&c, "b").await.0, 201);
    let (_, budget) = c.get(&format!("{BUDGETS}/web")).await;
    assert!(budget["status"]["disruptedPods"].is_null(), "{budget}");
}
