//! Workloads: resources that create pods from a template.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::container::among;
use super::numbers::{not_negative, share};
use super::pod::pod_spec;
use super::selector;
use crate::registry::Object;
use crate::registry::metadata::validate_labels;
use crate::status::{FieldError, FieldErrors};

pub(in crate::registry) fn deployment(object: &Object) -> FieldErrors {
    let mut errors = not_negative(object, &["/spec/replicas"]);
    errors.extend(chosen_template(object, "deployment", "ReplicaSet"));
    errors.extend(deployment_strategy(object.at("/spec/strategy").unwrap_or(&Value::Null)));
    errors.extend(not_negative(
        object,
        &["/spec/minReadySeconds", "/spec/revisionHistoryLimit", "/spec/progressDeadlineSeconds"],
    ));
    let number = |at| object.at(at).and_then(Value::as_i64);
    let ready = number("/spec/minReadySeconds").unwrap_or_default();
    if let Some(deadline) = number("/spec/progressDeadlineSeconds").filter(|deadline| *deadline <= ready) {
        let why = "must be greater than minReadySeconds";
        errors.push(FieldError::invalid("spec.progressDeadlineSeconds", deadline, why));
    }
    errors
}

fn deployment_strategy(strategy: &Value) -> FieldErrors {
    let at = "spec.strategy";
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" if strategy["rollingUpdate"].is_null() => FieldErrors::new(),
        "Recreate" => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            [FieldError::forbidden(format!("{at}.rollingUpdate"), why)].into()
        }
        "RollingUpdate" => rolling_update(&strategy["rollingUpdate"], &format!("{at}.rollingUpdate")),
        _ => {
            let allowed = [json!("Recreate"), json!("RollingUpdate")];
            [FieldError::not_among(at, strategy, &allowed)].into()
        }
    }
}

fn rolling_update(update: &Value, at: &str) -> FieldErrors {
    let (unavailable, surge) = (&update["maxUnavailable"], &update["maxSurge"]);
    let mut errors = share(unavailable, &format!("{at}.maxUnavailable"));
    errors.extend(share(surge, &format!("{at}.maxSurge")));
    let none = |share: &Value| share.as_i64() == Some(0) || share.as_str() == Some("0%");
    if none(unavailable) && none(surge) {
        let why = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(format!("{at}.maxUnavailable"), unavailable, why));
    }
    errors
}

pub(in crate::registry) fn replica_set(object: &Object) -> FieldErrors {
    let mut errors = not_negative(object, &["/spec/replicas", "/spec/minReadySeconds"]);
    errors.extend(chosen_template(object, "deployment", "ReplicaSet"));
    errors
}

pub(in crate::registry) fn daemon_set(object: &Object) -> FieldErrors {
    let mut errors = chosen_template(object, "daemonset", "DaemonSet");
    errors.extend(not_negative(object, &["/spec/minReadySeconds"]));
    errors.extend(daemon_strategy(object.at("/spec/updateStrategy").unwrap_or(&Value::Null)));
    errors.extend(not_negative(object, &["/spec/revisionHistoryLimit"]));
    errors
}

fn daemon_strategy(strategy: &Value) -> FieldErrors {
    let at = "spec.updateStrategy";
    match strategy["type"].as_str().unwrap_or_default() {
        "OnDelete" => FieldErrors::new(),
        "RollingUpdate" => {
            let update = &strategy["rollingUpdate"];
            let none = |share: &Value| share.as_i64() == Some(0) || share.as_str() == Some("0%");
            let field = format!("{at}.rollingUpdate.maxUnavailable");
            if update.is_object() && none(&update["maxUnavailable"]) && none(&update["maxSurge"]) {
                return [FieldError::required(field, "cannot be 0 when maxSurge is 0")].into();
            }
            FieldErrors::new()
        }
        _ => {
            let allowed = [json!("RollingUpdate"), json!("OnDelete")];
            [FieldError::not_among(at, strategy, &allowed)].into()
        }
    }
}

pub(in crate::registry) fn stateful_set(object: &Object) -> FieldErrors {
    let mut errors = FieldErrors::new();
    let either = |value: &str, one: &str, other: &str, field: &str, shown: &Value| {
        let why = format!("must be '{one}' or '{other}'");
        (![one, other].contains(&value)).then(|| FieldError::invalid(field, shown, why))
    };
    let policy = object.at("/spec/podManagementPolicy").unwrap_or(&Value::Null);
    let text = policy.as_str().unwrap_or_default();
    errors.extend(either(text, "OrderedReady", "Parallel", "spec.podManagementPolicy", policy));
    let strategy = object.at("/spec/updateStrategy").unwrap_or(&Value::Null);
    let text = strategy["type"].as_str().unwrap_or_default();
    errors.extend(either(text, "RollingUpdate", "OnDelete", "spec.updateStrategy", strategy));
    errors.extend(not_negative(object, &["/spec/updateStrategy/rollingUpdate/partition"]));
    errors.extend(not_negative(object, &["/spec/replicas", "/spec/minReadySeconds", "/spec/ordinals/start"]));
    errors.extend(chosen_template(object, "statefulset", "StatefulSet"));
    errors
}

/// Most of the spec of a stateful set is immutable.
pub(in crate::registry) fn stateful_set_update(new: &Object, old: &Object) -> FieldErrors {
    let fixed = |set: &Object| {
        let mut spec = set.at("/spec").and_then(Value::as_object).cloned().unwrap_or_default();
        for field in [
            "replicas",
            "template",
            "updateStrategy",
            "minReadySeconds",
            "ordinals",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
        ] {
            spec.remove(field);
        }
        spec
    };
    if fixed(new) == fixed(old) {
        return FieldErrors::new();
    }
    let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', \
               'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    [FieldError::forbidden("spec", why)].into()
}

pub(in crate::registry) fn replication_controller(object: &Object) -> FieldErrors {
    let mut errors = not_negative(object, &["/spec/minReadySeconds"]);
    let empty = Map::new();
    let chosen = object.at("/spec/selector").and_then(Value::as_object).unwrap_or(&empty);
    if chosen.is_empty() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    errors.extend(not_negative(object, &["/spec/replicas"]));
    if object.at("/spec/template").is_none() {
        errors.push(FieldError::required("spec.template", ""));
        return errors;
    }
    let labels = object.at("/spec/template/metadata/labels").and_then(Value::as_object).unwrap_or(&empty);
    if chosen.iter().any(|(key, value)| labels.get(key) != Some(value)) {
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", labels, why));
    }
    errors.extend(template(object, "ReplicationController"));
    errors
}

pub(in crate::registry) fn selector_update(new: &Object, old: &Object) -> FieldErrors {
    let (is, was) = (new.at("/spec/selector"), old.at("/spec/selector"));
    if is == was {
        FieldErrors::new()
    } else {
        [FieldError::invalid("spec.selector", is, "field is immutable")].into()
    }
}

/// The selector must match the labels of the template.
fn chosen_template(object: &Object, for_a: &str, kind: &str) -> FieldErrors {
    let mut errors = FieldErrors::new();
    match object.at("/spec/selector").and_then(Value::as_object) {
        None => errors.push(FieldError::required("spec.selector", "")),
        Some(chosen) => {
            errors.extend(selector::validate(chosen, "spec.selector"));
            if chosen.is_empty() {
                let why = format!("empty selector is invalid for {for_a}");
                errors.push(FieldError::invalid("spec.selector", chosen, why));
            } else if errors.is_empty() {
                errors.extend(selector::must_match(chosen, object));
            }
        }
    }
    errors.extend(template(object, kind));
    errors
}

/// The template of pods that are always restarted.
fn template(object: &Object, kind: &str) -> FieldErrors {
    let at = "spec.template.spec";
    let labels = object.at("/spec/template/metadata/labels");
    let mut errors = validate_labels(labels, "spec.template.labels");
    let mut spec = object.at("/spec/template/spec").cloned().unwrap_or_default();
    let claimed = claimed_volumes(object);
    if let Some(fields) = spec.as_object_mut().filter(|_| !claimed.is_empty()) {
        let volumes = fields.entry("volumes").or_insert_with(|| json!([]));
        if let Some(volumes) = volumes.as_array_mut() {
            volumes.extend(claimed);
        }
    }
    errors.extend(pod_spec(Some(&spec), at));
    let policy = spec["restartPolicy"].as_str().unwrap_or_default();
    errors.extend(among(policy, &["Always"], format!("{at}.restartPolicy")));
    if !spec["activeDeadlineSeconds"].is_null() {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        errors.push(FieldError::forbidden(format!("{at}.activeDeadlineSeconds"), why));
    }
    errors
}

/// The volumes that a stateful set claims for its pods, unless the template has one of that name.
fn claimed_volumes(object: &Object) -> Vec<Value> {
    let claims = object.at("/spec/volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten();
    let own = object.at("/spec/template/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let own: HashSet<String> = own.map(|volume| volume["name"].to_string()).collect();
    claims
        .map(|claim| &claim["metadata"]["name"])
        .filter(|name| !own.contains(&name.to_string()))
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect()
}
