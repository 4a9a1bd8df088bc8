"""Quotas, limit ranges, priorities, defaults, and what the server must reject."""

import json

from cluster import check, condition, config_map, contains, equal, expect, path, pod, workload
from workloads import pods_of, running


def used(n, name, resource):
    return path(n.get("quota", name), "status.used", {}).get(resource)


@check
def a_quota_counts_objects(n):
    n.sh("create quota few --hard=pods=2,configmaps=10,count/deployments.apps=1,services.nodeports=0")
    n.until("the usage", lambda: used(n, "few", "pods") == "0")
    n.apply(pod("one"))
    n.until("one pod", lambda: used(n, "few", "pods") == "1")
    n.sh("create deployment web --image=nginx --replicas=0")
    one = "count/deployments.apps=1"
    exceeded = f"exceeded quota: few, requested: {one}, used: {one}, limited: {one}"
    n.fails("create deployment more --image=nginx", exceeded)
    n.fails("create service nodeport open --tcp=80", "exceeded quota: few", "services.nodeports=1")
    n.sh("delete pod one")
    n.until("no pods", lambda: used(n, "few", "pods") == "0")
    contains(n.sh("describe quota few"), "Used  Hard", "pods")


@check
def a_quota_of_resources_wants_requests(n):
    n.sh("create quota cpu --hard=requests.cpu=1,limits.memory=1Gi")
    n.until("the usage", lambda: used(n, "cpu", "requests.cpu") == "0")
    n.fails(
        "run small --image=nginx",
        "failed quota: cpu: must specify limits.memory for: small; requests.cpu for: small",
    )
    resources = {"resources": {"requests": {"cpu": "600m"}, "limits": {"memory": "100Mi", "cpu": "1"}}}
    n.apply(pod("one", container=resources))
    n.until("its request", lambda: used(n, "cpu", "requests.cpu") == "600m")
    n.fails(
        "create -f -",
        "exceeded quota: cpu, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1",
        stdin=json.dumps(pod("two", container=resources)),
    )


@check
def a_quota_stops_a_deployment(n):
    n.sh("create quota few --hard=pods=1")
    n.until("the usage", lambda: used(n, "few", "pods") == "0")
    n.apply(workload("Deployment", "web", replicas=3))
    n.until("ReplicaFailure", lambda: condition(n.get("deployment", "web"), "ReplicaFailure") == "True")
    equal(len(pods_of(n, "web")), 1)
    n.kubectl("patch", "quota", "few", "-p", '{"spec":{"hard":{"pods":"5"}}}')
    n.sh("scale deployment web --replicas=2")
    running(n, "web", 2)


@check
def a_quota_has_scopes(n):
    n.sh("create quota best --hard=pods=1 --scopes=BestEffort")
    n.until("the usage", lambda: used(n, "best", "pods") == "0")
    n.apply(pod("burstable", container={"resources": {"requests": {"cpu": "1m"}}}), pod("best"))
    n.until("one pod", lambda: used(n, "best", "pods") == "1")
    n.fails("run more --image=nginx", "exceeded quota: best")


@check
def a_limit_range_sets_and_checks_limits(n):
    n.apply(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "limits"},
            "spec": {
                "limits": [
                    {
                        "type": "Container",
                        "default": {"cpu": "500m"},
                        "defaultRequest": {"cpu": "100m"},
                        "max": {"cpu": "1"},
                    },
                    {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}},
                ]
            },
        }
    )

    # The server reads limit ranges from a cache.
    def made():
        n.sh("delete pod plain --ignore-not-found")
        n.apply(pod("plain"))
        return n.get("pod", "plain")["spec"]["containers"][0].get("resources")

    equal(n.until("defaults", made), {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    equal(n.get("pod", "plain")["status"]["qosClass"], "Burstable")
    n.fails(
        "create -f -",
        "maximum cpu usage per Container is 1, but limit is 2",
        stdin=json.dumps(pod("large", container={"resources": {"limits": {"cpu": "2"}}})),
    )
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "large"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    }
    n.fails(
        "create -f -",
        "maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi",
        stdin=json.dumps(claim),
    )
    contains(n.sh("describe limits limits"), "Container", "500m")


@check
def a_priority_class_is_resolved(n):
    n.afterwards("delete", "priorityclass", n.name)
    n.sh(f"create priorityclass {n.name} --value=77 --preemption-policy=Never")

    def made():
        n.sh("delete pod ranked --ignore-not-found")
        n.apply(pod("ranked", spec={"priorityClassName": n.name}))
        return n.get("pod", "ranked")

    spec = n.until("the class is known", made)["spec"]
    equal((spec["priority"], spec["preemptionPolicy"]), (77, "Never"))
    n.fails(
        "create -f -",
        "no PriorityClass with name unknown was found",
        stdin=json.dumps(pod("bad", spec={"priorityClassName": "unknown"})),
    )
    equal(
        sorted(
            c["metadata"]["name"]
            for c in n.items("priorityclasses")
            if c["metadata"]["name"].startswith("system-")
        ),
        ["system-cluster-critical", "system-node-critical"],
    )


@check
def a_default_storage_class_is_used(n):
    n.afterwards("delete", "storageclass", n.name)
    n.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "provisioner": "example.com/none",
            "allowVolumeExpansion": True,
            "metadata": {
                "name": n.name,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
        }
    )
    contains(n.sh(f"get storageclass {n.name}"), "(default)")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }

    def made():
        n.sh("delete pvc data --ignore-not-found")
        n.apply(claim)
        return n.get("pvc", "data")["spec"].get("storageClassName")

    equal(n.until("the default", made), n.name)


@check
def pods_get_an_account_and_its_token(n):
    n.apply(pod("user"))
    spec = n.get("pod", "user")["spec"]
    equal(spec["serviceAccountName"], "default")
    volume = [v for v in spec["volumes"] if v["name"].startswith("kube-api-access-")][0]
    equal(
        [next(iter(s)) for s in volume["projected"]["sources"]],
        ["serviceAccountToken", "configMap", "downwardAPI"],
    )
    equal(
        spec["containers"][0]["volumeMounts"][0]["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount"
    )
    n.fails(
        "create -f -",
        "error looking up service account",
        stdin=json.dumps(pod("bad", spec={"serviceAccountName": "nobody"})),
    )
    n.apply(pod("plain", spec={"automountServiceAccountToken": False}))
    expect("volumes" not in n.get("pod", "plain")["spec"], "the token is mounted")
    equal(
        {t["key"] for t in spec["tolerations"]},
        {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"},
    )


@check
def a_runtime_class_adds_its_overhead(n):
    n.afterwards("delete", "runtimeclass", n.name)
    n.apply(
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": n.name},
            "handler": "sandbox",
            "overhead": {"podFixed": {"cpu": "250m"}},
        }
    )

    def made():
        n.sh("create -f -", stdin=json.dumps(pod("boxed", spec={"runtimeClassName": n.name})))
        return n.get("pod", "boxed")

    equal(n.until("the class is known", made)["spec"]["overhead"], {"cpu": "250m"})
    n.fails(
        "create -f -",
        'RuntimeClass "unknown" not found',
        stdin=json.dumps(pod("bad", spec={"runtimeClassName": "unknown"})),
    )


@check
def invalid_objects_are_rejected_with_their_fields(n):
    n.fails("create -f -", "spec.containers[0].image: Required value", stdin=json.dumps(pod("bad", image="")))
    n.fails(
        "create -f -",
        "`selector` does not match template `labels`",
        stdin=json.dumps(
            {
                **workload("Deployment", "web"),
                "spec": {**workload("Deployment", "web")["spec"], "selector": {"matchLabels": {"x": "y"}}},
            }
        ),
    )
    n.fails("create configmap Bad_Name", "a lowercase RFC 1123 subdomain must consist of")
    n.fails(
        "create service nodeport bad --tcp=80 --node-port=80",
        "provided port is not in the valid range. The range of valid ports is 30000-32767",
    )
    n.fails("create quota bad --hard=pods=-1", "must be greater than or equal to 0")


@check
def immutable_fields_are_immutable(n):
    n.apply(workload("Deployment", "web", replicas=0))
    n.fails(
        [
            "patch",
            "deployment",
            "web",
            "--type=json",
            "-p",
            '[{"op":"replace","path":"/spec/selector/matchLabels","value":{"a":"b"}},{"op":"add","path":"/spec/template/metadata/labels/a","value":"b"}]',
        ],
        "field is immutable",
    )
    n.apply(pod("fixed"))
    n.fails(
        ["patch", "pod", "fixed", "-p", '{"spec":{"terminationGracePeriodSeconds":7}}'],
        "pod updates may not change fields other than",
    )
    n.apply({**config_map("sealed", {"a": "1"}), "immutable": True})
    n.fails(
        ["patch", "configmap", "sealed", "-p", '{"data":{"a":"2"}}'],
        "field is immutable when `immutable` is set",
    )
    n.sh("create service clusterip web --tcp=80")
    n.fails(
        [
            "patch",
            "service",
            "web",
            "-p",
            '{"spec":{"clusterIP":"10.96.99.99","clusterIPs":["10.96.99.99"]}}',
        ],
        "may not change once set",
    )


@check
def unknown_fields_are_rejected(n):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: typo\ndatum:\n  a: b\n"
    n.fails("create -f -", 'strict decoding error: unknown field "datum"', stdin=text)
    contains(
        n.sh("create --validate=warn -f -", stdin=text),
        'Warning: unknown field "datum"',
        "configmap/typo created",
    )
    n.sh("replace --validate=ignore -f -", stdin=text)


@check
def a_stale_object_conflicts(n):
    n.apply(config_map("shared", {"a": "1"}))
    stale = n.get("configmap", "shared")
    n.kubectl("patch", "configmap", "shared", "-p", '{"data":{"a":"2"}}')
    stale["data"]["a"] = "3"
    n.fails(
        "replace -f -",
        "(Conflict)",
        "the object has been modified; please apply your changes to the latest version and try again",
        stdin=json.dumps(stale),
    )


@check
def services_get_addresses_and_ports(n):
    n.sh("create service clusterip inner --tcp=80:8080")
    n.sh("create service nodeport open --tcp=80:8080")
    n.sh("create service loadbalancer balanced --tcp=80:8080")
    n.sh("create service externalname away --external-name=example.com")
    addresses = [n.get("service", name)["spec"]["clusterIP"] for name in ("inner", "open", "balanced")]
    equal(len(set(addresses)), 3)
    for name in ("open", "balanced"):
        expect(30000 <= n.get("service", name)["spec"]["ports"][0]["nodePort"] <= 32767, "no node port")
    expect("clusterIP" not in n.get("service", "away")["spec"], "an external name has an address")
    equal(n.get("service", "inner")["spec"]["ipFamilies"], ["IPv4"])
    n.fails(
        ["create", "service", "clusterip", "taken", "--tcp=80", "--clusterip=" + addresses[0]],
        "provided IP is already allocated",
    )
    contains(n.sh("get services"), "<pending>", "example.com")
    equal(
        n.cluster.request("GET", "/api/v1/namespaces/default/services/kubernetes")[1]["spec"]["ports"][0][
            "name"
        ],
        "https",
    )
