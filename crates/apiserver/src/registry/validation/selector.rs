//! Selectors inside objects: `matchLabels` and `matchExpressions`.

use serde_json::{Map, Value};

use crate::registry::Object;
use crate::registry::metadata::validate_labels;
use crate::registry::names::qualified_name;
use crate::status::{FieldError, FieldErrors};

/// The errors of a selector.
pub(super) fn validate(selector: &Map<String, Value>, at: &str) -> FieldErrors {
    let mut errors = validate_labels(selector.get("matchLabels"), &format!("{at}.matchLabels"));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    for (i, expression) in expressions.enumerate() {
        let at = format!("{at}.matchExpressions[{i}]");
        let values = expression["values"].as_array().map_or(0, Vec::len);
        match expression["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if values == 0 => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(format!("{at}.values"), why));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(format!("{at}.values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                errors.push(FieldError::invalid(
                    format!("{at}.operator"),
                    other,
                    "not a valid selector operator",
                ));
            }
        }
        let key = expression["key"].as_str().unwrap_or_default();
        errors.extend(
            qualified_name(key).into_iter().map(|why| FieldError::invalid(format!("{at}.key"), key, why)),
        );
    }
    errors
}

/// The selector must match the pods of the template.
pub(super) fn must_match(selector: &Map<String, Value>, object: &Object) -> Option<FieldError> {
    let empty = Map::new();
    let labels = object.at("/spec/template/metadata/labels").and_then(Value::as_object).unwrap_or(&empty);
    let why = "`selector` does not match template `labels`";
    (!selects(selector, labels)).then(|| FieldError::invalid("spec.template.metadata.labels", labels, why))
}

/// Whether a `LabelSelector` object matches these labels.
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
