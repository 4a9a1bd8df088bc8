use serde_json::{Value, json};

use crate::registry::{Object, Registry};

/// A new object with its defaults, without its identity.
fn made(group: &str, version: &str, plural: &str, object: Value) -> Value {
    let registry = Registry::built_in();
    let resource = registry.find(group, version, plural).unwrap();
    let mut object = Object::new(object).unwrap();
    object.root_mut().insert("kind".to_owned(), resource.kind.clone().into());
    resource.default(&mut object, 1 << 20).unwrap();
    (resource.rules.prepare)(&mut object);
    object.root_mut().remove("kind");
    object.into_value()
}

/// Every field of `wanted` is in `found`.
fn holds(found: &Value, wanted: &Value, at: &str) {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            for (name, wanted) in wanted {
                let found = found.get(name).unwrap_or_else(|| panic!("no {at}.{name} in {found:?}"));
                holds(found, wanted, &format!("{at}.{name}"));
            }
        }
        (Value::Array(found), Value::Array(wanted)) if found.len() == wanted.len() => {
            for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                holds(found, wanted, &format!("{at}[{i}]"));
            }
        }
        _ => assert_eq!(found, wanted, "{at}"),
    }
}

#[test]
fn absent_fields_get_defaults() {
    let rbac = "rbac.authorization.k8s.io";
    let claim = json!({"metadata": {"name": "v"}, "spec": {}});
    let rows = [
        (
            "",
            "v1",
            "endpoints",
            json!({"subsets": [{"ports": [{"port": 80}]}]}),
            json!({"subsets": [{"ports": [{"port": 80, "protocol": "TCP"}]}]}),
        ),
        (
            "",
            "v1",
            "limitranges",
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "1", "memory": "1"}},
                {"type": "Pod", "max": {"cpu": "2"}}]}}),
            json!({"spec": {"limits": [{"default": {"cpu": "2"}, "defaultRequest": {"cpu": "2", "memory": "1"}},
                {"type": "Pod", "max": {"cpu": "2"}}]}}),
        ),
        (
            "",
            "v1",
            "podtemplates",
            json!({"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}),
            json!({"template": {"metadata": {}, "spec": {"restartPolicy": "Always", "containers": [
                {"name": "c", "imagePullPolicy": "Always", "resources": {}}]}}}),
        ),
        (
            "",
            "v1",
            "nodes",
            json!({}),
            json!({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 0}}, "nodeInfo": {"bootID": ""}}}),
        ),
        (
            "",
            "v1",
            "persistentvolumes",
            json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"hostPath": {"path": "/"}}}),
            json!({"spec": {"hostPath": {"path": "/", "type": ""},
            "persistentVolumeReclaimPolicy": "Retain"},
            "status": {"phase": "Pending", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"}}),
        ),
        (
            "",
            "v1",
            "pods",
            json!({"spec": {"terminationGracePeriodSeconds": -1, "containers": []}}),
            json!({"spec": {"terminationGracePeriodSeconds": 1}}),
        ),
        (
            "apps",
            "v1",
            "deployments",
            json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": -5, "containers": []}}}}),
            json!({"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}}),
        ),
        (
            "",
            "v1",
            "services",
            json!({"spec": {"clusterIP": "None"}}),
            json!({"spec": {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"]}}),
        ),
        (
            "",
            "v1",
            "services",
            json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}}}),
            json!({"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}}),
        ),
        (
            "",
            "v1",
            "services",
            json!({"spec": {"sessionAffinity": "ClientIP", "ports": [{"port": 1}]}}),
            json!({"spec": {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}}),
        ),
        (
            "",
            "v1",
            "pods",
            json!({"spec": {"hostNetwork": true, "containers": [
            {"name": "c", "ports": [{"containerPort": 80}]}]}}),
            json!({"spec": {"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]}}),
        ),
        (
            "apps",
            "v1",
            "statefulsets",
            json!({"spec": {"template": {}, "volumeClaimTemplates": [claim]}}),
            json!({"spec": {"volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "spec": {"volumeMode": "Filesystem", "resources": {}}, "status": {"phase": "Pending"}}]}}),
        ),
        (
            "apps",
            "v1",
            "daemonsets",
            json!({}),
            json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "1"}}}),
        ),
        (
            "batch",
            "v1",
            "jobs",
            json!({"metadata": {"name": "j", "uid": "u"}}),
            json!({"metadata": {"labels": {"job-name": "j", "batch.kubernetes.io/controller-uid": "u"}}}),
        ),
        (
            "networking.k8s.io",
            "v1",
            "networkpolicies",
            json!({"spec": {"egress": [{"ports": [{"port": 80}]}]}}),
            json!({"spec": {"policyTypes": ["Ingress", "Egress"], "egress": [{"ports": [{"protocol": "TCP"}]}]}}),
        ),
        (
            "networking.k8s.io",
            "v1",
            "ingresses",
            json!({}),
            json!({"spec": {}, "status": {"loadBalancer": {}}}),
        ),
        (
            "autoscaling",
            "v2",
            "horizontalpodautoscalers",
            json!({"spec": {"behavior": {"scaleUp": {}}}}),
            json!({"spec": {"minReplicas": 1, "metrics": [{"resource": {"name": "cpu"}}],
                "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0}, "scaleDown": {"selectPolicy": "Max"}}},
                "status": {"desiredReplicas": 0, "currentMetrics": null}}),
        ),
        (
            rbac,
            "v1",
            "rolebindings",
            json!({"roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"}]}),
            json!({"roleRef": {"apiGroup": rbac}, "subjects": [{"apiGroup": rbac}, {"kind": "ServiceAccount"}]}),
        ),
        (rbac, "v1", "clusterroles", json!({}), json!({"rules": null})),
        (
            "storage.k8s.io",
            "v1",
            "storageclasses",
            json!({}),
            json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate", "provisioner": ""}),
        ),
        (
            "storage.k8s.io",
            "v1",
            "csidrivers",
            json!({}),
            json!({"spec": {"attachRequired": true, "volumeLifecycleModes": ["Persistent"]}}),
        ),
        (
            "scheduling.k8s.io",
            "v1",
            "priorityclasses",
            json!({"value": 1}),
            json!({"preemptionPolicy": "PreemptLowerPriority"}),
        ),
        (
            "discovery.k8s.io",
            "v1",
            "endpointslices",
            json!({"endpoints": [{"addresses": ["1.2.3.4"]}],
            "ports": [{"port": 80}]}),
            json!({"endpoints": [{"conditions": {}}], "ports": [{"name": "", "protocol": "TCP"}]}),
        ),
        (
            "admissionregistration.k8s.io",
            "v1",
            "mutatingwebhookconfigurations",
            json!({"webhooks": [{"clientConfig": {"service": {"name": "s"}}, "rules": [{}]}]}),
            json!({"webhooks": [{"failurePolicy": "Fail", "timeoutSeconds": 10, "namespaceSelector": {},
                "reinvocationPolicy": "Never", "clientConfig": {"service": {"port": 443}}, "rules": [{"scope": "*"}]}]}),
        ),
    ];
    for (group, version, plural, object, wanted) in rows {
        holds(&made(group, version, plural, object), &wanted, plural);
    }
}

#[test]
fn the_addresses_of_a_pod_agree() {
    for (status, wanted) in [
        (json!({"podIP": "1.2.3.4"}), json!({"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}]})),
        (
            json!({"podIPs": [{"ip": "1.2.3.4"}, {"ip": "::1"}]}),
            json!({"podIP": "1.2.3.4", "podIPs": [{}, {}]}),
        ),
        (json!({"podIP": "1.2.3.4", "podIPs": [{"ip": "5.6.7.8"}]}), json!({"podIPs": [{"ip": "1.2.3.4"}]})),
    ] {
        let mut pod = Object::new(json!({"spec": {}, "status": status})).unwrap();
        super::pod(&mut pod);
        holds(&pod.value()["status"], &wanted, "status");
    }
}

#[test]
fn a_changed_template_is_a_new_generation_of_a_daemon_set() {
    let note = |o: &Object| o.at("/metadata/annotations").cloned();
    let set = |image: &str, annotations: Value| {
        let template = json!({"spec": {"containers": [{"name": "c", "image": image}]}});
        Object::new(json!({"metadata": {"annotations": annotations}, "spec": {"template": template}}))
            .unwrap()
    };
    let key = "deprecated.daemonset.template.generation";
    let old = set("a:1", json!({key: "3"}));
    for (image, sent, wanted) in [("a:1", json!({}), "3"), ("a:2", json!({key: "9", "x": "y"}), "4")] {
        let mut new = set(image, sent);
        super::keep_template_generation(&mut new, &old);
        holds(&note(&new).unwrap(), &json!({key: wanted}), "annotations");
    }
}
