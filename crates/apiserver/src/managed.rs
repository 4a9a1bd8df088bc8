//! Who owns which field: `metadata.managedFields` and server-side apply.
//!
//! A manager owns the fields it last set. An update takes over the fields it changes; an apply may only change fields that no other
//! owns, unless forced, and gives up what it no longer mentions. Which lists and objects are owned piece by piece, and which as a
//! whole, the schema says; without one, objects are taken apart and lists are not.

mod compare;
mod fields;
pub(crate) mod fuzzing;
mod managers;
mod merge;

pub(crate) use compare::duplicate_key;
pub(crate) use managers::ApplyError;
pub(crate) use managers::Conflicts;
pub(crate) use managers::Managers;
pub(crate) use managers::Writer;

use serde_json::Value;

use crate::custom::Structural;
use crate::registry::{Resource, Schema};
use crate::schema::{ListKind, Shape, Type, types};

/// What is known about a value: from the table of built-in types, from the schema of a definition, or nothing.
#[derive(Debug, Clone, Copy)]
enum Model<'s> {
    Type(&'s Type),
    Shape(&'s Shape),
    /// A whole object outside of the table: its metadata is like that of all others.
    Root(Option<&'s Structural>),
    Custom(&'s Structural),
    Free,
}

/// What that means for the value at hand.
#[derive(Debug, Clone, Copy)]
enum Kind<'s> {
    /// An object taken apart by its fields.
    Fields(Model<'s>),
    /// A list whose elements are identified by these fields.
    Keyed(&'s [String], Model<'s>),
    /// A list of distinct plain values.
    Set,
    /// One thing.
    Whole,
}

impl<'s> Model<'s> {
    /// Whole objects of a resource.
    fn of(resource: &'s Resource) -> Self {
        match &resource.schema {
            Schema::Free => Self::Root(None),
            Schema::Table(shape) => Self::Type(shape),
            Schema::Custom(schema) => Self::Root(Some(schema)),
        }
    }

    fn metadata() -> Self {
        types().named("meta.v1.ObjectMeta").map_or(Self::Free, Model::Type)
    }

    /// A field of an object, or a value of a map.
    fn member(self, name: &str) -> Self {
        match self {
            Self::Type(t) => t.field(name).map_or(Self::Free, |f| Self::Shape(&f.shape)),
            Self::Shape(Shape::Struct(inner, _)) => {
                types().named(inner).map_or(Self::Free, |t| Self::Type(t).member(name))
            }
            Self::Shape(Shape::Map(inner)) => Self::Shape(inner),
            Self::Root(_) if name == "metadata" => Self::metadata(),
            Self::Custom(schema) if schema.is_embedded() && name == "metadata" => Self::metadata(),
            Self::Custom(schema) | Self::Root(Some(schema)) => {
                schema.property(name).map_or(Self::Free, Self::Custom)
            }
            Self::Shape(_) | Self::Root(None) | Self::Free => Self::Free,
        }
    }

    /// What a list element has in a key that it leaves out.
    fn default_key(self, key: &str) -> Option<Value> {
        match self {
            Self::Custom(schema) => schema.property(key)?.default_value().cloned(),
            // The one key of a built-in kind that may be left out.
            _ => (key == "protocol").then(|| "TCP".into()),
        }
    }
}

impl<'s> Kind<'s> {
    fn of(model: Model<'s>, value: &Value) -> Self {
        match (model, value) {
            (Model::Type(t), Value::Object(_)) if t.atomic => Self::Whole,
            (Model::Shape(Shape::Struct(name, _)), Value::Object(_)) => match types().named(name) {
                Some(inner) if inner.atomic => Self::Whole,
                Some(inner) => Self::Fields(Model::Type(inner)),
                None => Self::Fields(Model::Free),
            },
            (Model::Custom(schema), Value::Object(_)) if schema.is_atomic() => Self::Whole,
            (Model::Shape(Shape::Map(_) | Shape::Any | Shape::ObjectOrAny(_)), Value::Object(_)) => {
                Self::Fields(model)
            }
            (Model::Shape(_), Value::Object(_)) => Self::Whole,
            (_, Value::Object(_)) => Self::Fields(model),
            (Model::Shape(Shape::List(inner, kind, _)), Value::Array(_)) => {
                Self::list(kind, Model::Shape(inner))
            }
            (Model::Custom(schema), Value::Array(_)) => {
                Self::list(schema.list_kind(), schema.items().map_or(Model::Free, Model::Custom))
            }
            _ => Self::Whole,
        }
    }

    fn list(kind: &'s ListKind, inner: Model<'s>) -> Self {
        match kind {
            ListKind::Map(keys) => Self::Keyed(keys, inner),
            ListKind::Set => Self::Set,
            ListKind::Atomic => Self::Whole,
        }
    }
}
