//! Wrong types in an applied configuration, with the messages of structured-merge-diff.

use serde_json::Value;

use super::compare::keys_of;
use super::{Kind, Model};
use crate::registry::Resource;
use crate::schema::{Shape, types};

/// The type that the schema has for a value. Quantities and the like may be of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Numeric,
    String,
    Boolean,
    Map,
    List,
}

/// The first value of a configuration with another type than its schema, as messages name it.
pub(crate) fn type_error(resource: &Resource, config: &Value) -> Option<String> {
    find(config, Model::of(resource), &mut String::new())
}

/// `path` is the path of the value.
fn find(value: &Value, model: Model<'_>, path: &mut String) -> Option<String> {
    if let Some(why) = mismatch(Expected::of(model)?, value) {
        return Some(format!("{path}: {why}"));
    }
    let mark = path.len();
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, inner)| {
            path.truncate(mark);
            path.push('.');
            path.push_str(name);
            find(inner, model.member(name), path)
        }),
        Value::Array(items) => {
            let element = element(model);
            items.iter().enumerate().find_map(|(i, item)| {
                path.truncate(mark);
                path.push_str(&match Kind::of(model, value) {
                    Kind::Keyed(keys, inner) => keys_of(item, keys, inner).path(),
                    _ => format!("[{i}]"),
                });
                find(item, element, path)
            })
        }
        _ => None,
    }
}

fn element(model: Model<'_>) -> Model<'_> {
    match model {
        Model::Shape(Shape::List(inner, ..)) => Model::Shape(inner),
        Model::Custom(schema) => schema.items().map_or(Model::Free, Model::Custom),
        _ => Model::Free,
    }
}

impl Expected {
    fn of(model: Model<'_>) -> Option<Self> {
        match model {
            Model::Type(_) | Model::Root(_) => Some(Self::Map),
            Model::Custom(schema) => match schema.type_name()? {
                "object" => Some(Self::Map),
                "array" => Some(Self::List),
                "string" => Some(Self::String),
                "boolean" => Some(Self::Boolean),
                _ => Some(Self::Numeric),
            },
            Model::Shape(shape) => match shape {
                Shape::String | Shape::Enum(_) | Shape::Bytes | Shape::Time | Shape::MicroTime => {
                    Some(Self::String)
                }
                Shape::Int32 | Shape::Int64 | Shape::Number => Some(Self::Numeric),
                Shape::Bool => Some(Self::Boolean),
                Shape::Struct(name, _) => types().named(name).map(|_| Self::Map),
                Shape::Map(_) => Some(Self::Map),
                Shape::List(..) => Some(Self::List),
                Shape::Quantity | Shape::IntOrString | Shape::Any | Shape::ObjectOrAny(_) => None,
            },
            Model::Free => None,
        }
    }
}

/// Why a value does not have a type. Null has every type.
fn mismatch(expected: Expected, value: &Value) -> Option<String> {
    let go_type = || match value {
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        _ => "map[string]interface {}",
    };
    match (expected, value) {
        (_, Value::Null)
        | (Expected::Numeric, Value::Number(_))
        | (Expected::String, Value::String(_))
        | (Expected::Boolean, Value::Bool(_))
        | (Expected::Map, Value::Object(_))
        | (Expected::List, Value::Array(_)) => None,
        (Expected::Numeric, _) => Some(format!("expected numeric (int or float), got {}", go_type())),
        (Expected::String, _) => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{value}}}"))
        }
        (Expected::Boolean, _) => Some(format!("expected boolean, got &{{{}}}", plain(value))),
        (Expected::Map, _) => Some(format!("expected map, got &{{{}}}", plain(value))),
        (Expected::List, _) => Some(format!("expected list, got &{{{}}}", plain(value))),
    }
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use serde_json::json;

    #[test]
    fn the_first_wrong_type_is_named_with_its_path() {
        let registry = Registry::built_in();
        let deployments = registry.find("apps", "v1", "deployments").unwrap();
        let spec = |spec: Value| type_error(deployments, &json!({"metadata": {"name": "d"}, "spec": spec}));
        assert_eq!(spec(json!({"replicas": 3, "paused": true, "selector": null})), None);
        let of = |why: &str| Some(why.to_owned());
        assert_eq!(
            spec(json!({"replicas": "3"})),
            of(".spec.replicas: expected numeric (int or float), got string")
        );
        assert_eq!(spec(json!({"paused": "x"})), of(".spec.paused: expected boolean, got &{x}"));
        let containers = json!([{"name": "c", "image": 5}]);
        let path = ".spec.template.spec.containers[name=\"c\"].image";
        let why = "expected string, got &value.valueUnstructured{Value:5}";
        assert_eq!(
            spec(json!({"template": {"spec": {"containers": containers}}})),
            Some(format!("{path}: {why}"))
        );
        assert_eq!(spec(json!([])), of(".spec: expected map, got &{[]}"));
    }
}
