//! JSON merge patches (RFC 7386) that say what changed, guarded by the version that they were made for.

use kube_informer::Object;
use serde_json::{Map, Value};

/// The merge patch that turns `before` into `after`; `None` if they are equal. A `null` in `after` counts as absent, as it does
/// on the server.
pub(crate) fn diff(before: &Value, after: &Value) -> Option<Value> {
    if let (Value::Object(before), Value::Object(after)) = (before, after) {
        let changes = diff_fields(before, after);
        return (!changes.is_empty()).then_some(Value::Object(changes));
    }
    let after = without_nulls(after);
    (*before != after).then_some(after)
}

fn diff_fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let mut changes = Map::new();
    for (name, value) in after.iter().filter(|(_, value)| !value.is_null()) {
        let change = match before.get(name) {
            Some(known) => diff(known, value),
            None => Some(without_nulls(value)),
        };
        if let Some(change) = change {
            changes.insert(name.clone(), change);
        }
    }
    let is_removed = |name: &&String| after.get(*name).is_none_or(Value::is_null);
    for name in before.keys().filter(is_removed) {
        changes.insert(name.clone(), Value::Null);
    }
    changes
}

/// The value without fields that are `null`. Elements of arrays stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let present = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(present.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}

/// Adds the uid and the resource version of `object` to a patch of it: the server applies it to no other state.
pub(crate) fn guard<T>(patch: Value, object: &Object<T>) -> Value {
    let mut patch = match patch {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    let metadata = patch.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(metadata) = metadata {
        metadata.insert("resourceVersion".to_owned(), object.resource_version().to_string().into());
        if let Some(uid) = object.uid().text() {
            metadata.insert("uid".to_owned(), uid.into());
        }
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn equal_values_need_no_patch() {
        let cases = [
            (json!({"a": 1}), json!({"a": 1})),
            (json!({}), json!({"a": null})),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": null}})),
            (json!([1, {"a": 2}]), json!([1, {"a": 2}])),
        ];
        for (before, after) in cases {
            assert_eq!(diff(&before, &after), None, "{before} -> {after}");
        }
    }

    #[test]
    fn a_patch_contains_what_changed_and_nothing_else() {
        let before = json!({"same": [1, 2], "changed": {"x": 1, "y": 2}, "removed": true, "list": [1]});
        let after = json!({"same": [1, 2], "changed": {"x": 1, "y": 3}, "added": {"z": null, "w": 0}, "list": [1, 2]});
        let patch = json!({"changed": {"y": 3}, "added": {"w": 0}, "removed": null, "list": [1, 2]});
        assert_eq!(diff(&before, &after), Some(patch));
        assert_eq!(diff(&Value::Null, &json!({"a": 1})), Some(json!({"a": 1})));
    }

    #[test]
    fn a_scalar_that_becomes_an_object_is_replaced() {
        assert_eq!(diff(&json!({"a": 1}), &json!({"a": {"b": 2}})), Some(json!({"a": {"b": 2}})));
    }
}
