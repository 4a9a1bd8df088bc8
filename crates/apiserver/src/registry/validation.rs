//! What makes an object of a kind invalid. Not all the original refuses: the checks that clients meet in practice.

use serde_json::{Map, Value};

use super::Object;
use super::metadata::validate_labels;
use super::names::{data_key, label};
use crate::status::FieldError;

/// All keys and values of a config map or secret together.
const MAX_DATA: usize = 1024 * 1024;

pub(super) fn config_map(object: &Object) -> Vec<FieldError> {
    let mut errors = data_keys(object, "data");
    errors.extend(data_keys(object, "binaryData"));
    errors.extend(data_size(object, &["data", "binaryData"], ""));
    errors
}

pub(super) fn config_map_update(new: &Object, old: &Object) -> Vec<FieldError> {
    immutable_data(new, old, &["data", "binaryData"])
}

pub(super) fn secret(object: &Object) -> Vec<FieldError> {
    let mut errors = data_keys(object, "data");
    errors.extend(data_size(object, &["data"], "data"));
    errors
}

pub(super) fn secret_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if new.str_at("/type") != old.str_at("/type") {
        errors.push(FieldError::invalid("type", new.str_at("/type"), "field is immutable"));
    }
    errors.extend(immutable_data(new, old, &["data"]));
    errors
}

fn data_keys(object: &Object, field: &str) -> Vec<FieldError> {
    let keys = object.root().get(field).and_then(Value::as_object).into_iter().flatten().map(|(key, _)| key);
    keys.flat_map(|key| {
        data_key(key).into_iter().map(move |e| FieldError::invalid(format!("{field}[{key}]"), key, e))
    })
    .collect()
}

fn data_size(object: &Object, fields: &[&str], at: &str) -> Option<FieldError> {
    let values = fields.iter().filter_map(|f| object.root().get(*f)?.as_object()).flatten();
    let total: usize = values.map(|(_, v)| v.as_str().map_or(0, str::len)).sum();
    (total > MAX_DATA).then(|| FieldError::too_long(at, MAX_DATA))
}

fn immutable_data(new: &Object, old: &Object, fields: &[&str]) -> Vec<FieldError> {
    if old.at("/immutable") != Some(&Value::Bool(true)) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut errors = Vec::new();
    if new.at("/immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden("immutable", why));
    }
    for field in fields {
        if new.root().get(*field) != old.root().get(*field) {
            errors.push(FieldError::forbidden(*field, why));
        }
    }
    errors
}

pub(super) fn pod(object: &Object) -> Vec<FieldError> {
    pod_spec(object.at("/spec"), "spec")
}

/// Of a pod's spec only images, deadlines, tolerations (added) and grace may change, and it may be bound once.
pub(super) fn pod_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let (mut is, was) = (mutable_removed(new), mutable_removed(old));
    if old.str_at("/spec/nodeName").is_empty()
        && let Some(spec) = is.as_object_mut()
    {
        spec.remove("nodeName");
    }
    if is == was {
        return Vec::new();
    }
    let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
               `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
               `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    vec![FieldError::forbidden("spec", why)]
}

fn mutable_removed(pod: &Object) -> Value {
    let mut spec = pod.at("/spec").cloned().unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        for field in
            ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"]
        {
            fields.remove(field);
        }
        for list in ["containers", "initContainers"] {
            for container in fields.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                container.as_object_mut().map(|c| c.remove("image"));
            }
        }
    }
    spec
}

fn pod_spec(spec: Option<&Value>, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = spec.and_then(|s| s.get("containers")).and_then(Value::as_array);
    let containers = containers.map_or(&[][..], Vec::as_slice);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    let mut seen = Vec::new();
    for (i, container) in containers.iter().enumerate() {
        let at = format!("{at}.containers[{i}]");
        let text = |field| container.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        if name.is_empty() {
            errors.push(FieldError::required(format!("{at}.name"), ""));
        } else {
            errors.extend(
                label(&name).into_iter().map(|e| FieldError::invalid(format!("{at}.name"), &name, e)),
            );
            if seen.contains(&name) {
                errors.push(FieldError::duplicate(format!("{at}.name"), &name));
            }
        }
        if text("image").is_empty() {
            errors.push(FieldError::required(format!("{at}.image"), ""));
        }
        seen.push(name);
    }
    let policy = spec.and_then(|s| s.get("restartPolicy")).and_then(Value::as_str).unwrap_or_default();
    if !["Always", "OnFailure", "Never"].contains(&policy) {
        errors.push(FieldError::not_supported(
            format!("{at}.restartPolicy"),
            policy,
            &["Always", "OnFailure", "Never"],
        ));
    }
    errors
}

/// Kinds with a selector and a template: the selector must choose what the template makes.
pub(super) fn workload(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(replicas) = object.at("/spec/replicas").and_then(Value::as_i64).filter(|n| *n < 0) {
        errors.push(FieldError::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    let selector = object.at("/spec/selector").and_then(Value::as_object);
    let labels = object.at("/spec/template/metadata/labels");
    match selector {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(selector) if selector.is_empty() => {
            errors.push(FieldError::invalid(
                "spec.selector",
                selector,
                "empty selector is invalid for deployment",
            ));
        }
        Some(selector) => {
            let empty = Map::new();
            let labels = labels.and_then(Value::as_object).unwrap_or(&empty);
            if !selects(selector, labels) {
                let why = "`selector` does not match template `labels`";
                errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
            }
        }
    }
    errors.extend(validate_labels(labels, "spec.template.labels"));
    errors.extend(pod_spec(object.at("/spec/template/spec"), "spec.template.spec"));
    errors
}

pub(super) fn selector_update(new: &Object, old: &Object) -> Vec<FieldError> {
    let (is, was) = (new.at("/spec/selector"), old.at("/spec/selector"));
    if is == was { Vec::new() } else { vec![FieldError::invalid("spec.selector", is, "field is immutable")] }
}

/// Whether a `LabelSelector` object chooses these labels.
fn selects(selector: &Map<String, Value>, labels: &Map<String, Value>) -> bool {
    let equal = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    equal.into_iter().all(|(k, v)| labels.get(k) == Some(v))
        && expressions.into_iter().all(|e| expression_holds(e, labels))
}

fn expression_holds(expression: &Value, labels: &Map<String, Value>) -> bool {
    let value = expression["key"].as_str().and_then(|key| labels.get(key));
    let among = || value.is_some_and(|v| expression["values"].as_array().is_some_and(|vs| vs.contains(v)));
    match expression["operator"].as_str() {
        Some("In") => among(),
        Some("NotIn") => !among(),
        Some("Exists") => value.is_some(),
        Some("DoesNotExist") => value.is_none(),
        _ => false,
    }
}

pub(super) fn service(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let headless = object.str_at("/spec/clusterIP") == "None";
    let external = object.str_at("/spec/type") == "ExternalName";
    let ports = object.at("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    if ports.is_empty() && !headless && !external {
        errors.push(FieldError::required("spec.ports", ""));
    }
    for (i, port) in ports.iter().enumerate() {
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(format!("spec.ports[{i}].port"), number, why));
        }
        if ports.len() > 1 && port.get("name").is_none() {
            errors.push(FieldError::required(format!("spec.ports[{i}].name"), ""));
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !types.contains(&object.str_at("/spec/type")) {
        errors.push(FieldError::not_supported("spec.type", object.str_at("/spec/type"), &types));
    }
    if external && object.str_at("/spec/externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    errors
}

/// An event lives in the namespace of what it is about.
pub(super) fn event(object: &Object) -> Vec<FieldError> {
    let about = object.str_at("/involvedObject/namespace");
    let fits = about == object.namespace()
        || (about.is_empty() && ["", "default", "kube-system"].contains(&object.namespace()));
    if fits {
        Vec::new()
    } else {
        vec![FieldError::invalid("involvedObject.namespace", about, "does not match event.namespace")]
    }
}
