"""Scheduling, taints, cordon, drain, and nodes that come and go."""

from cluster import check, check_alone, condition, contains, equal, expect, path, pod, workload
from workloads import pods_of, running


def node_of(n, name):
    return path(n.get("pod", name), "spec.nodeName")


def waits(n, name):
    """Waits until the scheduler reports that a pod cannot be scheduled."""
    n.until("Unschedulable", lambda: condition(n.get("pod", name), "PodScheduled") == "False")


@check
def a_pod_waits_for_a_matching_node(n):
    key = f"check/{n.name}"
    n.apply(pod("picky", spec={"nodeSelector": {key: "yes"}}))
    waits(n, "picky")
    contains(n.sh("describe pod picky"), "FailedScheduling", "didn't match Pod's node affinity/selector")
    n.afterwards("label", "node", "node-2", f"{key}-")
    n.sh(f"label node node-2 {key}=yes")
    n.sh("wait --for=condition=Ready pod/picky --timeout=90s")
    equal(node_of(n, "picky"), "node-2")


@check
def pods_with_anti_affinity_are_on_different_nodes(n):
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    n.apply(workload("Deployment", "web", pod_spec={"affinity": affinity}, replicas=2))
    running(n, "web", 2)
    equal({p["spec"]["nodeName"] for p in pods_of(n, "web")}, {"node-1", "node-2"})


@check
def a_pod_waits_for_capacity(n):
    n.apply(pod("large", container={"resources": {"requests": {"cpu": "1000"}}}))
    waits(n, "large")
    contains(n.sh("describe pod large"), "Insufficient cpu")


@check
def a_scheduling_gate_holds_a_pod(n):
    n.apply(pod("gated", spec={"schedulingGates": [{"name": "example.com/wait"}]}))
    contains(n.sh("get pod gated"), "SchedulingGated")
    n.kubectl(
        "patch", "pod", "gated", "--type=json", "-p", '[{"op":"remove","path":"/spec/schedulingGates/0"}]'
    )
    n.sh("wait --for=condition=Ready pod/gated --timeout=90s")


@check
def a_claim_waits_for_its_first_consumer(n):
    affinity = {
        "required": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-2"]}
                    ]
                }
            ]
        }
    }
    n.afterwards("delete", "pv,storageclass", n.name, "--wait=false")
    n.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": n.name},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": n.name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": n.name,
                "local": {"path": "/tmp"},
                "nodeAffinity": affinity,
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": n.name,
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    )
    n.until("WaitForFirstConsumer", lambda: "waiting for first consumer" in n.sh("describe pvc data"))
    n.apply(pod("user", spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}))
    n.sh("wait --for=condition=Ready pod/user --timeout=90s")
    equal((node_of(n, "user"), n.get("pvc", "data")["status"]["phase"]), ("node-2", "Bound"))


def new_node(n, kubelets, **labels):
    """A node for this check, with a label that its pods select."""
    name = n.name
    kubelets.add(name, {"check/only": name, **labels})
    n.afterwards("delete", "node", name)
    n.until("the node has no taints", lambda: not path(n.get("node", name), "spec.taints"))
    return name


def only_on(name, **spec):
    return {"nodeSelector": {"check/only": name}, **spec}


@check_alone
def a_new_node_is_ready_and_gets_daemons(n, kubelets):
    n.apply(workload("DaemonSet", "agent"))
    running(n, "agent", 2)
    name = new_node(n, kubelets)
    running(n, "agent", 3)
    contains(n.sh(f"get node {name}"), "Ready")
    kubelets.remove(name)
    n.until("its pod is gone", lambda: len(pods_of(n, "agent")) == 2, 120)


@check_alone
def cordon_keeps_pods_away(n, kubelets):
    name = new_node(n, kubelets)
    n.sh(f"cordon {name}")
    contains(n.sh(f"get node {name}"), "Ready,SchedulingDisabled")
    n.until(
        "the taint",
        lambda: (
            path(n.get("node", name), "spec.taints", [{}])[0].get("key") == "node.kubernetes.io/unschedulable"
        ),
    )
    n.apply(pod("late", spec=only_on(name)))
    waits(n, "late")
    n.sh(f"uncordon {name}")
    n.sh("wait --for=condition=Ready pod/late --timeout=90s")
    kubelets.remove(name)


@check_alone
def drain_evicts_within_the_budget(n, kubelets):
    name = new_node(n, kubelets)
    n.apply(workload("Deployment", "web", replicas=2, pod_spec=only_on(name)), workload("DaemonSet", "agent"))
    n.sh("create pdb web --selector=app=web --min-available=2")
    running(n, "web", 2)
    n.until("the budget is observed", lambda: path(n.get("pdb", "web"), "status.currentHealthy") == 2)
    n.fails(f"drain {name} --timeout=5s", "cannot delete DaemonSet-managed Pods")
    output = n.fails(f"drain {name} --ignore-daemonsets --timeout=8s", "violate the pod's disruption budget")
    contains(output, "evicting pod")
    n.sh("delete pdb web")
    contains(n.sh(f"drain {name} --ignore-daemonsets --timeout=60s"), f"node/{name} drained")
    equal([p["spec"].get("nodeName") for p in pods_of(n, "web")], [None, None])
    n.sh(f"uncordon {name}")
    running(n, "web", 2)
    kubelets.remove(name)


@check_alone
def a_taint_evicts_pods_without_a_toleration(n, kubelets):
    name = new_node(n, kubelets)
    tolerated = {"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute"}
    n.apply(
        pod("leaves", spec=only_on(name)),
        pod("stays", spec=only_on(name, tolerations=[tolerated])),
        pod("later", spec=only_on(name, tolerations=[{**tolerated, "tolerationSeconds": 4}])),
    )
    n.sh("wait --for=condition=Ready pod --all --timeout=90s")
    n.sh(f"taint node {name} example.com/broken=yes:NoExecute")
    n.until_gone("pod", "leaves")
    n.until_gone("pod", "later")
    expect(
        "deletionTimestamp" not in n.get("pod", "stays")["metadata"], "the pod with a toleration was evicted"
    )
    n.sh(f"taint node {name} example.com/broken-")
    kubelets.remove(name)


@check_alone
def a_silent_node_is_unreachable(n, kubelets):
    name = new_node(n, kubelets)
    seconds = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
        for key in ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
    ]
    n.apply(pod("lost", spec=only_on(name, tolerations=seconds)))
    n.sh("wait --for=condition=Ready pod/lost --timeout=90s")
    kubelets.silent.add(name)
    n.until("Unknown", lambda: condition(n.get("node", name), "Ready") == "Unknown", 120)

    def keys():
        return {t["key"] for t in path(n.get("node", name), "spec.taints", [])}

    n.until("the taint", lambda: "node.kubernetes.io/unreachable" in keys())
    n.until("the pod is evicted", lambda: "deletionTimestamp" in n.get("pod", "lost")["metadata"])
    kubelets.silent.discard(name)
    kubelets.beat(name)
    n.until("Ready", lambda: condition(n.get("node", name), "Ready") == "True" and not keys())
    n.until_gone("pod", "lost")
    kubelets.remove(name)


@check_alone
def a_pod_of_high_priority_preempts_another(n, kubelets):
    name = new_node(n, kubelets)
    n.afterwards("delete", "priorityclass", n.name)
    n.sh(f"create priorityclass {n.name} --value=1000")
    most = {"resources": {"requests": {"cpu": "3"}}}
    n.apply(pod("low", spec=only_on(name), container=most))
    n.sh("wait --for=condition=Ready pod/low --timeout=90s")
    n.apply(pod("high", spec=only_on(name, priorityClassName=n.name), container=most))
    equal(n.get("pod", "high")["spec"]["priority"], 1000)
    n.sh("wait --for=condition=Ready pod/high --timeout=90s")
    equal(n.get("pod", "low"), None)
    kubelets.remove(name)


@check
def describe_node_adds_up_requests(n):
    n.apply(pod("user", spec={"nodeName": "node-1"}, container={"resources": {"requests": {"cpu": "250m"}}}))
    contains(n.sh("describe node node-1"), "Non-terminated Pods", "user", "250m")
