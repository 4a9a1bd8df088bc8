//! Checks that lists of type `set` or `map` have no duplicates.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::path::Path;
use super::schema::Structural;
use crate::schema::ListKind;
use crate::status::{FieldError, FieldErrors};

pub(super) fn check(schema: &Structural, value: &Value, path: Path<'_>, errors: &mut FieldErrors) {
    if errors.is_full() {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(inner) = schema.property(name) {
                    check(inner, value, path.field(name), errors);
                }
            }
        }
        Value::Array(items) => {
            check_distinct(schema, items, path, errors);
            if let Some(inner) = &schema.items {
                for (i, item) in items.iter().enumerate() {
                    check(inner, item, path.element(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_distinct(schema: &Structural, items: &[Value], path: Path<'_>, errors: &mut FieldErrors) {
    let identity = |item: &Value| match &schema.list {
        ListKind::Atomic => None,
        ListKind::Set => Some(item.to_string()),
        ListKind::Map(keys) => Some(Value::Object(key_fields(item, keys)).to_string()),
    };
    let mut seen = HashSet::new();
    for (i, item) in items.iter().enumerate() {
        if let Some(id) = identity(item)
            && !seen.insert(id.clone())
        {
            errors.push(FieldError::duplicate_json(path.element(i), &id));
        }
    }
}

fn key_fields(item: &Value, keys: &[String]) -> Map<String, Value> {
    keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::schema;
    use super::*;
    use serde_json::json;

    #[test]
    fn duplicates_in_sets_and_maps_are_errors() {
        let s = schema(json!({"type": "object", "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["p", "q"],
                "items": {"type": "object", "required": ["p", "q"], "properties": {"p": {"type": "integer"}, "q": {"type": "string"}}}},
            "free": {"type": "array", "items": {"type": "string"}}}}));
        let value = json!({"set": ["a", "b", "a"], "free": ["a", "a"],
            "map": [{"p": 1, "q": "x"}, {"p": 1, "q": "y"}, {"q": "x", "p": 1, "n": 2}]});
        let mut errors = FieldErrors::new();
        check(&s, &value, Path::ROOT, &mut errors);
        let texts: Vec<String> = errors.iter().map(FieldError::text).collect();
        assert_eq!(
            texts,
            ["map[2]: Duplicate value: {\"p\":1,\"q\":\"x\"}", "set[2]: Duplicate value: \"a\""]
        );
    }
}
