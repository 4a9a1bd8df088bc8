//! Pruning of unknown fields and defaulting, which precede validation.

use serde_json::{Map, Value};

use super::schema::{Additional, Structural};
use crate::budget::{Budget, TooLarge};
use crate::schema::Reported;

/// Fields that every object has, independent of its schema.
const IDENTITY: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes fields that the schema does not specify, and returns their paths in document order. The type and the metadata of the object
/// stay.
pub(crate) fn prune(schema: &Structural, object: &mut Map<String, Value>) -> Vec<String> {
    let mut walk = Pruning { path: String::new(), unknown: Reported::default() };
    walk.fields(schema, object, true);
    walk.unknown.into_paths()
}

struct Pruning {
    /// The path of the current value, as `a.b[3]`.
    path: String,
    unknown: Reported,
}

impl Pruning {
    fn value(&mut self, schema: &Structural, value: &mut Value) {
        match value {
            Value::Object(fields) => self.fields(schema, fields, schema.embedded),
            Value::Array(items) => {
                let Some(inner) = &schema.items else { return };
                let mark = self.path.len();
                for (i, item) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{i}]"));
                    self.value(inner, item);
                    self.path.truncate(mark);
                }
            }
            _ => {}
        }
    }

    fn fields(&mut self, schema: &Structural, fields: &mut Map<String, Value>, identity: bool) {
        let mark = self.path.len();
        let mut pruned_names = Vec::new();
        for (name, value) in fields.iter_mut() {
            if mark > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            match (schema.properties.get(name), &schema.additional) {
                _ if identity && IDENTITY.contains(&name.as_str()) => {}
                (Some(named), _) => self.value(named, value),
                (None, Additional::Schema(schema)) => self.value(schema, value),
                (None, Additional::Any) => {}
                (None, Additional::None) if schema.preserve => {}
                (None, Additional::None) => {
                    self.unknown.push(&self.path);
                    pruned_names.push(name.clone());
                }
            }
            self.path.truncate(mark);
        }
        for name in pruned_names {
            fields.remove(&name);
        }
    }
}

/// Applies defaults, inside objects that are present only, as long as the budget allows. A `null` that is not allowed counts as absent.
pub(crate) fn apply_defaults(
    schema: &Structural,
    fields: &mut Map<String, Value>,
    budget: &mut Budget,
) -> Result<(), TooLarge> {
    fields.retain(|name, value| {
        let inner = schema.property(name);
        !(value.is_null() && inner.is_some_and(|s| !s.nullable && s.default.is_none()))
    });
    for (name, inner) in &schema.properties {
        if let Some(default) = &inner.default
            && (!fields.contains_key(name) || is_disallowed_null(inner, &fields[name]))
        {
            budget.spend_field(name, default)?;
            fields.insert(name.clone(), default.clone());
        }
    }
    for (name, value) in fields.iter_mut() {
        if let Some(inner) = schema.property(name) {
            default_value(inner, value, budget)?;
        }
    }
    Ok(())
}

fn default_value(schema: &Structural, value: &mut Value, budget: &mut Budget) -> Result<(), TooLarge> {
    if let (true, Some(default)) = (is_disallowed_null(schema, value), &schema.default) {
        budget.spend_field("", default)?;
        *value = default.clone();
    }
    match value {
        Value::Object(fields) => apply_defaults(schema, fields, budget),
        Value::Array(items) => match &schema.items {
            Some(inner) => items.iter_mut().try_for_each(|item| default_value(inner, item, budget)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Removes every `null` that is not allowed and that no default replaces.
pub(super) fn remove_nulls(schema: &Structural, fields: &mut Map<String, Value>) {
    fields.retain(|name, value| match schema.property(name) {
        Some(inner) if value.is_null() => inner.nullable || inner.default.is_some(),
        Some(inner) => {
            remove_nulls_in(inner, value);
            true
        }
        None => true,
    });
}

fn remove_nulls_in(schema: &Structural, value: &mut Value) {
    match (value, &schema.items) {
        (Value::Object(fields), _) => remove_nulls(schema, fields),
        (Value::Array(items), Some(inner)) => items.iter_mut().for_each(|item| remove_nulls_in(inner, item)),
        _ => {}
    }
}

fn is_disallowed_null(schema: &Structural, value: &Value) -> bool {
    value.is_null() && !schema.nullable
}

#[cfg(test)]
mod tests {
    use super::super::tests::schema;
    use super::*;
    use serde_json::json;

    fn pruned(s: Value, mut value: Value) -> (Value, Vec<String>) {
        let unknown = prune(&schema(s), value.as_object_mut().unwrap());
        (value, unknown)
    }

    fn defaulted(s: Value, mut value: Value) -> Value {
        apply_defaults(&schema(s), value.as_object_mut().unwrap(), &mut Budget::new(1000)).unwrap();
        value
    }

    #[test]
    fn unknown_fields_are_pruned_at_every_depth() {
        let s = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "list": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"b": {"type": "string"}}}},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                "properties": {"known": {"type": "object", "properties": {}}}}}}}});
        let value = json!({"metadata": {"name": "x"}, "kind": "K", "apiVersion": "v", "extra": 1, "spec": {
            "list": [{"a": "1"}, {"a": "1", "z": 1}], "map": {"k": {"b": "1", "y": 1}}, "free": {"any": 1, "known": {"no": 1}}, "u": 1}});
        let (value, mut unknown) = pruned(s, value);
        unknown.sort();
        assert_eq!(unknown, ["extra", "spec.free.known.no", "spec.list[1].z", "spec.map.k.y", "spec.u"]);
        assert_eq!(
            value,
            json!({"metadata": {"name": "x"}, "kind": "K", "apiVersion": "v", "spec": {
                "list": [{"a": "1"}, {"a": "1"}], "map": {"k": {"b": "1"}}, "free": {"any": 1, "known": {}}}})
        );
    }

    #[test]
    fn embedded_objects_keep_their_type_and_metadata() {
        let s = json!({"type": "object", "properties": {"template": {"type": "object", "x-kubernetes-embedded-resource": true,
            "properties": {"spec": {"type": "object", "properties": {}}}}}});
        let value = json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"x": 1}, "y": 1}});
        let (value, unknown) = pruned(s, value);
        assert_eq!(unknown, ["template.spec.x", "template.y"]);
        assert_eq!(
            value,
            json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}})
        );
    }

    #[test]
    fn defaults_replace_absent_fields_and_disallowed_nulls() {
        let s = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 3},
            "maybe": {"type": "integer", "default": 4, "nullable": true},
            "plain": {"type": "string"},
            "deep": {"type": "object", "default": {}, "properties": {"mode": {"type": "string", "default": "auto"}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"p": {"type": "string", "default": "TCP"}}}}}}}});
        assert_eq!(defaulted(s.clone(), json!({})), json!({}));
        assert_eq!(
            defaulted(
                s,
                json!({"spec": {"size": null, "maybe": null, "plain": null, "map": {"a": {}}, "list": [{}, {"p": "UDP"}]}})
            ),
            json!({"spec": {"size": 3, "maybe": null, "deep": {"mode": "auto"}, "map": {"a": {"n": 1}}, "list": [{"p": "TCP"}, {"p": "UDP"}]}})
        );
    }

    #[test]
    fn defaults_stop_when_the_object_becomes_too_large() {
        let defaults: Map<String, Value> = (0..100)
            .map(|n| (format!("f{n}"), json!({"type": "string", "default": "x".repeat(200)})))
            .collect();
        let s = schema(json!({"type": "object", "properties": {"list": {"type": "array",
            "items": {"type": "object", "properties": defaults}}}}));
        let mut value = json!({"list": vec![json!({}); 10_000]});
        let defaulted = apply_defaults(&s, value.as_object_mut().unwrap(), &mut Budget::new(100_000));
        assert_eq!(defaulted, Err(TooLarge));
        let items = value["list"].as_array().unwrap();
        let grown = items.iter().filter(|item| item.as_object().is_some_and(|fields| !fields.is_empty()));
        assert!(grown.count() <= 5, "elements beyond the limit have defaults");
    }
}
