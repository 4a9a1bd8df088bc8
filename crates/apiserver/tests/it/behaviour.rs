//! Writes beyond the recorded scenarios, in process under a paused clock.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::cluster::{APPLY, Cluster, MERGE, STRATEGIC};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}})
}

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
}

#[tokio::test(start_paused = true)]
async fn a_put_with_another_uid_conflicts() {
    let c = Cluster::new().await;
    c.post(MAPS, json!({"metadata": {"name": "a"}})).await;
    let uid = "11111111-2222-3333-4444-555555555555";
    let (code, status) = c.put(&format!("{MAPS}/a"), json!({"metadata": {"name": "a", "uid": uid}})).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
    assert!(
        status["message"].as_str().unwrap().contains("Precondition failed: UID in precondition"),
        "{status}"
    );
}

#[tokio::test(start_paused = true)]
async fn propagation_policies_add_a_finalizer() {
    let c = Cluster::new().await;
    for (policy, finalizer) in [("Orphan", "orphan"), ("Foreground", "foregroundDeletion")] {
        c.post(MAPS, json!({"metadata": {"name": "a"}})).await;
        let (code, object) = c.delete(&format!("{MAPS}/a"), json!({"propagationPolicy": policy})).await;
        assert_eq!((code, &object["metadata"]["finalizers"]), (200, &json!([finalizer])));
        assert_eq!(object["metadata"]["deletionGracePeriodSeconds"], 0);
        let (code, status) = c.delete(&format!("{MAPS}/a"), json!({"propagationPolicy": "Background"})).await;
        assert_eq!((code, status["status"].as_str()), (200, Some("Success")), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn versions_guard_deletes_and_dry_runs_change_nothing() {
    let c = Cluster::new().await;
    let (_, made) = c.post(MAPS, json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await;
    let version = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    assert_eq!(c.delete(&format!("{MAPS}/a?dryRun=All"), Value::Null).await.0, 200);
    let (code, dry) = c.patch(&format!("{MAPS}/a?dryRun=All"), MERGE, json!({"data": {"k": "2"}})).await;
    assert_eq!((code, &dry["data"]["k"]), (200, &json!("2")));
    let (_, now) = c.get(&format!("{MAPS}/a")).await;
    assert_eq!(
        (&now["data"]["k"], now["metadata"]["resourceVersion"].as_str()),
        (&json!("1"), Some(version.as_str()))
    );
    let wrong = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(c.delete(&format!("{MAPS}/a"), wrong).await.0, 409);
    let right = json!({"preconditions": {"resourceVersion": version}});
    assert_eq!(c.delete(&format!("{MAPS}/a"), right).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn pods_are_nearly_immutable() {
    let c = Cluster::new().await;
    assert_eq!(c.post(PODS, pod("p")).await.0, 201);
    let path = format!("{PODS}/p");
    let image = json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}});
    let (code, changed) = c.patch(&path, STRATEGIC, image).await;
    assert_eq!((code, &changed["metadata"]["generation"]), (200, &json!(2)));
    let (code, status) = c.patch(&path, MERGE, json!({"spec": {"hostname": "h"}})).await;
    assert_eq!((code, status["details"]["causes"][0]["field"].as_str()), (422, Some("spec")));
    let (_, labelled) = c.patch(&path, MERGE, json!({"metadata": {"labels": {"x": "1"}}})).await;
    assert_eq!(labelled["metadata"]["generation"], 2);
    let (_, running) =
        c.patch(&format!("{path}/status"), MERGE, json!({"status": {"phase": "Running"}})).await;
    assert_eq!(
        (&running["status"]["phase"], &running["metadata"]["generation"]),
        (&json!("Running"), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let c = Cluster::new().await;
    c.post(PODS, pod("p")).await;
    let bind = |node: &str| json!({"target": {"name": node}});
    assert_eq!(c.post(&format!("{PODS}/p/binding"), bind("n1")).await.0, 201);
    assert_eq!(c.post(&format!("{PODS}/p/binding"), bind("n2")).await.0, 409);
    assert_eq!(c.post(&format!("{PODS}/q/binding"), bind("n1")).await.0, 404);
    let (_, p) = c.get(&format!("{PODS}/p")).await;
    assert_eq!(p["spec"]["nodeName"], "n1");
    assert!(
        p["status"]["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["type"] == "PodScheduled" && c["status"] == "True")
    );
    let (_, list) = c.get("/api/v1/pods?fieldSelector=spec.host%3Dn1").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn generations_follow_the_rules_of_their_kind() {
    let c = Cluster::new().await;
    c.post(DEPLOYMENTS, deployment("d")).await;
    let path = format!("{DEPLOYMENTS}/d");
    let (_, annotated) = c.patch(&path, MERGE, json!({"metadata": {"annotations": {"a": "1"}}})).await;
    assert_eq!(annotated["metadata"]["generation"], 2, "annotations of a deployment change its generation");
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = json!({"metadata": {"name": "s"}, "addressType": "IPv4", "endpoints": []});
    let (code, made) = c.post(slices, slice).await;
    assert_eq!((code, &made["metadata"]["generation"]), (201, &json!(1)));
    let ports = json!({"ports": [{"port": 80}]});
    assert_eq!(c.patch(&format!("{slices}/s"), MERGE, ports).await.1["metadata"]["generation"], 2);
    let selector = json!({"spec": {"selector": {"matchLabels": {"app": "other"}}}});
    assert_eq!(c.patch(&path, MERGE, selector).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn services_keep_their_address() {
    let c = Cluster::new().await;
    let services = "/api/v1/namespaces/default/services";
    let service = json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let (_, made) = c.post(services, service.clone()).await;
    assert!(made["spec"]["ports"][0]["nodePort"].as_i64().unwrap() >= 30_000);
    let (code, put) = c.put(&format!("{services}/s"), service).await;
    assert_eq!((code, &put["spec"]["clusterIP"]), (200, &made["spec"]["clusterIP"]));
    let (code, created) = c
        .put(
            &format!("{services}/new"),
            json!({"metadata": {"name": "new"}, "spec": {"ports": [{"port": 1}]}}),
        )
        .await;
    assert_eq!((code, created["metadata"]["name"].as_str()), (201, Some("new")), "a PUT creates services");
    let none = json!({"metadata": {"name": "bad"}, "spec": {}});
    assert_eq!(c.post(services, none).await.1["details"]["causes"][0]["field"], "spec.ports");
}

#[tokio::test(start_paused = true)]
async fn scale_is_checked_and_guarded() {
    let c = Cluster::new().await;
    c.post(DEPLOYMENTS, deployment("d")).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    assert_eq!(c.patch(&path, MERGE, json!({"spec": {"replicas": -1}})).await.0, 422);
    let stale = json!({"metadata": {"name": "d", "resourceVersion": "1"}, "spec": {"replicas": 4}});
    assert_eq!(c.put(&path, stale).await.0, 409);
    let (code, scale) = c.put(&path, json!({"metadata": {"name": "d"}, "spec": {"replicas": 4}})).await;
    assert_eq!((code, &scale["spec"]["replicas"]), (200, &json!(4)));
    assert_eq!(c.get(&format!("{MAPS}/a/scale")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn scale_warns_of_fields_that_it_does_not_have() {
    let c = Cluster::new().await;
    c.post(DEPLOYMENTS, deployment("d")).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let unknown = json!({"metadata": {"name": "d"}, "spec": {"replicas": 4, "size": 1}});
    for query in ["", "?dryRun=All"] {
        let (code, _, warnings) =
            c.request_with_warnings("PUT", &format!("{path}{query}"), unknown.clone()).await;
        assert_eq!((code, warnings), (200, vec!["299 - \"unknown field \\\"spec.size\\\"\"".to_owned()]));
    }
    let (code, _, warnings) =
        c.request_with_warnings("PUT", &format!("{path}?fieldValidation=Ignore"), unknown.clone()).await;
    assert_eq!((code, warnings), (200, Vec::new()));
    let (code, status) = c.put(&format!("{path}?fieldValidation=Strict"), unknown).await;
    assert_eq!(code, 400);
    assert!(
        status["message"].as_str().is_some_and(|m| m.contains("unknown field \"spec.size\"")),
        "{status}"
    );
    let mistyped = json!({"metadata": {"name": "d"}, "spec": {"replicas": "many"}});
    assert_eq!(c.put(&path, mistyped).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn namespaces_wait_for_finalize_if_emptying_is_off() {
    let server =
        ApiServer::builder().seed(5).empty_namespaces(false).in_process().await.expect("the server starts");
    let client = server.client();
    let c = Cluster { server, client };
    c.post("/api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
    let (code, dying) = c.delete("/api/v1/namespaces/n", Value::Null).await;
    assert_eq!((code, &dying["status"]["phase"]), (200, &json!("Terminating")));
    let (_, kept) = c.put("/api/v1/namespaces/n", json!({"metadata": {"name": "n"}, "spec": {}})).await;
    assert_eq!(kept["spec"]["finalizers"], json!(["kubernetes"]), "only /finalize removes them");
    let (code, _) =
        c.put("/api/v1/namespaces/n/finalize", json!({"metadata": {"name": "n"}, "spec": {}})).await;
    assert_eq!((code, c.get("/api/v1/namespaces/n").await.0), (200, 404));
    assert!(c.server.storage().current_revision().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn applied_status_and_spec_have_separate_owners() {
    let c = Cluster::new().await;
    let mut config = deployment("d");
    config["apiVersion"] = "apps/v1".into();
    config["kind"] = "Deployment".into();
    let (code, _) = c.patch(&format!("{DEPLOYMENTS}/d?fieldManager=me"), APPLY, config.clone()).await;
    assert_eq!(code, 201);
    let status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 3}});
    let (code, object) =
        c.patch(&format!("{DEPLOYMENTS}/d/status?fieldManager=watcher"), APPLY, status).await;
    assert_eq!((code, &object["status"]["replicas"]), (200, &json!(3)), "{object}");
    let entry = |object: &Value, manager: &str| {
        object["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .find(|e| e["manager"] == manager)
            .cloned()
            .unwrap()
    };
    assert_eq!(entry(&object, "watcher")["subresource"], "status");
    assert_eq!(entry(&object, "watcher")["fieldsV1"], json!({"f:status": {"f:replicas": {}}}));
    let version = object["metadata"]["resourceVersion"].clone();
    let (_, again) = c.patch(&format!("{DEPLOYMENTS}/d?fieldManager=me"), APPLY, config.clone()).await;
    assert_eq!(again["metadata"]["resourceVersion"], version, "applying the same again changes nothing");
    c.patch(&format!("{DEPLOYMENTS}/d/scale?fieldManager=scaler"), MERGE, json!({"spec": {"replicas": 9}}))
        .await;
    let (code, conflict) = c.patch(&format!("{DEPLOYMENTS}/d?fieldManager=me"), APPLY, config).await;
    assert_eq!(
        (code, conflict["details"]["causes"][0]["field"].as_str()),
        (409, Some(".spec.replicas")),
        "{conflict}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_applied_configuration_with_a_uid_is_for_that_object_only() {
    let c = Cluster::new().await;
    let uid = "0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1";
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "u", "uid": uid}});
    let path = format!("{MAPS}/u?fieldManager=me");
    let (code, status) = c.patch(&path, APPLY, config.clone()).await;
    let why = "uid mismatch: the provided object specified uid 0b5ce5e2-36ce-4a0a-bd2f-9be5cf7bd0a1, \
               and no existing object was found";
    assert_eq!(code, 409);
    assert!(status["message"].as_str().unwrap().contains(why), "{status}");
    assert_eq!(c.get(&format!("{MAPS}/u")).await.0, 404);
    c.post(MAPS, json!({"metadata": {"name": "u"}})).await;
    let (code, status) = c.patch(&path, APPLY, config).await;
    assert_eq!(
        (code, status["details"]["causes"][0]["field"].as_str()),
        (422, Some("metadata.uid")),
        "{status}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_applied_configuration_has_no_managed_fields() {
    let c = Cluster::new().await;
    for (managed, expected) in [(json!([]), 400), (json!([{"manager": "other"}]), 400), (Value::Null, 201)] {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "managedFields": managed}});
        let (code, status) = c.patch(&format!("{MAPS}/m?fieldManager=me"), APPLY, config).await;
        assert_eq!(code, expected, "{status}");
        if code == 400 {
            assert_eq!(status["message"], "metadata.managedFields must be nil");
        }
    }
}

#[tokio::test]
async fn containers_are_owned_individually() {
    let c = Cluster::new().await;
    let (code, object) = c.post(&format!("{DEPLOYMENTS}?fieldManager=maker"), deployment("d")).await;
    assert_eq!(code, 201, "{object}");
    let owned = &object["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:template"]["f:spec"];
    let containers = owned["f:containers"].as_object().unwrap();
    let keys: Vec<&String> = containers.keys().collect();
    assert_eq!(keys, [r#"k:{"name":"c"}"#], "each container, not the list as a whole");
    assert_eq!(containers[keys[0]]["f:image"], json!({}));
    // Another manager owns another container without a conflict.
    let sidecar = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "s"}]}}}});
    let (code, object) = c.patch(&format!("{DEPLOYMENTS}/d?fieldManager=injector"), APPLY, sidecar).await;
    assert_eq!(code, 200, "{object}");
    assert_eq!(object["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2, "{object}");
}

#[tokio::test(start_paused = true)]
async fn reads_of_a_future_version_wait_and_time_out() {
    let c = Cluster::new().await;
    let began = tokio::time::Instant::now();
    let (code, status) = c.get(&format!("{MAPS}/a?resourceVersion=9000000000000000")).await;
    assert_eq!((code, &status["details"]["retryAfterSeconds"]), (504, &json!(1)));
    assert_eq!(began.elapsed().as_secs(), 3);
    assert_eq!(c.get(&format!("{MAPS}/a?resourceVersion=x")).await.0, 500);
}

#[tokio::test(start_paused = true)]
async fn events_are_served_in_two_groups() {
    let c = Cluster::new().await;
    let new = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "n", "reason": "R",
        "eventTime": "2026-01-01T00:00:00.000000Z", "type": "Normal", "action": "A", "reportingController": "c", "reportingInstance": "c-1"});
    assert_eq!(c.post(new, event).await.0, 201);
    let (_, old) = c.get("/api/v1/namespaces/default/events/e").await;
    assert_eq!(
        (&old["apiVersion"], &old["message"], &old["involvedObject"]["name"]),
        (&json!("v1"), &json!("n"), &json!("p"))
    );
    let (_, list) = c.get(&format!("{new}?fieldSelector=reportingController%3Dc")).await;
    assert_eq!(list["items"][0]["note"], "n");
    let (_, patched) = c.patch(&format!("{new}/e"), MERGE, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!((&patched["note"], &patched["message"]), (&json!("n"), &Value::Null));
    // Clients of the other group may change everything.
    let core = "/api/v1/namespaces/default/events/e";
    assert_eq!(c.patch(core, MERGE, json!({"message": "m"})).await.1["message"], "m");
    assert_eq!(c.get(&format!("{new}/e")).await.1["note"], "m");
}

#[tokio::test(start_paused = true)]
async fn reviews_allow_everything_and_are_not_stored() {
    let c = Cluster::new().await;
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, response) = c.post(path, review).await;
    assert_eq!(
        (code, &response["status"]["allowed"], &response["kind"]),
        (201, &json!(true), &json!("SelfSubjectAccessReview"))
    );
    assert_eq!(c.get(path).await.0, 405);
    let (_, review) = c.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await;
    assert!(review["status"]["userInfo"]["groups"].as_array().unwrap().contains(&json!("system:masters")));
}
