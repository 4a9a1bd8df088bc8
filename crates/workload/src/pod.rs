//! Pods like those of a busy production cluster: a few KB each, largely the same for the pods of one application.

use crate::app::{App, hex, pick, time, word};
use fastrand::Rng;
use serde_json::{Value, json};

/// Average number of pods of one application.
const PODS_PER_APP: usize = 8;

/// An endless iterator of pods, application after application.
///
/// 1. The same seed and number of nodes give the same pods.
/// 2. Names are unique.
/// 3. Pods have a `status`, as a kubelet writes it. A server accepts it only through the `status` subresource.
#[derive(Debug)]
pub struct Pods {
    rng: Rng,
    nodes: usize,
    app: App,
    /// Pods left of the current application.
    left: usize,
    /// Names of the pods of the current application: with enough pods, a random suffix comes twice.
    names: Vec<String>,
    apps: usize,
}

impl Pods {
    /// Pods on the nodes `node-0` to `node-(nodes - 1)`.
    pub fn new(seed: u64, nodes: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let app = App::generate(&mut rng, 0);
        Self { left: PODS_PER_APP, names: Vec::new(), nodes: nodes.max(1), app, rng, apps: 1 }
    }

    fn next_app(&mut self) {
        self.app = App::generate(&mut self.rng, self.apps);
        self.apps += 1;
        self.names.clear();
        self.left = self.rng.usize(1..2 * PODS_PER_APP);
    }
}

impl Iterator for Pods {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        if self.left == 0 {
            self.next_app();
        }
        self.left -= 1;
        loop {
            let pod = pod(&mut self.rng, &self.app, self.nodes);
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            if !self.names.contains(&name) {
                self.names.push(name);
                return Some(pod);
            }
        }
    }
}

pub(crate) fn pod(rng: &mut Rng, app: &App, nodes: usize) -> Value {
    let node = rng.usize(..nodes);
    let token = format!("kube-api-access-{}", word(rng, 5));
    let containers = containers(app, &token);
    let status = status(rng, app, node, &containers);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": metadata(rng, app),
        "spec": {
            "nodeName": format!("node-{node}"),
            "serviceAccountName": app.name, "serviceAccount": app.name,
            "priority": 0, "preemptionPolicy": "PreemptLowerPriority", "enableServiceLinks": true,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "terminationGracePeriodSeconds": 45,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 10001, "fsGroup": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": containers,
            "volumes": volumes(app, &token),
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app.kubernetes.io/name": app.name}}}],
        },
        "status": status,
    })
}

fn metadata(rng: &mut Rng, app: &App) -> Value {
    let (team, set) = (&app.namespace, format!("{}-{}", app.name, app.template_hash));
    json!({
        "name": format!("{set}-{}", word(rng, 5)),
        "generateName": format!("{set}-"),
        "namespace": team,
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set, "uid": uid_of(app),
            "controller": true, "blockOwnerDeletion": true}],
        "labels": {
            "app.kubernetes.io/name": app.name, "app.kubernetes.io/version": app.version,
            "app.kubernetes.io/managed-by": "Helm", "pod-template-hash": app.template_hash, "team": team,
            "language": app.language,
        },
        "annotations": {
            "checksum/config": hex(&mut Rng::with_seed(seed_of(app)), 64),
            "prometheus.io/scrape": "true", "prometheus.io/port": app.port.to_string(),
            "kubectl.kubernetes.io/restartedAt": "2026-01-01T08:00:00Z",
            "cni.example.com/network-status": json!([{"name": "cluster-network", "interface": "eth0",
                "ips": [format!("10.{}.{}.{}", rng.u8(64..128), rng.u8(..), rng.u8(2..250))],
                "mac": mac(rng), "default": true, "dns": {}}]).to_string(),
            "cni.example.com/containerID": hex(rng, 64),
        },
    })
}

/// The seed of the random values that all pods of an application share.
fn seed_of(app: &App) -> u64 {
    app.template_hash.bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte))
}

/// The uid of the replica set that owns the pods of an application.
fn uid_of(app: &App) -> String {
    let digits = hex(&mut Rng::with_seed(seed_of(app) ^ 1), 32);
    let part = |from: usize, to: usize| &digits[from..to];
    format!("{}-{}-4{}-a{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

fn mac(rng: &mut Rng) -> String {
    let bytes: Vec<String> = (0..5).map(|_| hex(rng, 2)).collect();
    format!("0a:{}", bytes.join(":"))
}

fn containers(app: &App, token: &str) -> Value {
    let mut rng = Rng::with_seed(seed_of(app));
    let probe = |path: &str, period: u8| {
        json!({"httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "initialDelaySeconds": 10,
            "periodSeconds": period, "timeoutSeconds": 3, "failureThreshold": 3, "successThreshold": 1})
    };
    let main = json!({
        "name": "app", "image": image(app), "imagePullPolicy": "IfNotPresent",
        "args": ["--config=/etc/app/config.yaml", format!("--port={}", app.port), "--log-format=json"],
        "ports": [{"name": "http", "containerPort": app.port, "protocol": "TCP"}, {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
        "env": variables(&mut rng, app),
        "envFrom": [{"configMapRef": {"name": format!("{}-env", app.name)}}],
        "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": pick(&mut rng, &["512Mi", "1Gi", "2Gi"])}},
        "livenessProbe": probe("/healthz", 20), "readinessProbe": probe("/readyz", 5), "startupProbe": probe("/healthz", 2),
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": "config", "mountPath": "/etc/app", "readOnly": true}, {"name": "tmp", "mountPath": "/tmp"},
            {"name": "certificates", "mountPath": "/etc/certificates", "readOnly": true}, token_mount(token)],
    });
    let proxy = json!({
        "name": "mesh-proxy", "image": "registry.example.com/mesh/proxy:2.14.1", "imagePullPolicy": "IfNotPresent",
        "args": ["proxy", "sidecar", "--domain", format!("{}.svc.cluster.local", app.namespace)],
        "env": variables(&mut rng, app),
        "ports": [{"name": "mesh-admin", "containerPort": 15020, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
        "volumeMounts": [token_mount(token)],
    });
    if app.has_sidecar { json!([main, proxy]) } else { json!([main]) }
}

/// The volume mount of the service account token, whose name is different for every pod.
fn token_mount(token: &str) -> Value {
    json!({"name": token, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true})
}

fn image(app: &App) -> String {
    format!("registry.example.com/{}/{}:{}", app.namespace, app.name, app.version)
}

fn variables(rng: &mut Rng, app: &App) -> Vec<Value> {
    let runtime = match app.language {
        "java" => ("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=70 -XX:+ExitOnOutOfMemoryError"),
        "go" => ("GOMEMLIMIT", "460MiB"),
        "node" => ("NODE_OPTIONS", "--max-old-space-size=400"),
        _ => ("PYTHONUNBUFFERED", "1"),
    };
    let from_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let mut all = vec![
        json!({"name": runtime.0, "value": runtime.1}),
        from_field("POD_NAME", "metadata.name"),
        from_field("POD_NAMESPACE", "metadata.namespace"),
        from_field("NODE_NAME", "spec.nodeName"),
        json!({"name": "DATABASE_PASSWORD", "valueFrom": {"secretKeyRef": {"name": format!("{}-db", app.name), "key": "password"}}}),
    ];
    let settings = (0..app.variables).map(|i| {
        let kind = pick(rng, &["URL", "TIMEOUT", "LIMIT", "TOPIC", "FEATURE"]);
        json!({"name": format!("{}_{kind}_{i}", app.namespace.to_uppercase()), "value": word(rng, 18)})
    });
    all.extend(settings);
    all
}

fn volumes(app: &App, token: &str) -> Value {
    json!([
        {"name": "config", "configMap": {"name": format!("{}-config", app.name), "defaultMode": 420}},
        {"name": "tmp", "emptyDir": {}},
        {"name": "certificates", "secret": {"secretName": format!("{}-tls", app.name), "defaultMode": 420}},
        {"name": token, "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]}},
    ])
}

fn status(rng: &mut Rng, app: &App, node: usize, containers: &Value) -> Value {
    let ready = rng.u8(0..20) != 0;
    let truth = if ready { "True" } else { "False" };
    let time = time(rng);
    let condition =
        |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": time});
    let (digest, restarts) = (hex(&mut Rng::with_seed(seed_of(app)), 64), rng.u8(0..4));
    let mut container = |spec: &Value| {
        json!({
            "name": spec["name"], "image": spec["image"], "imageID": format!("registry.example.com/{}@sha256:{digest}", app.namespace),
            "containerID": format!("containerd://{}", hex(rng, 64)), "ready": ready, "started": true, "restartCount": restarts,
            "state": {"running": {"startedAt": time}}, "lastState": last_state(rng, restarts, &time),
            "resources": spec["resources"], "allocatedResources": spec["resources"]["requests"],
            "volumeMounts": reported_mounts(&spec["volumeMounts"]),
            "user": {"linux": {"uid": 10001, "gid": 0, "supplementalGroups": [0, 10001]}},
        })
    };
    let statuses: Vec<Value> = containers.as_array().into_iter().flatten().map(&mut container).collect();
    let host = format!("10.0.{}.{}", node / 256 % 256, node % 256);
    let ip = format!("10.{}.{}.{}", 64 + node / 256 % 64, node % 256, rng.u8(2..250));
    json!({
        "phase": "Running", "qosClass": "Burstable", "startTime": time,
        "hostIP": host, "hostIPs": [{"ip": host}], "podIP": ip, "podIPs": [{"ip": ip}],
        "conditions": [condition("PodReadyToStartContainers", "True"), condition("Initialized", "True"),
            condition("Ready", truth), condition("ContainersReady", truth), condition("PodScheduled", "True")],
        "containerStatuses": statuses,
    })
}

/// The last state of a container: terminated, if it was restarted.
fn last_state(rng: &mut Rng, restarts: u8, time: &str) -> Value {
    if restarts == 0 {
        return json!({});
    }
    let (reason, code) = pick(rng, &[("OOMKilled", 137), ("Error", 1), ("Completed", 0)]);
    json!({"terminated": {"containerID": format!("containerd://{}", hex(rng, 64)), "exitCode": code, "reason": reason,
        "startedAt": "2026-01-01T08:00:00Z", "finishedAt": time}})
}

/// The mounts as a kubelet reports them, with an additional field for read-only ones.
fn reported_mounts(mounts: &Value) -> Value {
    let reported = |mount: &Value| {
        let mut mount = mount.clone();
        if mount["readOnly"] == true {
            mount["recursiveReadOnly"] = "Disabled".into();
        }
        mount
    };
    mounts.as_array().into_iter().flatten().map(reported).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn pods_depend_on_the_seed_only() {
        let pods = |seed| Pods::new(seed, 5).take(100).collect::<Vec<_>>();
        assert_eq!(pods(1), pods(1));
        assert_ne!(pods(1), pods(2));
    }

    #[test]
    fn a_name_that_is_taken_is_not_generated_again() {
        let name = |pods: &mut Pods| pods.next().unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
        let taken = name(&mut Pods::new(1, 5));
        let mut pods = Pods::new(1, 5);
        pods.names.push(taken.clone());
        assert_ne!(name(&mut pods), taken);
    }

    #[test]
    fn names_are_unique_and_sizes_are_realistic() {
        let pods: Vec<Value> = Pods::new(1, 50).take(2000).collect();
        let names: BTreeSet<String> = pods.iter().map(|pod| pod["metadata"]["name"].to_string()).collect();
        assert_eq!(names.len(), pods.len());
        let mean = pods.iter().map(|pod| pod.to_string().len()).sum::<usize>() / pods.len();
        assert!((6_000..14_000).contains(&mean), "{mean} bytes");
        for pod in &pods {
            assert!(crate::App::namespaces().contains(&pod["metadata"]["namespace"].as_str().unwrap()));
        }
    }
}
