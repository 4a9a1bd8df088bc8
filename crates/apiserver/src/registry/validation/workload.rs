//! Kinds that make pods from a template.

use serde_json::{Map, Value};

use super::pod::pod_spec;
use crate::registry::Object;
use crate::registry::metadata::validate_labels;
use crate::status::FieldError;

/// Kinds with a selector and a template: the selector must choose what the template makes.
pub(in crate::registry) fn workload(object: &Object) -> Vec<FieldError> {
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

pub(in crate::registry) fn selector_update(new: &Object, old: &Object) -> Vec<FieldError> {
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
