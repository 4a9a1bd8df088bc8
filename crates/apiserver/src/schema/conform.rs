//! Makes a value what a typed server would have decoded: wrong types are refused, unknown fields leave, empty ones too.

use serde_json::{Map, Value};
use thiserror::Error;

use super::table::{Shape, Type, types};

/// A field holds the wrong JSON type.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")]
pub(crate) struct TypeMismatch {
    found: &'static str,
    field: String,
    wanted: &'static str,
}

/// Checks `object` against `shape_of` in place.
///
/// 1. A field of the wrong JSON type is an error; nothing may be stored then.
/// 2. Fields the type does not have are removed; their paths are returned in document order.
/// 3. `null`, and an empty list or map in an optional field, mean absent and are removed: what is stored is canonical, so that
///    a write of the same thing in another spelling changes nothing. Empty objects of a type of their own (`emptyDir: {}`) stay.
pub(crate) fn conform(
    shape_of: &Type,
    kind: &str,
    object: &mut Map<String, Value>,
) -> Result<Vec<String>, TypeMismatch> {
    let mut walk = Walk { kind, path: String::new(), unknown: Vec::new() };
    walk.fields(shape_of, object)?;
    Ok(walk.unknown)
}

struct Walk<'a> {
    kind: &'a str,
    path: String,
    unknown: Vec<String>,
}

impl Walk<'_> {
    fn fields(&mut self, shape_of: &Type, object: &mut Map<String, Value>) -> Result<(), TypeMismatch> {
        let mark = self.path.len();
        let mut drop = Vec::new();
        for (name, value) in object.iter_mut() {
            if mark > 0 {
                self.path.push('.');
            }
            self.path.push_str(name);
            match shape_of.field(name) {
                None => {
                    self.unknown.push(self.path.clone());
                    drop.push(name.clone());
                }
                Some(field) => {
                    self.value(&field.shape, value)?;
                    if is_absent(value, &field.shape, field.required) {
                        drop.push(name.clone());
                    }
                }
            }
            self.path.truncate(mark);
        }
        for name in drop {
            object.remove(&name);
        }
        Ok(())
    }

    fn value(&mut self, shape: &Shape, value: &mut Value) -> Result<(), TypeMismatch> {
        match (shape, value) {
            (_, Value::Null) | (Shape::Any, _) => Ok(()),
            (
                Shape::String | Shape::Enum(_) | Shape::Bytes | Shape::Time | Shape::Quantity,
                Value::String(_),
            ) => Ok(()),
            (Shape::Quantity, number @ Value::Number(_)) => {
                *number = Value::String(number.to_string()); // a bare number is a quantity too; the canonical form is text
                Ok(())
            }
            (Shape::IntOrString, Value::String(_))
            | (Shape::Number, Value::Number(_))
            | (Shape::Bool, Value::Bool(_)) => Ok(()),
            (Shape::IntOrString | Shape::Int32, Value::Number(n))
                if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) =>
            {
                Ok(())
            }
            (Shape::Int64, Value::Number(n)) if n.as_i64().is_some() => Ok(()),
            (Shape::Struct(name, _), Value::Object(object)) => match types().named(name) {
                Some(inner) => self.fields(inner, object),
                None => Ok(()),
            },
            (Shape::Map(inner), Value::Object(object)) => self.entries(inner, object),
            (Shape::List(inner, ..), Value::Array(items)) => {
                let mark = self.path.len();
                for (i, item) in items.iter_mut().enumerate() {
                    self.path.push_str(&format!("[{i}]"));
                    self.value(inner, item)?;
                    self.path.truncate(mark);
                }
                Ok(())
            }
            (shape, found) => Err(self.mismatch(shape, found)),
        }
    }

    fn entries(&mut self, inner: &Shape, object: &mut Map<String, Value>) -> Result<(), TypeMismatch> {
        let mark = self.path.len();
        for (key, value) in object.iter_mut() {
            self.path.push('.');
            self.path.push_str(key);
            if value.is_null() && matches!(inner, Shape::String) {
                *value = Value::String(String::new()); // a typed map has no null strings
            }
            self.value(inner, value)?;
            self.path.truncate(mark);
        }
        Ok(())
    }

    fn mismatch(&self, wanted: &Shape, found: &Value) -> TypeMismatch {
        // The path is named without indexes and map keys, as the original does.
        let path: String =
            self.path.split('.').map(|s| s.split('[').next().unwrap_or(s)).collect::<Vec<_>>().join(".");
        TypeMismatch {
            found: json_type(found),
            field: format!("{}.{path}", self.kind),
            wanted: wanted.type_name(),
        }
    }
}

impl Shape {
    fn type_name(&self) -> &'static str {
        match self {
            Shape::String | Shape::Enum(_) => "string",
            Shape::Int32 => "int32",
            Shape::Int64 => "int64",
            Shape::Number => "float64",
            Shape::Bool => "bool",
            Shape::Bytes => "[]uint8",
            Shape::Time => "v1.Time",
            Shape::Quantity => "resource.Quantity",
            Shape::IntOrString => "intstr.IntOrString",
            Shape::Any => "interface {}",
            Shape::Struct(name, _) => name.split_once('.').map_or(name, |(_, short)| short),
            Shape::Map(_) => "map[string]string",
            Shape::List(..) => "[]interface {}",
        }
    }
}

fn is_absent(value: &Value, shape: &Shape, required: bool) -> bool {
    match (value, shape) {
        (Value::Null, _) => true,
        (Value::Array(items), Shape::List(..)) => items.is_empty() && !required,
        (Value::Object(entries), Shape::Map(_)) => entries.is_empty() && !required,
        _ => false,
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(kind: &str, group: &str, mut object: Value) -> (Value, Result<Vec<String>, String>) {
        let shape = types().kind(group, "v1", kind).unwrap();
        let unknown = conform(shape, kind, object.as_object_mut().unwrap()).map_err(|e| e.to_string());
        (object, unknown)
    }

    #[test]
    fn unknown_fields_leave_and_are_named() {
        let (pod, unknown) = check(
            "Pod",
            "",
            json!({"x": 1, "spec": {"containers": [{"name": "c", "img": "i"}], "volumes": []}}),
        );
        assert_eq!(unknown.unwrap(), ["spec.containers[0].img", "x"]);
        assert_eq!(pod, json!({"spec": {"containers": [{"name": "c"}]}}));
    }

    #[test]
    fn wrong_types_are_refused_with_the_field() {
        let (_, e) = check("ConfigMap", "", json!({"data": {"k": 1}}));
        assert_eq!(
            e.unwrap_err(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data.k of type string"
        );
        let (_, e) = check("Deployment", "apps", json!({"spec": {"replicas": 3_000_000_000u64}}));
        assert!(e.unwrap_err().contains("Deployment.spec.replicas of type int32"));
    }

    #[test]
    fn typed_empty_objects_stay_and_nulls_leave() {
        let (pod, _) = check(
            "Pod",
            "",
            json!({"metadata": {"labels": {}, "creationTimestamp": null},
            "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}}),
        );
        assert_eq!(
            pod,
            json!({"metadata": {}, "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}})
        );
    }
}
