//! Normalizes a value as if it had been decoded into a Go struct: rejects wrong types, drops unknown and empty fields.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use thiserror::Error;

use super::quantity::Quantity;
use super::reported::Reported;
use kube_informer_types::{Field, Shape, Type, Zero, types};

/// A field whose value cannot be decoded.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum TypeMismatch {
    /// The wrong JSON type.
    #[error("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")]
    Type { found: &'static str, field: String, wanted: &'static str },
    /// Text that is not base64.
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    /// Text that is not a time.
    #[error("parsing time {0:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {0:?} as a time")]
    Time(String),
    /// Text that is not a quantity.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Quantity,
}

/// Normalizes `object` to a type in place.
///
/// 1. A field with the wrong JSON type is an error; the object must not be stored then.
/// 2. Fields that the type does not have are removed. Their paths are returned in document order.
/// 3. `null`, and a zero value of a field that omits it, are removed: the stored form is canonical, so that an equivalent
///    write changes nothing. Empty objects with a type of their own (`emptyDir: {}`) stay.
pub(crate) fn conform(
    object_type: &Type,
    kind: &str,
    object: &mut Map<String, Value>,
) -> Result<Vec<String>, TypeMismatch> {
    let mut walk = Walk { owner: kind, unknown: Reported::default() };
    walk.fields(object_type, object, &Path::default())?;
    Ok(walk.unknown.into_paths())
}

/// The path of a value: one segment and those above it. Made on the stack, and written only for errors.
#[derive(Clone, Copy, Default)]
struct Path<'p>(Option<(&'p Path<'p>, Segment<'p>)>);

#[derive(Clone, Copy)]
enum Segment<'p> {
    Field(&'p str),
    Key(&'p str),
    Element(usize),
}

impl<'p> Path<'p> {
    fn then(&'p self, segment: Segment<'p>) -> Self {
        Self(Some((self, segment)))
    }

    /// The path without list indexes and map keys, each field with a dot before it: kube-apiserver names fields with a wrong type like
    /// this.
    fn write_fields(&self, out: &mut String) {
        let Some((above, segment)) = self.0 else { return };
        above.write_fields(out);
        if let Segment::Field(name) = segment {
            out.push('.');
            out.push_str(name);
        }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((above, segment)) = self.0 else { return Ok(()) };
        above.fmt(f)?;
        match segment {
            Segment::Field(name) | Segment::Key(name) if above.0.is_none() => f.write_str(name),
            Segment::Field(name) | Segment::Key(name) => write!(f, ".{name}"),
            Segment::Element(index) => write!(f, "[{index}]"),
        }
    }
}

struct Walk<'k> {
    /// The type whose fields are visited.
    owner: &'k str,
    unknown: Reported,
}

impl Walk<'_> {
    fn fields(
        &mut self,
        object_type: &Type,
        object: &mut Map<String, Value>,
        at: &Path<'_>,
    ) -> Result<(), TypeMismatch> {
        let mut drop = Vec::new();
        for (name, value) in object.iter_mut() {
            let at = at.then(Segment::Field(name));
            match object_type.field(name) {
                None => {
                    self.unknown.push(at);
                    drop.push(name.clone());
                }
                Some(field) => {
                    self.value(&field.shape, value, &at)?;
                    if is_absent(value, field) {
                        drop.push(name.clone());
                    }
                }
            }
        }
        for name in drop {
            object.remove(&name);
        }
        Ok(())
    }

    fn value(&mut self, shape: &Shape, value: &mut Value, at: &Path<'_>) -> Result<(), TypeMismatch> {
        match (shape, value) {
            (_, Value::Null) | (Shape::Any, _) => Ok(()),
            (Shape::String | Shape::Enum(_), Value::String(_)) => Ok(()),
            (Shape::Bytes, Value::String(text)) => check_base64(text),
            (Shape::Time, Value::String(text)) => rewrite(text, canonical_time(text, "%Y-%m-%dT%H:%M:%SZ")),
            (Shape::MicroTime, Value::String(text)) => {
                rewrite(text, canonical_time(text, "%Y-%m-%dT%H:%M:%S.%6fZ"))
            }
            (Shape::Quantity, Value::String(text)) => rewrite(text, canonical_quantity(text)),
            (Shape::Quantity, number @ Value::Number(_)) => {
                *number = canonical_quantity(&number.to_string())?.into(); // a bare number is a quantity too
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
            (Shape::Struct(name, _) | Shape::ObjectOrAny(name), Value::Object(object)) => {
                let Some(inner) = types().named(name) else { return Ok(()) };
                let owner = std::mem::replace(&mut self.owner, short_name(name));
                let result = self.fields(inner, object, at);
                if result.is_ok() {
                    self.owner = owner;
                }
                result
            }
            (Shape::ObjectOrAny(_), _) => Ok(()),
            (Shape::Map(inner), Value::Object(object)) => self.entries(inner, object, at),
            (Shape::List(inner, ..), Value::Array(items)) => {
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(i, item)| self.value(inner, item, &at.then(Segment::Element(i))))
            }
            (shape, found) => Err(self.mismatch(shape, found, at)),
        }
    }

    fn entries(
        &mut self,
        inner: &Shape,
        object: &mut Map<String, Value>,
        at: &Path<'_>,
    ) -> Result<(), TypeMismatch> {
        for (key, value) in object.iter_mut() {
            if value.is_null() && matches!(inner, Shape::String) {
                *value = Value::String(String::new()); // a typed map has no null strings
            }
            self.value(inner, value, &at.then(Segment::Key(key)))?;
        }
        Ok(())
    }

    fn mismatch(&self, wanted: &Shape, found: &Value, at: &Path<'_>) -> TypeMismatch {
        let mut field = self.owner.to_owned();
        at.write_fields(&mut field);
        TypeMismatch::Type { found: json_type(found), field, wanted: go_type(wanted) }
    }
}

/// The Go type of a field, which the messages of kube-apiserver name.
fn go_type(shape: &Shape) -> &'static str {
    match shape {
        Shape::String | Shape::Enum(_) => "string",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Number => "float64",
        Shape::Bool => "bool",
        Shape::Bytes => "[]uint8",
        Shape::Time => "v1.Time",
        Shape::MicroTime => "v1.MicroTime",
        Shape::Quantity => "resource.Quantity",
        Shape::IntOrString => "intstr.IntOrString",
        Shape::Any | Shape::ObjectOrAny(_) => "interface {}",
        Shape::Struct(name, _) => name.split_once('.').map_or(name, |(_, short)| short),
        Shape::Map(_) => "map[string]string",
        Shape::List(..) => "[]interface {}",
    }
}

/// Returns whether kube-apiserver would omit a value when it encodes the object. `null` always means absent; [`write_zeros`] decides
/// whether it is written.
///
/// [`write_zeros`]: super::write_zeros
fn is_absent(value: &Value, field: &Field) -> bool {
    let omitted = field.zero == Zero::Omitted;
    match (value, &field.shape) {
        (Value::Null, _) => true,
        (_, Shape::Any | Shape::ObjectOrAny(_) | Shape::Struct(..)) => false,
        // In protobuf, the storage format of kube-apiserver, an empty list is the same as none.
        (Value::Array(items), _) => items.is_empty(),
        (Value::Object(entries), _) => entries.is_empty(),
        (Value::String(text), _) => omitted && text.is_empty(),
        (Value::Number(number), _) => omitted && number.as_f64() == Some(0.0),
        (Value::Bool(value), _) => omitted && !value,
    }
}

/// `meta.v1.ObjectMeta` as `ObjectMeta`.
fn short_name(name: &'static str) -> &'static str {
    name.rsplit('.').next().unwrap_or(name)
}

fn check_base64(text: &str) -> Result<(), TypeMismatch> {
    let bad = text
        .bytes()
        .position(|b| !b.is_ascii_alphanumeric() && !matches!(b, b'+' | b'/' | b'=' | b'\n' | b'\r'));
    match bad {
        Some(at) => Err(TypeMismatch::Base64(at)),
        None if STANDARD.decode(text.replace(['\n', '\r'], "")).is_err() => {
            Err(TypeMismatch::Base64(text.len()))
        }
        None => Ok(()),
    }
}

/// Replaces a text by its canonical form.
fn rewrite(text: &mut String, canonical: Result<String, TypeMismatch>) -> Result<(), TypeMismatch> {
    canonical.map(|canonical| *text = canonical)
}

fn canonical_time(text: &str, format: &str) -> Result<String, TypeMismatch> {
    let time: jiff::Timestamp = text.parse().map_err(|_| TypeMismatch::Time(text.to_owned()))?;
    Ok(time.strftime(format).to_string())
}

fn canonical_quantity(text: &str) -> Result<String, TypeMismatch> {
    text.parse::<Quantity>().map(|quantity| quantity.to_string()).map_err(|_| TypeMismatch::Quantity)
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
    fn unknown_fields_are_removed_and_reported() {
        let (pod, unknown) = check(
            "Pod",
            "",
            json!({"x": 1, "spec": {"containers": [{"name": "c", "img": "i"}], "volumes": []}}),
        );
        assert_eq!(unknown.unwrap(), ["spec.containers[0].img", "x"]);
        assert_eq!(pod, json!({"spec": {"containers": [{"name": "c"}]}}));
    }

    #[test]
    fn wrong_types_are_rejected_with_the_field() {
        let (_, e) = check("ConfigMap", "", json!({"data": {"k": 1}}));
        assert_eq!(
            e.unwrap_err(),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
        );
        let (_, e) = check("Deployment", "apps", json!({"spec": {"replicas": 3_000_000_000u64}}));
        assert!(e.unwrap_err().contains("DeploymentSpec.spec.replicas of type int32"));
    }

    #[test]
    fn malformed_times_quantities_and_bytes_are_rejected() {
        let quantity =
            |q: &str| json!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": q}}}]}});
        for good in ["1", "100m", "1.5Gi", "+2e3", "1E", ".5", "-3"] {
            assert!(check("Pod", "", quantity(good)).1.is_ok(), "{good}");
        }
        for bad in ["", "x", "1 Gi", "1.2.3", "--1", "1Zi", "."] {
            assert!(check("Pod", "", quantity(bad)).1.is_err(), "{bad}");
        }
        assert!(check("Secret", "", json!({"data": {"k": "eA=="}})).1.is_ok());
        assert_eq!(
            check("Secret", "", json!({"data": {"k": "a!"}})).1.unwrap_err(),
            "illegal base64 data at input byte 1"
        );
        assert!(
            check(
                "Lease",
                "coordination.k8s.io",
                json!({"spec": {"renewTime": "2026-01-02T03:04:05.000006Z"}})
            )
            .1
            .is_ok()
        );
        assert!(check("Lease", "coordination.k8s.io", json!({"spec": {"renewTime": "soon"}})).1.is_err());
    }

    #[test]
    fn empty_text_is_removed_except_where_it_is_significant() {
        let (claim, _) =
            check("PersistentVolumeClaim", "", json!({"spec": {"storageClassName": "", "volumeName": ""}}));
        assert_eq!(claim, json!({"spec": {"storageClassName": ""}}));
    }

    #[test]
    fn typed_empty_objects_stay_and_nulls_are_removed() {
        let (pod, _) = check(
            "Pod",
            "",
            json!({"metadata": {"labels": {}, "creationTimestamp": null},
            "spec": {"containers": [], "volumes": [{"name": "v", "emptyDir": {}}]}}),
        );
        assert_eq!(pod, json!({"metadata": {}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}));
    }
}
