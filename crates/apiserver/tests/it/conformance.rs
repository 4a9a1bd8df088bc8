//! Behaviours that were measured beside a kube-apiserver and differed here. `docs/verification.md` lists the test of each.

use serde_json::{Value, json};

use crate::cluster::{APPLY, Cluster, MERGE};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const CORE_EVENTS: &str = "/api/v1/namespaces/default/events";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    causes.map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"]))).collect()
}

fn event(changes: Value) -> Value {
    let mut event = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c", "reportingInstance": "c-1", "action": "a", "reason": "r", "type": "Normal",
        "note": "n", "regarding": {"kind": "Pod", "namespace": "default", "name": "p"}});
    for (field, value) in changes.as_object().into_iter().flatten() {
        event[field] = value.clone();
    }
    event
}

#[tokio::test(start_paused = true)]
async fn events_are_validated_as_in_their_group() {
    let c = Cluster::new().await;
    for (changes, wanted) in [
        (
            json!({"series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"}}),
            "series.count: Invalid value: \"\": should be at least 2",
        ),
        (json!({"series": {"count": 2}}), "series.lastObservedTime: Required value"),
        (json!({"eventTime": null}), "eventTime: Required value"),
        (json!({"type": "Odd"}), "type: Invalid value: \"\": has invalid value: Odd"),
        (json!({"deprecatedCount": 3}), "count: Invalid value: \"\": needs to be unset"),
        (json!({"deprecatedSource": {"component": "x"}}), "source: Invalid value: \"\": needs to be unset"),
        (json!({"reportingController": ""}), "reportingController: Required value"),
        (json!({"reportingInstance": ""}), "reportingInstance: Required value"),
        (json!({"action": ""}), "action: Required value"),
        (json!({"reason": "r".repeat(129)}), "reason: Invalid value: \"\": can have at most 128 characters"),
        (json!({"note": "n".repeat(1025)}), "message: Invalid value: \"\": can have at most 1024 characters"),
    ] {
        let (code, status) = c.post(EVENTS, event(changes)).await;
        assert_eq!(code, 422, "{wanted}: {status}");
        assert!(causes(&status).iter().any(|cause| cause == wanted), "{wanted}: {:?}", causes(&status));
    }
    assert_eq!(c.post(EVENTS, event(json!({}))).await.0, 201);
    let path = format!("{EVENTS}/e");
    let (code, status) = c.patch(&path, MERGE, json!({"reason": "other", "note": "other"})).await;
    assert_eq!(code, 422, "{status}");
    let found = causes(&status);
    assert_eq!(
        found,
        [
            r#"reason: Invalid value: "other": field is immutable"#,
            r#"message: Invalid value: "other": field is immutable"#
        ]
    );
    let series = json!({"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}});
    assert_eq!(c.patch(&path, MERGE, series).await.0, 200);
    assert_eq!(c.patch(&path, MERGE, json!({"series": {"count": 1}})).await.0, 422);
    // The other group has no such rules for events without a time.
    let old = json!({"metadata": {"name": "old"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"}, "count": 3, "type": "Odd"});
    assert_eq!(c.post(CORE_EVENTS, old).await.0, 201);
    let foreign = json!({"metadata": {"name": "x"}, "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"}});
    let (code, status) = c.post(CORE_EVENTS, foreign).await;
    assert_eq!(code, 422, "{status}");
    assert_eq!(
        causes(&status),
        [r#"involvedObject.namespace: Invalid value: "other": does not match event.namespace"#]
    );
}

#[tokio::test(start_paused = true)]
async fn events_are_selected_by_the_names_of_both_groups() {
    let c = Cluster::new().await;
    assert_eq!(c.post(EVENTS, event(json!({}))).await.0, 201);
    for (path, selector) in [
        (EVENTS, "involvedObject.name=p"),
        (EVENTS, "regarding.name=p"),
        (EVENTS, "reportingController=example.com/c"),
        (EVENTS, "regarding.kind=Pod,type=Normal,reason=r"),
        (CORE_EVENTS, "involvedObject.name=p"),
        (CORE_EVENTS, "reportingComponent=example.com/c"),
        (CORE_EVENTS, "source=example.com/c"),
    ] {
        let (code, list) = c.get(&format!("{path}?fieldSelector={selector}")).await;
        assert_eq!(
            (code, list["items"].as_array().map(Vec::len)),
            (200, Some(1)),
            "{path} {selector}: {list}"
        );
        let (_, none) = c.get(&format!("{path}?fieldSelector={selector}x")).await;
        assert_eq!(none["items"], json!([]), "{path} {selector}x");
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_may_be_names_of_ip_addresses() {
    let c = Cluster::new().await;
    let path = "/apis/networking.k8s.io/v1/ipaddresses";
    for name in ["2001:db8::1", "10.1.2.3"] {
        let address =
            json!({"metadata": {"name": name}, "spec": {"parentRef": {"resource": "services", "name": "s"}}});
        let (code, made) = c.post(path, address).await;
        assert_eq!(code, 201, "{made}");
        assert_eq!(c.get(&format!("{path}/{name}")).await.0, 200);
    }
}

#[tokio::test(start_paused = true)]
async fn admission_policies_have_the_defaults_of_kube_apiserver() {
    let c = Cluster::new().await;
    let group = "/apis/admissionregistration.k8s.io/v1";
    let rules =
        json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]);
    let matched = |made: &Value, field: &str| {
        let matched = &made["spec"][field];
        assert_eq!(matched["matchPolicy"], "Equivalent", "{made}");
        assert_eq!(
            (&matched["namespaceSelector"], &matched["objectSelector"]),
            (&json!({}), &json!({})),
            "{made}"
        );
        assert_eq!(matched["resourceRules"][0]["scope"], "*", "{made}");
    };
    let spec = json!({"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "true"}]});
    let (code, made) = c
        .post(
            &format!("{group}/validatingadmissionpolicies"),
            json!({"metadata": {"name": "p"}, "spec": spec}),
        )
        .await;
    assert_eq!((code, &made["spec"]["failurePolicy"]), (201, &json!("Fail")), "{made}");
    matched(&made, "matchConstraints");
    let spec =
        json!({"policyName": "p", "validationActions": ["Deny"], "matchResources": {"resourceRules": rules}});
    let (_, made) = c
        .post(
            &format!("{group}/validatingadmissionpolicybindings"),
            json!({"metadata": {"name": "b"}, "spec": spec}),
        )
        .await;
    matched(&made, "matchResources");
    assert!(made["spec"]["failurePolicy"].is_null(), "{made}");
}

#[tokio::test(start_paused = true)]
async fn pods_name_kernel_parameters_as_the_kernel_does() {
    let c = Cluster::new().await;
    let pod = |name: &str| {
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}],
        "securityContext": {"sysctls": [{"name": name, "value": "1"}]}}})
    };
    let pods = "/api/v1/namespaces/default/pods?dryRun=All";
    assert_eq!(c.post(pods, pod("kernel.shm_rmid_forced")).await.0, 201);
    let (code, status) = c.post(pods, pod("foo-")).await;
    assert_eq!(code, 422, "{status}");
    assert!(
        causes(&status)[0].starts_with(r#"spec.securityContext.sysctls[0].name: Invalid value: "foo-""#),
        "{status}"
    );
}

#[tokio::test(start_paused = true)]
async fn cron_jobs_name_a_time_zone_that_exists() {
    let c = Cluster::new().await;
    let job = |zone: &str| {
        let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
        json!({"metadata": {"name": "j"}, "spec": {"schedule": "0 * * * *", "timeZone": zone,
        "jobTemplate": {"spec": {"template": pod}}}})
    };
    let jobs = "/apis/batch/v1/namespaces/default/cronjobs?dryRun=All";
    for zone in ["Europe/Berlin", "UTC", "Etc/GMT+3", "America/Argentina/Buenos_Aires", "US/Eastern"] {
        let (code, status) = c.post(jobs, job(zone)).await;
        assert_eq!(code, 201, "{status}");
    }
    for (zone, why) in [
        ("Europe/Atlantis", "unknown time zone Europe/Atlantis"),
        ("europe/berlin", "unknown time zone europe/berlin"),
        ("../etc/passwd", "unknown time zone ../etc/passwd"),
        ("local", "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"),
        ("", "timeZone must be nil or non-empty string"),
    ] {
        let (code, status) = c.post(jobs, job(zone)).await;
        assert_eq!(code, 422, "{status}");
        assert_eq!(causes(&status), [format!("spec.timeZone: Invalid value: {zone:?}: {why}")]);
    }
}

/// A wrong type in an applied configuration is an error of its merge, not of its validation.
#[tokio::test(start_paused = true)]
async fn applied_values_of_the_wrong_type_are_named() {
    let c = Cluster::new().await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": "three"}});
    let path = "/apis/apps/v1/namespaces/default/deployments/d?fieldManager=m";
    let (code, status) = c.patch(path, APPLY, deployment).await;
    assert_eq!(code, 500, "{status}");
    let message = status["message"].as_str().unwrap_or_default();
    assert!(
        message.contains("failed to create typed patch object (/d; apps/v1, Kind=Deployment)"),
        "{message}"
    );
    assert!(message.contains(".spec.replicas: expected numeric"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn health_checks_are_listed_on_request() {
    let c = Cluster::new().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(c.read_text(path, "").await, "ok");
        let verbose = c.read_text(&format!("{path}?verbose"), "").await;
        assert!(verbose.lines().any(|line| line == "[+]ping ok"), "{verbose}");
        assert!(verbose.ends_with(&format!("{} check passed\n", &path[1..])), "{verbose}");
    }
    let metrics = c.read_text("/metrics/slis", "").await;
    for line in ["{name=\"ping\",type=\"healthz\"} 1", "{name=\"informer-sync\",type=\"readyz\"} 1"] {
        assert!(metrics.contains(&format!("kubernetes_healthcheck{line}\n")), "{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn pods_with_scheduling_gates_say_why_they_wait() {
    let c = Cluster::new().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, gates: Value| {
        json!({"metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "schedulingGates": gates}})
    };
    let (_, gated) = c.post(pods, pod("gated", json!([{"name": "example.com/wait"}]))).await;
    let condition = json!({"lastProbeTime": null, "lastTransitionTime": gated["metadata"]["creationTimestamp"],
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "reason": "SchedulingGated", "status": "False", "type": "PodScheduled"});
    assert!(condition["lastTransitionTime"].is_string());
    assert_eq!(gated["status"]["conditions"], json!([condition]));
    let (_, table) = c.get_as(&format!("{pods}/gated"), "application/json;as=Table;v=v1;g=meta.k8s.io").await;
    assert_eq!(table["rows"][0]["cells"][2], "SchedulingGated");
    for gates in [json!([]), Value::Null] {
        let (_, free) = c.post(pods, pod(&format!("free-{}", gates.is_null()), gates)).await;
        assert_eq!(free["status"].get("conditions"), None);
    }
}

#[tokio::test(start_paused = true)]
async fn immutable_data_does_not_change() {
    let c = Cluster::new().await;
    for (path, value, other) in [(MAPS, "v", "w"), (SECRETS, "dg==", "dw==")] {
        let object = json!({"metadata": {"name": "a"}, "data": {"k": value}, "immutable": true});
        assert_eq!(c.post(path, object).await.0, 201);
        let one = format!("{path}/a");
        for patch in [json!({"data": {"k": other}}), json!({"data": {"l": value}}), json!({"data": null})] {
            let (code, status) = c.patch(&one, MERGE, patch.clone()).await;
            assert_eq!(code, 422, "{patch}: {status}");
            assert!(
                causes(&status)
                    .iter()
                    .any(|c| c == "data: Forbidden: field is immutable when `immutable` is set"),
                "{status}"
            );
        }
        let (code, status) = c.patch(&one, MERGE, json!({"immutable": false})).await;
        assert_eq!(code, 422, "{status}");
        assert!(causes(&status)[0].starts_with("immutable: Forbidden"), "{status}");
        assert_eq!(c.patch(&one, MERGE, json!({"metadata": {"labels": {"x": "y"}}})).await.0, 200);
        assert_eq!(c.delete(&one, Value::Null).await.0, 200, "only its data is immutable");
    }
}

#[tokio::test(start_paused = true)]
async fn string_data_becomes_data() {
    let c = Cluster::new().await;
    let secret = json!({"metadata": {"name": "s"}, "data": {"a": "YQ==", "b": "Yg=="}, "stringData": {"b": "other", "c": "c"}});
    let (code, made) = c.post(SECRETS, secret).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["data"], json!({"a": "YQ==", "b": "b3RoZXI=", "c": "Yw=="}));
    assert!(made["stringData"].is_null(), "it is only for writing: {made}");
    let (_, patched) = c.patch(&format!("{SECRETS}/s"), MERGE, json!({"stringData": {"a": "new"}})).await;
    assert_eq!(patched["data"]["a"], "bmV3");
    let (code, status) =
        c.post(SECRETS, json!({"metadata": {"name": "t"}, "data": {"a": "not base64"}})).await;
    assert_eq!(code, 400, "{status}");
}

#[tokio::test(start_paused = true)]
async fn the_type_of_a_secret_does_not_change() {
    let c = Cluster::new().await;
    let (_, made) = c.post(SECRETS, json!({"metadata": {"name": "s"}})).await;
    assert_eq!(made["type"], "Opaque");
    let (code, status) = c.patch(&format!("{SECRETS}/s"), MERGE, json!({"type": "example.com/other"})).await;
    assert_eq!(code, 422, "{status}");
    assert_eq!(causes(&status), [r#"type: Invalid value: "example.com/other": field is immutable"#]);
    for (kind, data, field) in [
        ("kubernetes.io/tls", json!({"tls.crt": "YQ=="}), "data[tls.key]"),
        ("kubernetes.io/dockerconfigjson", json!({}), "data[.dockerconfigjson]"),
    ] {
        let secret = json!({"metadata": {"name": "t"}, "type": kind, "data": data});
        let (code, status) = c.post(SECRETS, secret).await;
        assert_eq!(code, 422, "{kind}: {status}");
        assert!(causes(&status).iter().any(|cause| cause.starts_with(field)), "{kind}: {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_scale_shows_and_sets_the_replica_count() {
    let c = Cluster::new().await;
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}});
    let labels = json!({"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["x", "y"]}]});
    for (path, selector, text) in [
        ("/api/v1/namespaces/default/replicationcontrollers", json!({"app": "a"}), "app=a"),
        ("/apis/apps/v1/namespaces/default/deployments", labels.clone(), "app=a,tier in (x,y)"),
        ("/apis/apps/v1/namespaces/default/replicasets", labels.clone(), "app=a,tier in (x,y)"),
        ("/apis/apps/v1/namespaces/default/statefulsets", labels, "app=a,tier in (x,y)"),
    ] {
        let mut template = template.clone();
        template["metadata"]["labels"]["tier"] = "x".into();
        let object = json!({"metadata": {"name": "a"}, "spec": {"replicas": 2, "serviceName": "s", "selector": selector, "template": template}});
        let (code, made, _) = c.request_with_warnings("POST", path, object).await;
        assert_eq!(code, 201, "{made}");
        let scale = format!("{path}/a/scale");
        let (code, shown) = c.get(&scale).await;
        assert_eq!(
            (code, &shown["kind"], &shown["apiVersion"]),
            (200, &json!("Scale"), &json!("autoscaling/v1"))
        );
        assert_eq!(shown["spec"]["replicas"], 2, "{path}");
        assert_eq!(shown["status"], json!({"replicas": 0, "selector": text}), "{path}");
        assert_eq!(shown["metadata"]["uid"], made["metadata"]["uid"]);
        let (code, changed) = c.patch(&scale, MERGE, json!({"spec": {"replicas": 5}})).await;
        assert_eq!((code, &changed["spec"]["replicas"]), (200, &json!(5)), "{path}: {changed}");
        let (_, stored) = c.get(&format!("{path}/a")).await;
        assert_eq!(
            (&stored["spec"]["replicas"], &stored["metadata"]["generation"]),
            (&json!(5), &json!(2)),
            "{path}"
        );
        let (code, dry) =
            c.patch(&format!("{scale}?dryRun=All"), MERGE, json!({"spec": {"replicas": 9}})).await;
        assert_eq!((code, &dry["spec"]["replicas"]), (200, &json!(9)), "{path}");
        assert_eq!(c.get(&scale).await.1["spec"]["replicas"], 5, "{path}");
        assert_eq!(c.delete(&scale, Value::Null).await.0, 405, "{path}");
    }
}
