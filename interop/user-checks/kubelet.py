"""Kubelets of a few nodes, as far as other components of a cluster see them.

An image whose name contains `missing` cannot be pulled. A pod with the label `unready` is not ready. A
container with the command `true` or `false` ends; all others run until their pod is deleted.
"""

import datetime
import threading
import time

CAPACITY = {"cpu": "4", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds():
    return now()[:19] + "Z"


class Kubelets:
    def __init__(self, cluster, names):
        self.cluster, self.names = cluster, set()
        # Nodes that do not report to the cluster.
        self.silent = set()
        self.ending, self.stopped = {}, threading.Event()
        self.addresses = {}
        for name in names:
            self.add(name)
        self.threads = [threading.Thread(target=loop, daemon=True) for loop in (self.heartbeats, self.pods)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    def add(self, name, labels=None):
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            **(labels or {}),
        }
        self.cluster.request("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        self.names.add(name)
        self.beat(name)

    def remove(self, name):
        self.names.discard(name)
        self.cluster.request("DELETE", f"/api/v1/nodes/{name}")

    def beat(self, name):
        conditions = [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "",
                "lastHeartbeatTime": seconds(),
                "lastTransitionTime": seconds(),
            }
            for kind, status, reason in [
                ("Ready", "True", "KubeletReady"),
                ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
                ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
                ("PIDPressure", "False", "KubeletHasSufficientPID"),
            ]
        ]
        status = {
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "conditions": conditions,
            "addresses": [
                {"type": "InternalIP", "address": "192.0.2.1"},
                {"type": "Hostname", "address": name},
            ],
        }
        self.cluster.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, STRATEGIC)
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()}
        code, _ = self.cluster.request("PATCH", f"{leases}/{name}", {"spec": spec}, MERGE)
        if code == 404:
            self.cluster.request("POST", leases, {"metadata": {"name": name}, "spec": spec})

    def heartbeats(self):
        while not self.stopped.wait(10):
            for name in self.names - self.silent:
                self.beat(name)

    def pods(self):
        while not self.stopped.wait(0.3):
            _, pods = self.cluster.request("GET", "/api/v1/pods")
            for pod in pods.get("items", []) if isinstance(pods, dict) else []:
                if pod["spec"].get("nodeName") in self.names - self.silent:
                    self.sync(pod)

    def sync(self, pod):
        location = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        phase = pod.get("status", {}).get("phase")
        if pod["metadata"].get("deletionTimestamp"):
            if phase not in ("Succeeded", "Failed"):
                self.report(location, pod, "Failed")
            options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
            self.cluster.request("DELETE", location, options)
        elif phase not in ("Succeeded", "Failed"):
            self.report(location, pod, self.phase(pod))

    def phase(self, pod):
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        if any("missing" in container["image"] for container in spec["containers"]):
            return "Pending"
        ends = spec["containers"][0].get("command", [""])[-1]
        if ends not in ("true", "false") or spec["restartPolicy"] == "Always":
            return "Running"
        if self.ending.setdefault(uid, time.monotonic() + 0.5) > time.monotonic():
            return "Running"
        return "Succeeded" if ends == "true" else "Failed"

    def report(self, location, pod, phase):
        uid, old = pod["metadata"]["uid"], pod.get("status", {})
        address = self.addresses.setdefault(
            uid, f"10.200.{len(self.addresses) // 250}.{len(self.addresses) % 250 + 2}"
        )
        ready = phase == "Running" and "unready" not in pod["metadata"].get("labels", {})
        status = {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": "192.0.2.1",
            "hostIPs": [{"ip": "192.0.2.1"}],
            "startTime": old.get("startTime") or seconds(),
        }
        status["containerStatuses"] = [
            self.container(entry, phase, ready) for entry in pod["spec"]["containers"]
        ]
        before = {entry["type"]: entry["status"] for entry in old.get("conditions", [])}
        wanted = {
            "PodScheduled": "True",
            "Initialized": "True",
            "ContainersReady": str(ready),
            "Ready": str(ready),
        }
        images = [entry["image"] for entry in old.get("containerStatuses", [])]
        same = all(before.get(kind) == value for kind, value in wanted.items())
        if same and old.get("phase") == phase and images == [c["image"] for c in pod["spec"]["containers"]]:
            return
        status["conditions"] = [
            {"type": kind, "status": value, "lastTransitionTime": seconds()}
            for kind, value in wanted.items()
            if before.get(kind) != value
        ]
        self.cluster.request(
            "PATCH", location + "/status", {"metadata": {"uid": uid}, "status": status}, STRATEGIC
        )

    @staticmethod
    def container(entry, phase, ready):
        if phase == "Pending":
            state = {"waiting": {"reason": "ImagePullBackOff", "message": "the image does not exist"}}
        elif phase == "Running":
            state = {"running": {"startedAt": seconds()}}
        else:
            code = 0 if phase == "Succeeded" else 1
            state = {
                "terminated": {
                    "exitCode": code,
                    "reason": "Error" if code else "Completed",
                    "startedAt": seconds(),
                    "finishedAt": seconds(),
                }
            }
        return {
            "name": entry["name"],
            "image": entry["image"],
            "imageID": entry["image"],
            "restartCount": 0,
            "ready": ready,
            "started": phase == "Running",
            "state": state,
            "resources": entry.get("resources", {}),
        }
