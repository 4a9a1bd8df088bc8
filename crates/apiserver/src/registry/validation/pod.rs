//! Pods, alone and as templates.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::container::{among, container};
use crate::registry::Object;
use crate::registry::metadata::validate_labels;
use crate::registry::names::{label, label_value, qualified_name, subdomain};
use crate::status::FieldError;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(in crate::registry) fn pod(object: &Object) -> Vec<FieldError> {
    pod_spec(object.at("/spec"), "spec")
}

/// Of a pod's spec only images, the deadline (down), tolerations (added) and scheduling gates (removed) may change. Who
/// wants it on a node binds it.
pub(in crate::registry) fn pod_update(new: &Object, old: &Object) -> Vec<FieldError> {
    for list in ["containers", "initContainers"] {
        let count = |pod: &Object| pod.at("/spec").and_then(|spec| spec[list].as_array().map(Vec::len));
        if count(new).unwrap_or(0) != count(old).unwrap_or(0) {
            let why = "pod updates may not add or remove containers";
            return vec![FieldError::forbidden(format!("spec.{list}"), why)];
        }
    }
    let mut errors = Vec::new();
    let deadline = |pod: &Object| pod.at("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (deadline(new), deadline(old)) {
        (Some(new), Some(old)) if new > old => {
            let why = "must be less than or equal to previous value";
            return vec![FieldError::invalid("spec.activeDeadlineSeconds", new, why)];
        }
        (None, Some(_)) => {
            let why = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid("spec.activeDeadlineSeconds", Value::Null, why));
        }
        _ => {}
    }
    errors.extend(tolerations_kept(new, old));
    if mutable_removed(new) != mutable_removed(old) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                   `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                   `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

fn tolerations_kept(new: &Object, old: &Object) -> Option<FieldError> {
    let of = |pod: &Object| -> Vec<Value> {
        let list = pod.at("/spec/tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
        let untimed = |mut toleration: Value| {
            toleration.as_object_mut().map(|fields| fields.remove("tolerationSeconds"));
            toleration
        };
        list.into_iter().map(untimed).collect()
    };
    let now = of(new);
    let why = "existing toleration can not be modified except its tolerationSeconds";
    of(old)
        .iter()
        .any(|toleration| !now.contains(toleration))
        .then(|| FieldError::forbidden("spec.tolerations", why))
}

fn mutable_removed(pod: &Object) -> Value {
    let mut spec = pod.at("/spec").cloned().unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
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

pub(super) fn pod_spec(spec: Option<&Value>, at: &str) -> Vec<FieldError> {
    let none = json!({});
    let spec = spec.unwrap_or(&none);
    let text = |field| spec[field].as_str().unwrap_or_default();
    let (volumes, mut errors) = volumes(&spec["volumes"], &format!("{at}.volumes"));
    errors.extend(containers(spec, at, &volumes));
    match text("restartPolicy") {
        "" => errors.push(FieldError::required(format!("{at}.restartPolicy"), "")),
        policy => errors.extend(among(policy, &RESTART_POLICIES, format!("{at}.restartPolicy"))),
    }
    errors.extend(among(text("dnsPolicy"), &DNS_POLICIES, format!("{at}.dnsPolicy")));
    errors.extend(validate_labels(spec.get("nodeSelector"), &format!("{at}.nodeSelector")));
    let names: [(&str, fn(&str) -> Vec<String>); 3] =
        [("serviceAccountName", subdomain), ("nodeName", subdomain), ("hostname", label)];
    for (field, rule) in names {
        let name = text(field);
        if !name.is_empty() {
            let field = format!("{at}.{field}");
            errors.extend(rule(name).into_iter().map(|why| FieldError::invalid(&field, name, why)));
        }
    }
    if let Some(deadline) = spec["activeDeadlineSeconds"].as_i64().filter(|seconds| *seconds < 1) {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(format!("{at}.activeDeadlineSeconds"), deadline, why));
    }
    errors.extend(tolerations(&spec["tolerations"], &format!("{at}.tolerations")));
    errors
}

fn containers(spec: &Value, at: &str, volumes: &HashSet<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    for list in ["containers", "initContainers"] {
        let all = spec[list].as_array().map_or(&[][..], Vec::as_slice);
        if list == "containers" && all.is_empty() {
            errors.push(FieldError::required(format!("{at}.containers"), ""));
        }
        for (i, one) in all.iter().enumerate() {
            let at = format!("{at}.{list}[{i}]");
            errors.extend(container(one, &at, volumes));
            let name = one["name"].as_str().unwrap_or_default();
            if !name.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{at}.name"), name));
            }
        }
    }
    errors
}

/// The names that can be mounted, and what is wrong with the others.
fn volumes<'v>(list: &'v Value, at: &str) -> (HashSet<&'v str>, Vec<FieldError>) {
    let (mut names, mut errors) = (HashSet::new(), Vec::new());
    for (i, volume) in list.as_array().into_iter().flatten().enumerate() {
        let name = volume["name"].as_str().unwrap_or_default();
        let sources =
            volume.as_object().map_or(0, |fields| fields.keys().filter(|key| *key != "name").count());
        let mut wrong = Vec::new();
        if sources == 0 {
            wrong.push(FieldError::required(format!("{at}[{i}]"), "must specify a volume type"));
        }
        if name.is_empty() {
            wrong.push(FieldError::required(format!("{at}[{i}].name"), ""));
        } else {
            let field = format!("{at}[{i}].name");
            wrong.extend(label(name).into_iter().map(|why| FieldError::invalid(&field, name, why)));
        }
        if names.contains(name) {
            wrong.push(FieldError::duplicate(format!("{at}[{i}].name"), name));
        }
        if wrong.is_empty() {
            names.insert(name);
        }
        errors.extend(wrong);
    }
    (names, errors)
}

fn tolerations(list: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, toleration) in list.as_array().into_iter().flatten().enumerate() {
        let text = |field| toleration[field].as_str().unwrap_or_default();
        let (key, operator, value, effect) = (text("key"), text("operator"), text("value"), text("effect"));
        let at = format!("{at}[{i}]");
        if !key.is_empty() {
            let wrong = qualified_name(key);
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid(format!("{at}.key"), key, why)));
        } else if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(format!("{at}.operator"), operator, why));
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(format!("{at}.effect"), effect, why));
        }
        match operator {
            "" | "Equal" => {
                let wrong = label_value(value).join(";");
                if !wrong.is_empty() {
                    errors.push(FieldError::invalid(format!("{at}.operator"), value, wrong));
                }
            }
            "Exists" if value.is_empty() => {}
            "Exists" => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(format!("{at}.operator"), value, why));
            }
            _ => errors.extend(among(operator, &["Equal", "Exists"], format!("{at}.operator"))),
        }
        errors.extend(among(effect, &EFFECTS, format!("{at}.effect")));
    }
    errors
}
