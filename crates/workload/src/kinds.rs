//! Generators of other kinds than pods. The number makes a name unique.

use crate::app::{App, hex, pick, time, word};
use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Bytes of a secret before base64 encoding, which makes them 50 KB.
const SECRET_BYTES: usize = 37_500;

/// A ConfigMap with a few kilobytes of application configuration.
pub fn config_map(rng: &mut Rng, number: usize) -> Value {
    let app = App::generate(rng, number);
    let mut yaml = format!("server:\n  port: {}\n  host: {}.svc.cluster.local\n", app.port, app.name);
    for i in 0..rng.usize(10..60) {
        let feature = pick(rng, &["timeout", "limit", "endpoint", "retries", "topic"]);
        yaml += &format!("  {feature}-{i}: {}\n", word(rng, 12));
    }
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("{}-config", app.name), "namespace": app.namespace, "labels": labels(&app)},
        "data": {"config.yaml": yaml, "log-level": pick(rng, &["info", "warn", "debug"])},
    })
}

/// A Secret of 50 KB, like a Helm release: compressed data, so it looks random.
pub fn secret(rng: &mut Rng, number: usize) -> Value {
    let app = App::generate(rng, number);
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": format!("sh.helm.release.v1.{}.v1", app.name), "namespace": app.namespace, "labels": labels(&app)},
        "data": {"release": random_base64(rng, SECRET_BYTES)},
    })
}

/// An Event about a pod.
pub fn event(rng: &mut Rng, number: usize) -> Value {
    let app = App::generate(rng, number);
    let (reason, text, component) = pick(
        rng,
        &[
            ("Pulled", "Container image already present on machine", "kubelet"),
            ("Scheduled", "Successfully assigned the pod to a node", "default-scheduler"),
            ("Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503", "kubelet"),
            ("BackOff", "Back-off restarting failed container app in pod", "kubelet"),
        ],
    );
    let pod = format!("{}-{}-{}", app.name, app.template_hash, word(rng, 5));
    let time = time(rng);
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{pod}.{}", hex(rng, 16)), "namespace": app.namespace},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": app.namespace,
            "uid": uuid(rng), "resourceVersion": rng.u32(100_000..).to_string()},
        "reason": reason, "message": format!("{text} ({pod})"), "type": if reason == "Unhealthy" { "Warning" } else { "Normal" },
        "count": rng.u8(1..40), "firstTimestamp": time, "lastTimestamp": time,
        "source": {"component": component, "host": format!("node-{}", rng.u8(..))}, "reportingComponent": component,
    })
}

/// The CRD `widgets.example.com`.
pub fn widget_definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    })
}

/// A custom resource of the CRD of [`widget_definition`].
pub fn widget(rng: &mut Rng, number: usize) -> Value {
    let app = App::generate(rng, number);
    let mut settings = Map::new();
    for i in 0..rng.usize(5..25) {
        settings.insert(format!("setting-{i}"), word(rng, 16).into());
    }
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": app.name, "namespace": app.namespace, "labels": labels(&app)},
        "spec": {"replicas": rng.u8(1..9), "image": format!("registry.example.com/{}:{}", app.name, app.version), "settings": settings},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True", "reason": "Reconciled",
            "lastTransitionTime": "2026-01-01T08:00:00Z", "message": format!("{} is ready", app.name)}]},
    })
}

fn labels(app: &App) -> Value {
    json!({"app.kubernetes.io/name": app.name, "app.kubernetes.io/managed-by": "Helm", "team": app.namespace})
}

fn uuid(rng: &mut Rng) -> String {
    format!("{}-{}-4{}-a{}-{}", hex(rng, 8), hex(rng, 4), hex(rng, 3), hex(rng, 3), hex(rng, 12))
}

fn random_base64(rng: &mut Rng, bytes: usize) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    (0..bytes.div_ceil(3) * 4).map(|_| char::from(pick(rng, DIGITS))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_objects_depend_on_the_seed() {
        for make in [config_map, secret, event, widget] {
            let all = |seed| -> Vec<Value> {
                let mut rng = Rng::with_seed(seed);
                (0..40).map(|number| make(&mut rng, number)).collect()
            };
            assert_eq!(all(1), all(1));
            assert_ne!(all(1), all(2));
            let names: BTreeSet<String> =
                all(1).iter().map(|object| object["metadata"]["name"].to_string()).collect();
            assert_eq!(names.len(), 40);
        }
    }

    #[test]
    fn secrets_are_fifty_kilobytes() {
        let size = secret(&mut Rng::with_seed(1), 0).to_string().len();
        assert!((50_000..51_000).contains(&size), "{size}");
    }
}
