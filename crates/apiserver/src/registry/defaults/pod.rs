//! Pods and pod templates.

use serde_json::{Map, Value, json};

use super::super::Object;
use super::{child, default_to, each};

pub(in super::super) fn pod(object: &mut Object) {
    let spec = object.section_mut("spec");
    pod_spec(spec);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        host_ports(spec);
    }
    default_to(spec, "enableServiceLinks", true);
    addresses_agree(object.section_mut("status"));
}

/// With the network of the node, host ports equal container ports.
fn host_ports(spec: &mut Map<String, Value>) {
    for list in ["initContainers", "containers"] {
        for port in each(spec, list).flat_map(|container| each(container, "ports")) {
            if let Some(number) = port.get("containerPort").cloned() {
                default_to(port, "hostPort", number);
            }
        }
    }
}

/// The single address and the list are kept equal; if they differ, the single address counts.
fn addresses_agree(status: &mut Map<String, Value>) {
    let one = status.get("podIP").and_then(Value::as_str).unwrap_or_default().to_owned();
    let first = status.get("podIPs").and_then(|ips| ips[0]["ip"].as_str()).unwrap_or_default().to_owned();
    if one.is_empty() && !first.is_empty() {
        status.insert("podIP".to_owned(), first.into());
    } else if one != first {
        status.insert("podIPs".to_owned(), json!([{"ip": one}]));
    }
}

/// The status of a new pod: pending, with its quality of service class, which never changes.
pub(in super::super) fn new_pod(object: &mut Object) {
    let class = quality_of_service(object.section_mut("spec"));
    let status = object.section_mut("status");
    status.insert("phase".to_owned(), "Pending".into());
    status.insert("qosClass".to_owned(), class.into());
    gate(object);
}

/// A scheduler ignores a pod with scheduling gates, so that the server says why it waits.
fn gate(pod: &mut Object) {
    let gates = pod.at("/spec/schedulingGates").and_then(Value::as_array);
    if gates.is_none_or(Vec::is_empty) {
        return;
    }
    let now = pod.meta_str("creationTimestamp").to_owned();
    let conditions = pod.section_mut("status").entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    if conditions.iter().all(|condition| condition["type"] != "PodScheduled") {
        conditions.push(json!({
            "lastProbeTime": null,
            "lastTransitionTime": now,
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "reason": "SchedulingGated",
            "status": "False",
            "type": "PodScheduled",
        }));
    }
}

/// The defaults of a pod spec, alone or in a template.
pub(super) fn pod_spec(spec: &mut Map<String, Value>) {
    account_names_agree(spec);
    default_to(spec, "restartPolicy", "Always");
    default_to(spec, "dnsPolicy", "ClusterFirst");
    default_to(spec, "terminationGracePeriodSeconds", 30);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(i64::is_negative) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    default_to(spec, "schedulerName", "default-scheduler");
    child(spec, "securityContext");
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, list).for_each(container);
    }
    each(spec, "volumes").for_each(volume);
}

/// The deprecated name of the service account follows the other one; alone, it counts.
fn account_names_agree(spec: &mut Map<String, Value>) {
    let name = |field| spec.get(field).and_then(Value::as_str).filter(|name| !name.is_empty());
    if let Some(name) = name("serviceAccountName").or_else(|| name("serviceAccount")).map(str::to_owned) {
        for field in ["serviceAccountName", "serviceAccount"] {
            if spec.get(field).is_some_and(|other| *other != name) {
                spec.remove(field);
            }
            default_to(spec, field, name.clone());
        }
    }
}

fn container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    default_to(container, "imagePullPolicy", policy);
    default_to(container, "terminationMessagePath", "/dev/termination-log");
    default_to(container, "terminationMessagePolicy", "File");
    requests_follow_limits(child(container, "resources"));
    for port in each(container, "ports") {
        default_to(port, "protocol", "TCP");
    }
    for variable in each(container, "env") {
        if let Some(source) = variable.get_mut("valueFrom").and_then(Value::as_object_mut) {
            field_reference(source);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name).and_then(Value::as_object_mut) {
            probe_defaults(probe);
        }
    }
    for hook in ["preStop", "postStart"] {
        let handler = container.get_mut("lifecycle").and_then(|lifecycle| lifecycle.get_mut(hook));
        if let Some(handler) = handler.and_then(Value::as_object_mut) {
            http_get(handler);
        }
    }
}

/// An absent request equals the limit.
fn requests_follow_limits(resources: &mut Map<String, Value>) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let requests = child(resources, "requests");
    for (name, quantity) in limits {
        requests.entry(name).or_insert(quantity);
    }
}

fn probe_defaults(probe: &mut Map<String, Value>) {
    default_to(probe, "timeoutSeconds", 1);
    default_to(probe, "periodSeconds", 10);
    default_to(probe, "successThreshold", 1);
    default_to(probe, "failureThreshold", 3);
    http_get(probe);
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        default_to(grpc, "service", "");
    }
}

fn http_get(handler: &mut Map<String, Value>) {
    if let Some(get) = handler.get_mut("httpGet").and_then(Value::as_object_mut) {
        default_to(get, "path", "/");
        default_to(get, "scheme", "HTTP");
    }
}

/// The default `apiVersion` of field references in volumes and variables.
fn field_reference(holder: &mut Map<String, Value>) {
    if let Some(source) = holder.get_mut("fieldRef").and_then(Value::as_object_mut) {
        default_to(source, "apiVersion", "v1");
    }
}

fn volume(volume: &mut Map<String, Value>) {
    const FILE_MODE: i32 = 0o644;
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(source).and_then(Value::as_object_mut) {
            default_to(source, "defaultMode", FILE_MODE);
            each(source, "items").for_each(field_reference);
            each(source, "sources").for_each(projection);
        }
    }
    if let Some(path) = volume.get_mut("hostPath").and_then(Value::as_object_mut) {
        default_to(path, "type", "");
    }
    if volume.len() == 1 {
        child(volume, "emptyDir"); // a volume without a source is an empty directory
    }
}

fn projection(source: &mut Map<String, Value>) {
    if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
        default_to(token, "expirationSeconds", 3600);
    }
    if let Some(downward) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        each(downward, "items").for_each(field_reference);
    }
}

/// The default pull policy: `Always` without a tag or with the tag `latest`.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    last.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// The quality of service class of a pod with this spec.
pub(crate) fn quality_of_service(spec: &Map<String, Value>) -> &'static str {
    let (mut any, mut guaranteed) = (false, true);
    for list in ["initContainers", "containers"] {
        for container in spec.get(list).and_then(Value::as_array).into_iter().flatten() {
            let part = |field: &str, name: &str| {
                container.get("resources").and_then(|r| r.get(field)).and_then(|r| r.get(name)).cloned()
            };
            for name in ["cpu", "memory"] {
                let (request, limit) = (part("requests", name), part("limits", name));
                any |= request.is_some() || limit.is_some();
                guaranteed &= limit.is_some() && request == limit;
            }
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_a_tag_are_always_pulled() {
        for (image, latest) in [
            ("a", true),
            ("a:1", false),
            ("h:5000/a", true),
            ("h:5000/a:latest", true),
            ("a@sha256:x", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }

    #[test]
    fn quality_of_service_follows_requests_and_limits() {
        for (resources, class) in [
            (json!({}), "BestEffort"),
            (json!({"requests": {"cpu": "1"}}), "Burstable"),
            (json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed"),
        ] {
            let mut pod =
                Object::new(json!({"spec": {"containers": [{"name": "c", "resources": resources}]}}))
                    .unwrap();
            super::pod(&mut pod);
            new_pod(&mut pod);
            assert_eq!(pod.str_at("/status/qosClass"), class);
        }
    }
}
