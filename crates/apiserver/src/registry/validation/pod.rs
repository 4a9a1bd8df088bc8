//! Pods and pod templates.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::container::{among, container};
use super::pod_details;
use super::read::{each, text};
use super::sysctl::sysctls;
use crate::registry::Object;
use crate::registry::metadata::validate_labels;
use crate::registry::names::{label, label_value, qualified_name, subdomain};
use crate::status::{FieldError, FieldErrors};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
/// Bytes of a host name that replaces the one of a pod: the limit of the kernel.
const MAX_HOSTNAME: usize = 64;
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The errors of a name.
type Rule = fn(&str) -> Vec<String>;

pub(in crate::registry) fn pod(object: &Object) -> FieldErrors {
    let mut errors = pod_spec(object.at("/spec"), "spec");
    let none = json!({});
    let spec = object.at("/spec").unwrap_or(&none);
    errors.extend(tokens_without_account(spec));
    if each(spec, "schedulingGates").next().is_some() && !text(spec, "nodeName").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden("spec.nodeName", why));
    }
    for list in ["containers", "initContainers"] {
        for (i, container) in each(spec, list) {
            let image = text(container, "image");
            if image != image.trim() {
                let why = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(format!("spec.{list}[{i}].image"), image, why));
            }
        }
    }
    errors
}

/// A projected token needs a service account. Templates may get theirs later.
fn tokens_without_account(spec: &Value) -> FieldErrors {
    let mut errors = FieldErrors::new();
    if !text(spec, "serviceAccountName").is_empty() {
        return errors;
    }
    for (i, volume) in each(spec, "volumes") {
        for (j, _) in
            each(&volume["projected"], "sources").filter(|(_, s)| s["serviceAccountToken"].is_object())
        {
            let field = format!("spec.volumes[{i}].projected.sources[{j}].serviceAccountToken");
            let why = "must not be specified when serviceAccountName is not set";
            errors.push(FieldError::forbidden(field, why));
        }
    }
    errors
}

/// Only images, the deadline (decreased), tolerations (added) and scheduling gates (removed) of the spec may change. A binding sets the
/// node.
pub(in crate::registry) fn pod_update(new: &Object, old: &Object) -> FieldErrors {
    for list in ["containers", "initContainers"] {
        let count = |pod: &Object| pod.at("/spec").and_then(|spec| spec[list].as_array().map(Vec::len));
        if count(new).unwrap_or(0) != count(old).unwrap_or(0) {
            let why = "pod updates may not add or remove containers";
            return [FieldError::forbidden(format!("spec.{list}"), why)].into();
        }
    }
    let mut errors = FieldErrors::new();
    let deadline = |pod: &Object| pod.at("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (deadline(new), deadline(old)) {
        (Some(new), Some(old)) if new > old => {
            let why = "must be less than or equal to previous value";
            return [FieldError::invalid("spec.activeDeadlineSeconds", new, why)].into();
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
    let of = |pod: &Object| -> HashSet<String> {
        let list = pod.at("/spec/tolerations").and_then(Value::as_array).into_iter().flatten();
        let untimed = |toleration: &Value| {
            let mut toleration = toleration.clone();
            toleration.as_object_mut().map(|fields| fields.remove("tolerationSeconds"));
            toleration.to_string()
        };
        list.map(untimed).collect()
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

pub(super) fn pod_spec(spec: Option<&Value>, at: &str) -> FieldErrors {
    let none = json!({});
    let spec = spec.unwrap_or(&none);
    let text = |field| text(spec, field);
    let (volumes, mut errors) = volumes(&spec["volumes"], &format!("{at}.volumes"));
    errors.extend(containers(spec, at, &volumes));
    match text("restartPolicy") {
        "" => errors.push(FieldError::required(format!("{at}.restartPolicy"), "")),
        policy => errors.extend(among(policy, &RESTART_POLICIES, format!("{at}.restartPolicy"))),
    }
    errors.extend(among(text("dnsPolicy"), &DNS_POLICIES, format!("{at}.dnsPolicy")));
    errors.extend(validate_labels(spec.get("nodeSelector"), &format!("{at}.nodeSelector")));
    let names: [(&str, Rule); 3] =
        [("serviceAccountName", subdomain), ("nodeName", subdomain), ("hostname", label)];
    for (field, rule) in names {
        let name = text(field);
        if !name.is_empty() {
            let field = format!("{at}.{field}");
            errors.extend(rule(name).into_iter().map(|why| FieldError::invalid(&field, name, why)));
        }
    }
    errors.extend(hostname_override(spec, &format!("{at}.hostnameOverride")));
    if let Some(deadline) = spec["activeDeadlineSeconds"].as_i64().filter(|seconds| *seconds < 1) {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(format!("{at}.activeDeadlineSeconds"), deadline, why));
    }
    errors.extend(tolerations(&spec["tolerations"], &format!("{at}.tolerations")));
    errors.extend(sysctls(spec, at));
    errors.extend(pod_details::spec(spec, at));
    errors
}

fn hostname_override(spec: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let Some(name) = spec["hostnameOverride"].as_str() else { return errors };
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec[field] == true {
            errors.push(FieldError::forbidden(at, format!("may not be specified when {field} is true")));
        }
    }
    if name.len() > MAX_HOSTNAME {
        errors.push(FieldError::too_long(at, MAX_HOSTNAME));
    }
    errors.extend(subdomain(name).into_iter().map(|why| FieldError::invalid(at, name, why)));
    errors
}

fn containers(spec: &Value, at: &str, volumes: &HashSet<&str>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let mut names = HashSet::new();
    for list in ["containers", "initContainers"] {
        let all = spec[list].as_array().map_or(&[][..], Vec::as_slice);
        if list == "containers" && all.is_empty() {
            errors.push(FieldError::required(format!("{at}.containers"), ""));
        }
        for (i, one) in all.iter().enumerate() {
            let at = format!("{at}.{list}[{i}]");
            errors.extend(container(one, &at, volumes));
            errors.extend(pod_details::container(one, &at));
            let name = one["name"].as_str().unwrap_or_default();
            if !name.is_empty() && !names.insert(name) {
                errors.push(FieldError::duplicate(format!("{at}.name"), name));
            }
        }
    }
    errors
}

/// The names of valid volumes, and the errors of the others.
fn volumes<'v>(list: &'v Value, at: &str) -> (HashSet<&'v str>, FieldErrors) {
    let (mut names, mut errors) = (HashSet::new(), FieldErrors::new());
    for (i, volume) in list.as_array().into_iter().flatten().enumerate() {
        let name = volume["name"].as_str().unwrap_or_default();
        let sources =
            volume.as_object().map_or(0, |fields| fields.keys().filter(|key| *key != "name").count());
        let mut wrong = FieldErrors::new();
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

fn tolerations(list: &Value, at: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
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
