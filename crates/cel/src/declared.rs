//! Types of the values of a schema, with the sizes that estimates of costs assume.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::escape::escape;
use crate::limits::MAX_REQUEST_BYTES;
use crate::schema::{Kind, Schema};
use crate::types::Type;

/// The declared type of the values of one schema.
#[derive(Debug, PartialEq)]
pub(crate) struct Declared {
    pub(crate) shape: Shape,
    /// The most elements, entries, bytes or characters of a value.
    pub(crate) max_elements: u64,
    /// The smallest JSON of a value, in bytes.
    pub(crate) min_size: i64,
}

/// The form of a declared type.
#[derive(Debug, PartialEq)]
pub(crate) enum Shape {
    Dyn,
    Bool,
    Int,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Declared>),
    Map(Arc<Declared>),
    /// Fields by their escaped names.
    Object(BTreeMap<String, Arc<Declared>>),
}

/// The bytes of the smallest JSON of strings and of other values of fixed types.
const MIN_STRING: i64 = 2;
const MIN_BOOL: i64 = 4;
const MIN_NUMBER: i64 = 1;
const MIN_DURATION: i64 = 3;
const MIN_DATE: i64 = 12;
const MIN_DATE_TIME: i64 = 21;
/// The longest JSON of times.
const MAX_DATE: u64 = 12;
const MAX_DATE_TIME: u64 = 32;
const MAX_DURATION: u64 = 32;
/// The longest string that fits into a request.
const MAX_STRING: u64 = (MAX_REQUEST_BYTES - 2) as u64;

impl Declared {
    /// Returns the type that expressions see, or `None` if values of the schema are not accessible to expressions.
    pub(crate) fn of(schema: &Schema) -> Option<Self> {
        if schema.int_or_string {
            let max = schema.max_length.map_or(MAX_STRING, in_bytes);
            return Some(Self { shape: Shape::Dyn, max_elements: max, min_size: 1 });
        }
        let simple = |shape, min_size| Some(Self { shape, max_elements: 0, min_size });
        match schema.kind? {
            Kind::Array => {
                let element = Self::of(schema.items.as_deref()?)?;
                let fits = (MAX_REQUEST_BYTES - 2) / (element.min_size + 1);
                let max_elements = schema.max_items.unwrap_or(fits).max(0).unsigned_abs();
                Some(Self { shape: Shape::List(Arc::new(element)), max_elements, min_size: 2 })
            }
            Kind::Object => Self::of_object(schema),
            Kind::String => Some(Self::of_string(schema)),
            Kind::Boolean => simple(Shape::Bool, MIN_BOOL),
            Kind::Number => simple(Shape::Double, MIN_NUMBER),
            Kind::Integer => simple(Shape::Int, MIN_NUMBER),
        }
    }

    fn of_object(schema: &Schema) -> Option<Self> {
        // Additional properties win, as in kube-apiserver; CRDs cannot have both.
        if let Some(additional) = &schema.additional {
            let value = Self::of(additional)?;
            let fits = (MAX_REQUEST_BYTES - 2) / (value.min_size + 6);
            let max_elements = schema.max_properties.unwrap_or(fits).max(0).unsigned_abs();
            return Some(Self { shape: Shape::Map(Arc::new(value)), max_elements, min_size: 2 });
        }
        let mut fields = BTreeMap::new();
        let mut min_size = 2;
        for (name, property) in &schema.properties {
            let Some(declared) = Self::of(property) else { continue };
            if schema.required.contains(name) && !property.has_default {
                min_size += i64::try_from(name.len()).unwrap_or(i64::MAX / 2) + declared.min_size + 4;
            }
            if let Some(identifier) = escape(name) {
                fields.insert(identifier.into_owned(), Arc::new(declared));
            }
        }
        Some(Self { shape: Shape::Object(fields), max_elements: 0, min_size })
    }

    fn of_string(schema: &Schema) -> Self {
        let (shape, max_elements, min_size) = match schema.format.as_str() {
            "byte" => {
                let max = schema.max_length.map_or(MAX_STRING, |max| max.max(0).unsigned_abs());
                (Shape::Bytes, max, MIN_STRING)
            }
            "duration" => (Shape::Duration, MAX_DURATION, MIN_DURATION),
            "date" => (Shape::Timestamp, MAX_DATE, MIN_DATE),
            "date-time" => (Shape::Timestamp, MAX_DATE_TIME, MIN_DATE_TIME),
            _ => {
                let max = schema.max_length.map(in_bytes).or(schema.longest_enum).unwrap_or(MAX_STRING);
                (Shape::String, max, MIN_STRING)
            }
        };
        Self { shape, max_elements, min_size }
    }

    /// Returns the static type of values; `name` is that of the type if it is an object.
    pub(crate) fn static_type(self: &Arc<Self>, name: &str) -> Type {
        match &self.shape {
            Shape::Dyn => Type::Dyn,
            Shape::Bool => Type::Bool,
            Shape::Int => Type::Int,
            Shape::Double => Type::Double,
            Shape::String => Type::String,
            Shape::Bytes => Type::Bytes,
            Shape::Duration => Type::Duration,
            Shape::Timestamp => Type::Timestamp,
            Shape::List(element) => Type::list(element.static_type(&format!("{name}.@idx"))),
            Shape::Map(value) => Type::map(Type::String, value.static_type(&format!("{name}.@elem"))),
            Shape::Object(_) => Type::Object(name.into(), Arc::clone(self)),
        }
    }

    /// Returns the largest size of the value at a path of field names and `@items`, `@values` and `@keys`.
    pub(crate) fn max_size_at(&self, path: &[String]) -> Option<u64> {
        let mut at = self;
        for step in path {
            at = match (step.as_str(), &at.shape) {
                ("@items" | "@values", Shape::List(element) | Shape::Map(element)) => element,
                // Keys are strings without a known size.
                ("@keys", Shape::Map(_)) => return (path.last() == Some(step)).then_some(0),
                (field, Shape::Object(fields)) => fields.get(field)?,
                _ => return None,
            };
        }
        Some(at.max_elements)
    }
}

/// `maxLength` counts code points of up to four bytes.
fn in_bytes(max_length: i64) -> u64 {
    max_length.max(0).unsigned_abs().saturating_mul(4)
}
