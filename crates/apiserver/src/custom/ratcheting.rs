//! The former value of a part of an object. Invalid values that do not change stay accepted.

use std::collections::HashMap;

use serde_json::Value;

use super::schema::Structural;
use crate::schema::ListKind;

/// Returns whether a value is the same as before. The order of a list with keys does not matter.
pub(super) fn is_unchanged(schema: &Structural, value: &Value, old: &Value) -> bool {
    match (value, old) {
        (Value::Array(items), Value::Array(old_items)) => {
            if items.len() != old_items.len() {
                return false;
            }
            match (&schema.list, &schema.items) {
                (ListKind::Map(_), Some(inner)) => {
                    let former = FormerItems::new(&schema.list, Some(old));
                    items
                        .iter()
                        .all(|item| former.get(item).is_some_and(|old| is_unchanged(inner, item, old)))
                }
                _ => items == old_items,
            }
        }
        (Value::Object(fields), Value::Object(old_fields)) => {
            fields.len() == old_fields.len()
                && fields.iter().all(|(name, value)| match (old_fields.get(name), schema.property(name)) {
                    (Some(old), Some(inner)) => is_unchanged(inner, value, old),
                    (old, None) => old == Some(value),
                    (None, Some(_)) => false,
                })
        }
        _ => value == old,
    }
}

/// The former elements of a list by their keys. Elements of a list without keys have no former value.
#[derive(Debug)]
pub(super) struct FormerItems<'o> {
    keys: &'o [String],
    items: HashMap<String, &'o Value>,
}

impl<'o> FormerItems<'o> {
    pub(super) fn new(list: &'o ListKind, old: Option<&'o Value>) -> Self {
        let ListKind::Map(keys) = list else { return Self { keys: &[], items: HashMap::new() } };
        let mut items = HashMap::new();
        for item in old.and_then(Value::as_array).into_iter().flatten() {
            items.entry(identity(item, keys)).or_insert(item);
        }
        Self { keys, items }
    }

    pub(super) fn get(&self, item: &Value) -> Option<&'o Value> {
        if self.items.is_empty() { None } else { self.items.get(&identity(item, self.keys)).copied() }
    }
}

fn identity(item: &Value, keys: &[String]) -> String {
    let parts: Vec<String> =
        keys.iter().map(|key| item.get(key).unwrap_or(&Value::Null).to_string()).collect();
    parts.join("\u{0}")
}

#[cfg(test)]
mod tests {
    use super::super::tests::schema;
    use super::super::validate;
    use super::*;
    use crate::status::FieldError;
    use serde_json::json;

    fn errors(schema: &Structural, new: &Value, old: &Value) -> Vec<String> {
        validate(schema, new, Some(old)).iter().map(FieldError::text).collect()
    }

    #[test]
    fn values_that_do_not_change_stay_accepted() {
        let s = schema(json!({"type": "object", "properties": {
            "a": {"type": "string", "enum": ["x"]},
            "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
                "type": "object", "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer", "minimum": 5}, "w": {"type": "integer"}}}},
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "enum": ["x"]}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "enum": ["x"]}}}}));
        let old = json!({"a": "y", "keyed": [{"k": "1", "v": 1}, {"k": "2", "v": 2}], "set": ["y"], "map": {"m": "y"}});
        let mut new = old.clone();
        new["keyed"] = json!([{"k": "2", "v": 2, "w": 1}, {"k": "1", "v": 1}]);
        assert_eq!(errors(&s, &new, &old), [""; 0]);
        new["keyed"] = json!([{"k": "3", "v": 2}, {"k": "1", "v": 3}]);
        new["map"]["n"] = json!("z");
        // The elements of a changed list without keys are all new.
        new["set"] = json!(["y", "x"]);
        let invalid = "should be greater than or equal to 5";
        assert_eq!(
            errors(&s, &new, &old),
            [
                format!("keyed[0].v: Invalid value: 2: keyed[0].v in body {invalid}"),
                format!("keyed[1].v: Invalid value: 3: keyed[1].v in body {invalid}"),
                "map.n: Unsupported value: \"z\": supported values: \"x\"".to_owned(),
                "set[0]: Unsupported value: \"y\": supported values: \"x\"".to_owned(),
            ]
        );
    }

    #[test]
    fn a_missing_field_is_an_error_once_its_object_changes() {
        let s = schema(json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["a"],
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}}}));
        let old = json!({"spec": {"b": "1"}, "metadata": {"labels": {"x": "1"}}});
        assert_eq!(errors(&s, &json!({"spec": {"b": "1"}, "metadata": {}}), &old), [""; 0]);
        assert_eq!(errors(&s, &json!({"spec": {"b": "2"}}), &old), ["spec.a: Required value"]);
    }
}
