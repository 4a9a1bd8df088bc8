//! Subresources and actions: tokens, bindings, scale, ephemeral containers, resize, approval.

use kube_embedded_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::cluster::{APPLY, Cluster, MERGE, STRATEGIC};

const PODS: &str = "/api/v1/namespaces/default/pods";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/robot/token";
const JSON_PATCH: &str = "application/json-patch+json";

fn pod(name: &str) -> Value {
    let resources = json!({"requests": {"cpu": "100m", "memory": "64Mi"}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "app:1", "resources": resources}]}})
}

fn causes(status: &Value) -> Vec<(String, String)> {
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap_or_default().trim().to_owned();
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    causes.map(|cause| (text(cause, "field"), text(cause, "message"))).collect()
}

async fn robot(c: &Cluster) -> Value {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    c.post("/api/v1/namespaces/default/serviceaccounts", account).await.1
}

#[tokio::test(start_paused = true)]
async fn a_token_request_returns_a_token_of_its_service_account() {
    let c = Cluster::new().await;
    let account = robot(&c).await;
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}});
    let (code, made) = c.post(TOKEN, body).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(
        (&made["kind"], &made["apiVersion"]),
        (&json!("TokenRequest"), &json!("authentication.k8s.io/v1"))
    );
    assert_eq!(made["metadata"]["name"], "robot");
    assert_eq!(made["spec"]["audiences"], json!(["https://kubernetes.default.svc"]));
    let token = made["status"]["token"].as_str().expect("a token");
    assert!(made["status"]["expirationTimestamp"].is_string());

    let review =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
    let (_, review) = c.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await;
    assert_eq!(review["status"]["authenticated"], true);
    assert_eq!(review["status"]["user"]["username"], "system:serviceaccount:default:robot");
    assert_eq!(review["status"]["user"]["uid"], account["metadata"]["uid"]);
    let other = json!({"spec": {"token": token, "audiences": ["vault"]}});
    let (_, other) = c.post("/apis/authentication.k8s.io/v1/tokenreviews", other).await;
    assert_eq!(other["status"]["error"], "[invalid bearer token]", "not for that audience");

    let own = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let bearer = format!("Bearer {token}");
    let headers = [("Content-Type", "application/json"), ("Authorization", bearer.as_str())];
    let (_, own) = c.post_with("/apis/authentication.k8s.io/v1/selfsubjectreviews", &headers, own).await;
    assert_eq!(own["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");

    let (_, keys) = c.get("/openid/v1/jwks").await;
    assert_eq!((&keys["keys"][0]["kty"], &keys["keys"][0]["alg"]), (&json!("EC"), &json!("ES256")));
    let (_, discovery) = c.get("/.well-known/openid-configuration").await;
    assert_eq!(discovery["issuer"], "https://kubernetes.default.svc");
}

/// As in kube-apiserver. Tests that revoke access rely on it.
#[tokio::test(start_paused = true)]
async fn a_token_ends_with_the_objects_that_it_is_bound_to() {
    let c = Cluster::new().await;
    let is_valid = async |token: &str| {
        let review = json!({"spec": {"token": token}});
        let (_, review) = c.post("/apis/authentication.k8s.io/v1/tokenreviews", review).await;
        review["status"]["authenticated"] == true
    };
    let request = async |bound: Value| {
        let (code, made) = c.post(TOKEN, json!({"spec": {"boundObjectRef": bound}})).await;
        assert_eq!(code, 201, "{made}");
        made["status"]["token"].as_str().expect("a token").to_owned()
    };
    robot(&c).await;
    let mut own = pod("p");
    own["spec"]["serviceAccountName"] = json!("robot");
    let secrets = "/api/v1/namespaces/default/secrets";
    for (kind, collection, object) in [
        ("Pod", PODS, own),
        ("Secret", secrets, json!({"metadata": {"name": "p"}})),
        ("Node", "/api/v1/nodes", json!({"metadata": {"name": "p"}})),
    ] {
        assert_eq!(c.post(collection, object.clone()).await.0, 201);
        let plain = request(Value::Null).await;
        let bound = request(json!({"apiVersion": "v1", "kind": kind, "name": "p"})).await;
        assert!(is_valid(&plain).await && is_valid(&bound).await, "{kind}");
        let now = json!({"gracePeriodSeconds": 0});
        assert_eq!(c.delete(&format!("{collection}/p"), now).await.0, 200);
        assert!(is_valid(&plain).await && !is_valid(&bound).await, "{kind}");
        assert_eq!(c.post(collection, object).await.0, 201);
        assert!(!is_valid(&bound).await, "{kind}: another object with the same name");
    }
    let plain = request(Value::Null).await;
    assert_eq!(c.delete(TOKEN.trim_end_matches("/token"), Value::Null).await.0, 200);
    assert!(!is_valid(&plain).await);
    robot(&c).await;
    assert!(!is_valid(&plain).await, "another account with the same name");
    assert!(is_valid(&request(Value::Null).await).await);
}

#[tokio::test(start_paused = true)]
async fn a_caller_may_impersonate_another_user() {
    let c = Cluster::new().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = async |headers: &[(&str, &str)]| {
        let media = ("Content-Type", "application/json");
        let headers: Vec<(&str, &str)> = std::iter::once(media).chain(headers.iter().copied()).collect();
        c.post_with(
            path,
            &headers,
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
        )
        .await
    };
    let (code, own) = review(&[("Impersonate-User", "jane"), ("Impersonate-Group", "shop")]).await;
    assert_eq!(code, 201, "{own}");
    let expected = json!({"username": "jane", "groups": ["shop", "system:authenticated"]});
    assert_eq!(own["status"]["userInfo"], expected);
    let (code, refused) = review(&[("Impersonate-Group", "shop")]).await;
    assert_eq!((code, &refused["reason"]), (500, &json!("InternalError")), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn token_requests_are_validated() {
    let c = Cluster::new().await;
    assert_eq!(c.post(TOKEN, json!({"spec": {}})).await.0, 404, "no such service account");
    robot(&c).await;
    let (code, short) = c.post(TOKEN, json!({"spec": {"expirationSeconds": 10}})).await;
    assert_eq!((code, &short["details"]["kind"]), (422, &json!("TokenRequest")));
    assert!(short["message"].as_str().is_some_and(|m| m.contains("less than 10 minutes")), "{short}");
    assert_eq!(c.post(TOKEN, json!({"metadata": {"name": "other"}, "spec": {}})).await.0, 422);
    assert_eq!(c.post(TOKEN, json!({"metadata": {"uid": "other"}, "spec": {}})).await.0, 409);
    let bound = |kind: &str, name: &str| json!({"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}}});
    assert_eq!(c.post(TOKEN, bound("Pod", "none")).await.0, 404);
    assert_eq!(c.post(TOKEN, bound("ConfigMap", "a")).await.0, 400);
    c.post(PODS, pod("p")).await;
    assert_eq!(c.post(TOKEN, bound("Pod", "p")).await.0, 400, "another service account");
    assert_eq!(c.get(TOKEN).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn subresources_of_kubelets_are_named() {
    let c = Cluster::new().await;
    c.post(PODS, pod("p")).await;
    for subresource in ["log", "exec", "attach", "portforward", "proxy"] {
        let (code, status) = c.get(&format!("{PODS}/p/{subresource}")).await;
        assert_eq!((code, &status["reason"]), (404, &json!("NotFound")));
        assert!(
            status["message"].as_str().is_some_and(|m| m.contains(&format!("pods/{subresource}"))),
            "{status}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_can_be_applied() {
    let c = Cluster::new().await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}});
    c.post(deployments, deployment).await;
    let scale = |replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}});
    let path = |force: bool| format!("{deployments}/d/scale?fieldManager=scaler&force={force}");
    assert_eq!(c.patch(&path(false), APPLY, scale(3)).await.0, 409, "another manager owns the count");
    let (code, applied) = c.patch(&path(true), APPLY, scale(3)).await;
    assert_eq!((code, &applied["kind"], &applied["spec"]["replicas"]), (200, &json!("Scale"), &json!(3)));
    let (_, stored) = c.get(&format!("{deployments}/d")).await;
    assert_eq!(stored["spec"]["replicas"], 3);
    let managers = stored["metadata"]["managedFields"].as_array().expect("managers");
    let scaler = managers.iter().find(|entry| entry["manager"] == "scaler").expect("the manager");
    assert_eq!((&scaler["operation"], &scaler["subresource"]), (&json!("Apply"), &json!("scale")));
    assert_eq!(scaler["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(c.patch(&path(true), APPLY, scale(-1)).await.0, 422);
    let wrong = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}});
    assert_eq!(c.patch(&path(true), APPLY, wrong).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn a_binding_can_be_posted_to_its_collection() {
    let c = Cluster::new().await;
    c.post(PODS, pod("p")).await;
    let bindings = "/api/v1/namespaces/default/bindings";
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    assert_eq!(c.post(bindings, binding.clone()).await.0, 201);
    assert_eq!(c.get(&format!("{PODS}/p")).await.1["spec"]["nodeName"], "n");
    let (code, again) = c.post(bindings, binding).await;
    assert_eq!(code, 409);
    assert!(
        again["message"]
            .as_str()
            .is_some_and(|m| m.starts_with("Operation cannot be fulfilled on pods/binding")),
        "{again}"
    );
    assert_eq!(c.get(bindings).await.0, 405);
}

#[tokio::test(start_paused = true)]
async fn ephemeral_containers_can_be_added_and_nothing_else() {
    let c = Cluster::new().await;
    c.post(PODS, pod("p")).await;
    let path = format!("{PODS}/p/ephemeralcontainers");
    let debug = json!({"name": "debug", "image": "busybox:1", "targetContainerName": "main"});
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"ephemeralContainers": [debug], "nodeName": "n"}});
    let (code, debugged) = c.patch(&path, STRATEGIC, patch).await;
    assert_eq!(code, 200, "{debugged}");
    assert_eq!(debugged["spec"]["ephemeralContainers"][0]["name"], "debug");
    assert_eq!(debugged["metadata"]["generation"], 2);
    assert!(debugged["spec"]["nodeName"].is_null() && debugged["metadata"]["labels"].is_null());
    for (list, field, message) in [
        (json!([]), "spec.ephemeralContainers", "may not be removed"),
        (json!([{"name": "debug", "image": "other:1"}]), "spec.ephemeralContainers", "may not be changed"),
    ] {
        let (code, status) = c.patch(&path, MERGE, json!({"spec": {"ephemeralContainers": list}})).await;
        assert_eq!(code, 422);
        assert!(causes(&status).iter().any(|(f, m)| f == field && m.contains(message)), "{status}");
    }
    let add =
        |container: Value| json!([{"op": "add", "path": "/spec/ephemeralContainers/-", "value": container}]);
    for container in [
        json!({"name": "main", "image": "i"}),
        json!({"name": "x", "image": "i", "targetContainerName": "none"}),
        json!({"name": "x", "image": "i", "resources": {"limits": {"cpu": "1"}}}),
        json!({"name": "x"}),
    ] {
        assert_eq!(c.patch(&path, JSON_PATCH, add(container.clone())).await.0, 422, "{container}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resize_changes_amounts_of_cpu_and_memory() {
    let c = Cluster::new().await;
    c.post(PODS, pod("p")).await;
    let path = format!("{PODS}/p/resize");
    let resize = |resources: Value| json!({"spec": {"containers": [{"name": "main", "image": "other:2", "resources": resources}]}});
    let (code, resized) = c.patch(&path, STRATEGIC, resize(json!({"requests": {"cpu": "200m"}}))).await;
    assert_eq!(code, 200, "{resized}");
    let container = &resized["spec"]["containers"][0];
    assert_eq!(container["resources"]["requests"], json!({"cpu": "200m", "memory": "64Mi"}));
    assert_eq!(container["image"], "app:1", "nothing else changes");
    for (patch, message) in [
        (json!({"requests": {"cpu": null}}), "resource requests cannot be removed"),
        (json!({"requests": {"example.com/gpu": "1"}}), "only cpu and memory resources are mutable"),
        (json!({"limits": {"cpu": "200m", "memory": "64Mi"}}), "Pod QOS Class may not change"),
    ] {
        let (code, status) = c.patch(&path, STRATEGIC, resize(patch)).await;
        assert_eq!(code, 422);
        assert!(causes(&status).iter().any(|(_, m)| m.contains(message)), "{message}: {status}");
    }
    let renamed = json!([{"op": "replace", "path": "/spec/containers/0/name", "value": "x"}]);
    assert_eq!(c.patch(&path, JSON_PATCH, renamed).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_is_resized_if_its_kubelet_reports_resources() {
    let c = Cluster::new().await;
    c.post(PODS, pod("p")).await;
    let resize =
        json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}});
    let running = json!({"name": "main", "image": "app:1", "imageID": "app:1", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}});
    for (resources, code) in [(Value::Null, 422), (json!({}), 200)] {
        let mut status = running.clone();
        status["resources"] = resources;
        let patch = json!({"status": {"containerStatuses": [status]}});
        assert_eq!(c.patch(&format!("{PODS}/p/status"), MERGE, patch).await.0, 200);
        let (resized, response) = c.patch(&format!("{PODS}/p/resize"), STRATEGIC, resize.clone()).await;
        assert_eq!(resized, code, "{response}");
        if code == 422 {
            let message = "Forbidden: Pod running on node without support for resize";
            assert_eq!(causes(&response), [("spec".to_owned(), message.to_owned())]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_scale_has_a_table_and_metadata() {
    let c = Cluster::new().await;
    let sets = "/apis/apps/v1/namespaces/default/replicasets";
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": template}});
    c.post(sets, set).await;
    let path = format!("{sets}/s/scale");
    let (code, table) = c.get_as(&path, "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    assert_eq!((code, &table["kind"]), (200, &json!("Table")));
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().expect("columns").iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, ["Name", "Desired", "Available", "Age"]);
    let row = &table["rows"][0];
    assert_eq!((&row["cells"], &row["object"]["metadata"]["name"]), (&json!(["s", 3, 0, "0s"]), &json!("s")));
    let (_, metadata) = c.get_as(&path, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io").await;
    assert_eq!(
        (&metadata["kind"], &metadata["metadata"]["name"]),
        (&json!("PartialObjectMetadata"), &json!("s"))
    );
    assert_eq!(metadata.get("spec"), None);
}

#[tokio::test(start_paused = true)]
async fn writes_of_status_and_approval_are_kept() {
    let c = Cluster::new().await;
    let policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"}, "spec": {"validations": [{"expression": "true"}], "matchConstraints": {
            "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]}}});
    c.post(policies, policy).await;
    let patch = json!({"status": {"observedGeneration": 1}});
    let (code, patched) = c.patch(&format!("{policies}/p/status"), MERGE, patch).await;
    assert_eq!((code, &patched["status"]["observedGeneration"]), (200, &json!(1)));

    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": {}});
    c.post(claims, claim).await;
    let reserved = json!({"status": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}});
    let (code, patched) = c.patch(&format!("{claims}/c/status"), MERGE, reserved).await;
    assert_eq!((code, &patched["status"]["reservedFor"][0]["name"]), (200, &json!("p")));

    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let request = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "r"},
        "spec": {"request": "", "signerName": "example.com/s", "usages": ["client auth"], "username": "forged"}});
    let (_, mut made) = c.post(requests, request).await;
    assert_eq!(made["spec"]["username"], "system:anonymous", "the server records it");
    made["status"]["conditions"] =
        json!([{"type": "Approved", "status": "True", "reason": "ok", "message": "m"}]);
    let (code, approved) = c.put(&format!("{requests}/r/approval"), made).await;
    assert_eq!(code, 200, "{approved}");
    let condition = &approved["status"]["conditions"][0];
    assert_eq!(condition["type"], "Approved");
    assert!(
        condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string(),
        "{condition}"
    );
    // Metadata is written, the rest is not.
    let patch = json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"signerName": "example.com/other"},
        "status": {"certificate": "eA=="}});
    let (code, patched) = c.patch(&format!("{requests}/r/approval"), MERGE, patch).await;
    assert_eq!((code, &patched["metadata"]["annotations"]), (200, &json!({"a": "b"})), "{patched}");
    assert_eq!(patched["spec"], approved["spec"]);
    assert_eq!(patched["status"], approved["status"]);
}

#[tokio::test(start_paused = true)]
async fn jobs_keep_their_pods_by_default_and_say_so() {
    let server = ApiServer::builder().controller_manager(true).in_process().await.expect("the server starts");
    let c = Cluster { client: server.client(), server };
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let spec = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": spec}}});
    c.post(jobs, job.clone()).await;
    let (code, deleted, warnings) = c.request_with_warnings("DELETE", &format!("{jobs}/j"), json!({})).await;
    assert_eq!((code, &deleted["metadata"]["finalizers"]), (200, &json!(["orphan"])));
    assert!(warnings.iter().any(|w| w.contains("child pods are preserved by default")), "{warnings:?}");
    let plain = Cluster::new().await;
    plain.post(jobs, job).await;
    let background = json!({"propagationPolicy": "Background"});
    let (_, _, warnings) = plain.request_with_warnings("DELETE", &format!("{jobs}/j"), background).await;
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(plain.get(&format!("{jobs}/j")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_may_carry_a_resource_version() {
    let c = Cluster::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "7"}});
    let (code, shown) = c.post(&format!("{maps}?dryRun=All"), map.clone()).await;
    assert_eq!((code, &shown["metadata"]["resourceVersion"]), (201, &json!("7")));
    assert_eq!(c.post(maps, map).await.0, 500, "only the store rejects it");
}

#[tokio::test(start_paused = true)]
async fn discovery_and_representations_are_those_of_kube_apiserver() {
    let c = Cluster::new().await;
    let (_, core) = c.get("/api/v1").await;
    let find = |name: &str| {
        core["resources"]
            .as_array()
            .expect("resources")
            .iter()
            .find(|r| r["name"] == name)
            .cloned()
            .expect("listed")
    };
    assert_eq!(find("pods")["storageVersionHash"], "xPOwRZ+Yhw8=");
    assert_eq!(find("configmaps")["storageVersionHash"], "qFsyl6wFWjQ=");
    assert_eq!(
        (&find("bindings")["kind"], &find("bindings")["verbs"]),
        (&json!("Binding"), &json!(["create"]))
    );
    assert_eq!(find("serviceaccounts/token")["group"], "authentication.k8s.io");
    assert_eq!(c.get("/version?timeout=invalid").await.0, 400);
    let beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";
    assert_eq!(c.get_as("/api", beta).await.0, 406);
    let (code, table) =
        c.get_as("/api/v1/namespaces", "application/json;as=Table;v=v1beta1;g=meta.k8s.io").await;
    assert_eq!((code, &table["apiVersion"]), (200, &json!("meta.k8s.io/v1beta1")));
    assert_eq!(table["rows"][0]["object"]["apiVersion"], "meta.k8s.io/v1beta1");
    let headers =
        [("Content-Type", "application/json"), ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")];
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(c.post_with(path, &headers, review).await.0, 406);
}

#[tokio::test(start_paused = true)]
async fn duplicate_keys_in_yaml_are_warnings_with_their_line() {
    let c = Cluster::new().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  foo: one\n  foo: two\n";
    let (code, made, warnings) = c.send_text("POST", maps, "application/yaml", text).await;
    assert_eq!((code, &made["data"]["foo"]), (201, &json!("two")));
    assert_eq!(warnings, [r#"299 - "line 7: key \"foo\" already set in map""#]);
    let strict = format!("{maps}?fieldValidation=Strict");
    let (code, refused, _) = c.send_text("POST", &strict, "application/yaml", text).await;
    assert_eq!(code, 400);
    assert!(
        refused["message"].as_str().is_some_and(|m| m.contains("line 7: key \"foo\" already set in map")),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_selected_by_their_reporting_controller_too() {
    let c = Cluster::new().await;
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c", "reportingInstance": "c-1", "action": "a", "reason": "r", "type": "Normal",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}});
    assert_eq!(c.post(events, event).await.0, 201);
    let selected = "/api/v1/namespaces/default/events?fieldSelector=source=example.com/c";
    assert_eq!(c.get(selected).await.1["items"].as_array().map(Vec::len), Some(1));
}
