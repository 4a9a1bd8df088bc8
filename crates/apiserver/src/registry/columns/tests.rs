use serde_json::{Value, json};

use crate::registry::{Object, Registry};

/// The names of the columns of a kind with the cells of one object, except name and age.
fn shown(group: &str, plural: &str, mut object: Value) -> Vec<(String, Value)> {
    let registry = Registry::built_in();
    let version = if group == "autoscaling" { "v2" } else { "v1" };
    let columns = &registry.find(group, version, plural).unwrap().columns;
    object["metadata"]["creationTimestamp"] = "1970-01-01T00:00:00Z".into();
    let cells = columns.cells(&Object::new(object).unwrap(), 60);
    let names = columns.definitions().into_iter().map(|c| c["name"].as_str().unwrap().to_owned());
    names.zip(cells).filter(|(name, _)| !["Name", "Age"].contains(&name.as_str())).collect()
}

#[test]
fn every_kind_has_as_many_cells_as_columns_and_cells_of_their_types() {
    for resource in Registry::built_in().all().filter(|r| r.is_stored() && r.plural != "ipaddresses") {
        let empty = Object::new(json!({"metadata": {"name": "x"}})).unwrap();
        let (columns, cells) = (resource.columns.definitions(), resource.columns.cells(&empty, 0));
        assert_eq!(columns.len(), cells.len(), "{}", resource.plural);
        for (column, cell) in columns.iter().zip(&cells) {
            let fits = match column["type"].as_str() {
                Some("integer") => cell.is_i64() || cell.is_u64(),
                Some("boolean") => cell.is_boolean() || resource.plural == "cronjobs",
                _ => cell.is_string() || cell.is_i64() || cell.is_u64() || cell.is_boolean(),
            };
            assert!(fits, "{} of {}: {cell}", column["name"], resource.plural);
        }
    }
}

#[test]
fn each_kind_has_its_columns() {
    let address = |ip: &str| json!({"ip": ip});
    let metric =
        json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}});
    let found = json!({"resource": {"current": {"averageUtilization": 20}}});
    let rows = [
        (
            "",
            "endpoints",
            json!({"subsets": [{"addresses": [address("1.1.1.1"), address("::1"), address("1.1.1.3"),
            address("1.1.1.4")], "ports": [{"port": 80}]}]}),
            json!(["1.1.1.1:80,[::1]:80,1.1.1.3:80 + 1 more..."]),
        ),
        (
            "",
            "persistentvolumeclaims",
            json!({"spec": {"volumeName": "v", "volumeMode": "Block", "storageClassName": "s"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}}),
            json!(["Bound", "v", "1Gi", "RWO,ROX", "s", "<unset>", "Block"]),
        ),
        (
            "",
            "persistentvolumes",
            json!({"spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "n", "name": "c"}},
            "status": {"phase": "Bound"}}),
            json!(["1Gi", "", "", "Bound", "n/c", "", "<unset>", "", "<unset>"]),
        ),
        (
            "",
            "podtemplates",
            json!({"template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}),
            json!(["c", "i", "<none>"]),
        ),
        (
            "",
            "resourcequotas",
            json!({"status": {"hard": {"limits.cpu": "2", "pods": "3"}, "used": {"pods": "1"}}}),
            json!(["pods: 1/3", "limits.cpu: 0/2"]),
        ),
        (
            "",
            "replicationcontrollers",
            json!({"spec": {"selector": {"a": "b"}}}),
            json!([0, 0, 0, "", "", "a=b"]),
        ),
        (
            "apps",
            "replicasets",
            json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}}),
            json!([0, 0, 0, "", "", "a"]),
        ),
        (
            "apps",
            "controllerrevisions",
            json!({"revision": 3, "metadata": {"ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "controller": true}]}}),
            json!(["daemonset.apps/d", 3]),
        ),
        (
            "batch",
            "jobs",
            json!({"spec": {"parallelism": 3}}),
            json!(["Running", "0/1 of 3", "", "", "", "<none>"]),
        ),
        (
            "networking.k8s.io",
            "ingresses",
            json!({"spec": {"rules": [{"host": "a"}, {}], "tls": [{}]},
            "status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1.1.1.1"}]}}}),
            json!(["<none>", "a", "1.1.1.1,h", "80, 443"]),
        ),
        (
            "networking.k8s.io",
            "ingresses",
            json!({"spec": {"rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {}]}}),
            json!(["<none>", "a,b,c + 1 more...", "", "80"]),
        ),
        (
            "networking.k8s.io",
            "ingressclasses",
            json!({"spec": {"controller": "a/b", "parameters":
            {"apiGroup": "g", "kind": "K", "name": "n"}}}),
            json!(["a/b", "K.g/n"]),
        ),
        (
            "networking.k8s.io",
            "networkpolicies",
            json!({"spec": {"podSelector": {"matchLabels": {"a": "b"}}}}),
            json!(["a=b"]),
        ),
        (
            "policy",
            "poddisruptionbudgets",
            json!({"spec": {"maxUnavailable": "10%"}, "status": {"disruptionsAllowed": 2}}),
            json!(["N/A", "10%", 2]),
        ),
        (
            "autoscaling",
            "horizontalpodautoscalers",
            json!({"spec": {"scaleTargetRef": {"kind": "D", "name": "d"},
            "minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}, "status": {"currentMetrics": [found]}}),
            json!(["D/d", "cpu: 20%/80%", "1", 3, 0]),
        ),
        (
            "rbac.authorization.k8s.io",
            "rolebindings",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [
            {"kind": "User", "name": "u"}, {"kind": "User", "name": "v"},
            {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
            json!(["Role/r", "u, v", "", "n/s"]),
        ),
        (
            "storage.k8s.io",
            "storageclasses",
            json!({"provisioner": "p"}),
            json!(["p", "Delete", "Immediate", false]),
        ),
        (
            "storage.k8s.io",
            "csidrivers",
            json!({"spec": {"volumeLifecycleModes": ["Persistent", "Ephemeral"]}}),
            json!([true, false, false, "<unset>", false, "Persistent,Ephemeral"]),
        ),
        ("scheduling.k8s.io", "priorityclasses", json!({"value": 7}), json!([7, false, ""])),
        (
            "discovery.k8s.io",
            "endpointslices",
            json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}],
            "endpoints": [{"addresses": ["1.1.1.1"]}]}),
            json!(["IPv4", "80,x", "1.1.1.1"]),
        ),
        ("discovery.k8s.io", "endpointslices", json!({}), json!(["", "<unset>", "<unset>"])),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            json!({"spec": {"signerName": "s", "username": "u",
            "expirationSeconds": 3600}, "status": {"conditions": [{"type": "Approved"}], "certificate": "eA=="}}),
            json!(["s", "u", "60m", "Approved,Issued"]),
        ),
    ];
    for (group, plural, object, wanted) in rows {
        let cells: Vec<Value> = shown(group, plural, object).into_iter().map(|(_, cell)| cell).collect();
        assert_eq!(Value::from(cells), wanted, "{plural}");
    }
}

#[test]
fn classes_show_that_they_are_the_default() {
    let name = |plural: &str, annotation: &str| {
        let object = json!({"metadata": {"name": "x", "annotations": {annotation: "true"}}});
        let group = if plural == "storageclasses" { "storage.k8s.io" } else { "networking.k8s.io" };
        let registry = Registry::built_in();
        let columns = &registry.find(group, "v1", plural).unwrap().columns;
        columns.cells(&Object::new(object).unwrap(), 0)[0].clone()
    };
    assert_eq!(name("storageclasses", "storageclass.kubernetes.io/is-default-class"), "x (default)");
    assert_eq!(name("ingressclasses", "ingressclass.kubernetes.io/is-default-class"), "x (default)");
}

#[test]
fn both_kinds_of_events_show_the_same() {
    let core = json!({"involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "f"}, "message": " m ", "reason": "R",
        "type": "Normal", "source": {"component": "c", "host": "h"}, "lastTimestamp": "1970-01-01T00:00:50Z", "count": 2});
    let new = json!({"regarding": {"kind": "Pod", "name": "p", "fieldPath": "f"}, "note": " m ", "reason": "R",
        "type": "Normal", "deprecatedSource": {"component": "c", "host": "h"},
        "deprecatedLastTimestamp": "1970-01-01T00:00:50Z", "deprecatedCount": 2});
    let cells = shown("", "events", core);
    let values: Vec<&Value> = cells.iter().map(|(_, cell)| cell).collect();
    assert_eq!(json!(values), json!(["10s", "Normal", "R", "pod/p", "f", "c, h", "m", "<unknown>", 2]));
    assert_eq!(cells, shown("events.k8s.io", "events", new));
}

#[test]
fn the_state_of_a_pod_is_that_of_its_containers() {
    let two = json!([{"name": "a"}, {"name": "b"}]);
    let init = json!([{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]);
    let ended =
        |code: i64| json!({"name": "a", "state": {"terminated": {"exitCode": code, "reason": "Completed"}}});
    let runs = json!({"name": "b", "ready": true, "state": {"running": {}}, "restartCount": 2,
        "lastState": {"terminated": {"finishedAt": "1970-01-01T00:00:30Z"}}});
    let ready = json!([{"type": "Ready", "status": "True"}]);
    let rows = [
        (json!({"spec": {"containers": two}, "status": {"phase": "Pending"}}), ["0/2", "Pending", "0"]),
        (
            json!({"spec": {"containers": two}, "status": {"containerStatuses": [ended(0), runs], "conditions": ready}}),
            ["1/2", "Running", "2 (30s ago)"],
        ),
        (
            json!({"spec": {"containers": two}, "status": {"containerStatuses": [ended(0), runs]}}),
            ["1/2", "NotReady", "2 (30s ago)"],
        ),
        (
            json!({"spec": {"containers": two, "initContainers": init}, "status": {"initContainerStatuses": [
            {"name": "i", "state": {"running": {}}}]}}),
            ["0/3", "Init:0/2", "0"],
        ),
        (
            json!({"spec": {"containers": two, "initContainers": init}, "status": {"initContainerStatuses": [
            {"name": "i", "state": {"terminated": {"exitCode": 0}}},
            {"name": "s", "started": true, "ready": true, "state": {"running": {}}}], "containerStatuses": [runs]}}),
            ["2/3", "", "2 (30s ago)"],
        ),
        (
            json!({"spec": {"containers": two, "initContainers": init}, "status": {"initContainerStatuses": [
            {"name": "i", "restartCount": 1, "state": {"terminated": {"exitCode": 2}}}]}}),
            ["0/3", "Init:ExitCode:2", "1"],
        ),
        (
            json!({"spec": {}, "status": {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}}),
            ["0/0", "SchedulingGated", "0"],
        ),
        (
            json!({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}),
            ["0/0", "Terminating", "0"],
        ),
    ];
    for (pod, wanted) in rows {
        let cells = shown("", "pods", pod);
        let cells: Vec<&str> = cells[..3].iter().map(|(_, cell)| cell.as_str().unwrap()).collect();
        assert_eq!(cells, wanted);
    }
}
