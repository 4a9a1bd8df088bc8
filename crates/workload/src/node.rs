//! Generator of nodes.

use crate::app::{hex, pick};
use fastrand::Rng;
use serde_json::{Value, json};

/// A ready node with the name `node-N`.
pub fn node(rng: &mut Rng, number: usize) -> Value {
    let zone = pick(rng, &["eu-west-1a", "eu-west-1b", "eu-west-1c"]);
    let size = pick(rng, &["m6i.2xlarge", "m6i.4xlarge", "c6i.4xlarge"]);
    let name = format!("node-{number}");
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/zone": zone, "topology.kubernetes.io/region": "eu-west-1",
            "node.kubernetes.io/instance-type": size,
        }},
        "spec": {"providerID": format!("aws:///{zone}/i-{}", hex(rng, 17)),
            "podCIDR": format!("10.{}.{}.0/24", 64 + number / 256 % 64, number % 256)},
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "200Gi"},
            "allocatable": {"cpu": "15890m", "memory": "61Gi", "pods": "110", "ephemeral-storage": "180Gi"},
            "addresses": [
                {"type": "InternalIP", "address": format!("10.0.{}.{}", number / 256 % 256, number % 256)},
                {"type": "Hostname", "address": name},
            ],
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Debian GNU/Linux 13", "kernelVersion": "6.12.0",
                "containerRuntimeVersion": "containerd://2.1.0", "architecture": "amd64", "operatingSystem": "linux",
                "machineID": hex(rng, 32), "systemUUID": hex(rng, 32), "bootID": hex(rng, 32), "kubeProxyVersion": ""},
        },
    })
}
