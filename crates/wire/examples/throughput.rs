//! How fast bodies are split and identities read: `cargo run --release -p kube-informer-wire --example throughput`.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

use bytes::Bytes;
use kube_informer_wire::{
    FieldPath, FieldPaths, Kind, Limits, ListPart, ListSplitter, Object, Origin, Prune, WatchSplitter,
};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

const PODS: usize = 200;
/// What HTTP/2 delivers at once, and what a fast HTTP/1.1 connection does.
const CHUNKS: [usize; 2] = [16 << 10, 256 << 10];

fn main() {
    let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
    let pods: Vec<String> = (0..PODS).map(|number| pod(number).to_string()).collect();
    let bytes: usize = pods.iter().map(String::len).sum();
    println!("{PODS} pods of {} bytes", bytes / PODS);

    let encoded: Vec<Bytes> = pods.iter().map(|pod| Bytes::copy_from_slice(pod.as_bytes())).collect();
    report("skip with serde_json, to compare", bytes, || {
        encoded.iter().filter(|pod| serde_json::from_slice::<IgnoredAny>(pod).is_ok()).count()
    });
    report("read the identity", bytes, || {
        encoded
            .iter()
            .filter(|pod| Object::parse(&origin, (*pod).clone(), &Limits::default()).is_ok())
            .count()
    });
    let prune = Prune::new(paths(&["metadata.managedFields"]));
    report("drop managedFields", bytes, || encoded.iter().filter(|pod| prune.apply(pod).is_ok()).count());
    let fields = FieldPaths::new(paths(&["spec.nodeName", "status.phase", "spec.containers[*].image"]));
    report("read three fields", bytes, || encoded.iter().filter(|pod| fields.read(pod).is_ok()).count());
    let list = Bytes::from(format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{}]}}"#, pods.join(",")));
    let hidden = Bytes::from(format!(r#"{{"kind":"PodList","hidden":[{}],"items":[]}}"#, pods.join(",")));
    let lines: String = pods.iter().map(|pod| format!("{{\"type\":\"ADDED\",\"object\":{pod}}}\n")).collect();
    let lines = Bytes::from(lines);
    for chunk in CHUNKS {
        let kib = chunk >> 10;
        report(&format!("find the end of a value, {kib} KiB chunks"), bytes, || {
            PODS + split(&origin, &hidden, chunk)
        });
        report(&format!("split a list into objects, {kib} KiB chunks"), bytes, || {
            split(&origin, &list, chunk)
        });
        report(&format!("split a watch into objects, {kib} KiB chunks"), bytes, || {
            watch(&origin, &lines, chunk)
        });
    }
}

fn paths(texts: &[&str]) -> Vec<FieldPath> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Runs `work`, which must find all pods, until it has taken long enough, and prints the best run.
fn report(what: &str, bytes: usize, work: impl Fn() -> usize) {
    let (start, mut best) = (Instant::now(), Duration::MAX);
    while start.elapsed() < Duration::from_secs(2) {
        let start = Instant::now();
        assert_eq!(black_box(work()), PODS);
        best = best.min(start.elapsed());
    }
    let (seconds, micros) = (best.as_secs_f64(), best.as_secs_f64() * 1e6 / PODS as f64);
    println!("{what:50} {:6.0} MB/s {micros:6.2} us an object", bytes as f64 / seconds / 1e6);
}

fn chunks(body: &Bytes, size: usize) -> impl Iterator<Item = Bytes> {
    (0..body.len()).step_by(size).map(move |start| body.slice(start..body.len().min(start + size)))
}

fn split(origin: &Arc<Origin>, body: &Bytes, size: usize) -> usize {
    let (mut splitter, mut items) = (ListSplitter::new(Arc::clone(origin), Limits::default()), 0);
    for chunk in chunks(body, size) {
        splitter.feed(chunk);
        while let Ok(Some(part)) = splitter.next_part() {
            items += usize::from(matches!(black_box(part), ListPart::Item(_)));
        }
    }
    assert!(splitter.finish().is_ok());
    items
}

fn watch(origin: &Arc<Origin>, body: &Bytes, size: usize) -> usize {
    let (mut splitter, mut events) = (WatchSplitter::new(Arc::clone(origin), Limits::default()), 0);
    for chunk in chunks(body, size) {
        splitter.feed(chunk);
        while let Ok(Some(event)) = splitter.next_event() {
            black_box(event);
            events += 1;
        }
    }
    events
}

/// A pod as clusters have them: two containers, environment, probes, volumes, status, managed fields.
fn pod(number: usize) -> Value {
    let container = |name: &str| {
        let env: Vec<Value> = (0..16)
            .map(
                |i| json!({"name": format!("SETTING_{i}"), "value": format!("value-{i}-of-{name}-{number}")}),
            )
            .collect();
        let probe = json!({"failureThreshold": 3, "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
            "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1});
        json!({"name": name, "image": format!("registry.example.com/team/{name}:v1.{number}"), "env": env,
            "imagePullPolicy": "IfNotPresent", "livenessProbe": probe, "readinessProbe": probe,
            "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "volumeMounts": [{"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": "token", "readOnly": true}]})
    };
    let mut fields = serde_json::Map::new();
    for i in 0..60 {
        fields.insert(format!("f:setting-{i}"), json!({".": {}, "f:name": {}, "f:value": {}}));
        fields.insert(format!("k:{{\"name\":\"SETTING_{i}\"}}"), json!({".": {}, "f:name": {}}));
    }
    let managed = json!({"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:containers": fields}}});
    let conditions: Vec<Value> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-01-01T00:00:00Z"}))
        .into();
    json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": format!("web-{number}"), "namespace": "shop", "resourceVersion": number.to_string(),
            "uid": format!("44362b8c-dd84-4271-962b-{number:012x}"), "generation": 1,
            "labels": {"app": "web", "pod-template-hash": "5d9c7b8f6d", "tier": "back"},
            "annotations": {"example.com/note": format!("pod {number}")},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9c7b8f6d",
                "uid": "2f6b1f0e-7a55-4f0e-9a53-0c1f1a2b3c4d", "controller": true, "blockOwnerDeletion": true}],
            "managedFields": [managed]},
        "spec": {"nodeName": format!("node-{}", number % 100), "containers": [container("web"), container("sidecar")],
            "serviceAccountName": "default", "tolerations": [{"effect": "NoExecute", "key": "node.kubernetes.io/not-ready"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions}})
}
