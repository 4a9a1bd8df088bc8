//! Field ownership: `metadata.managedFields` and server-side apply.
//!
//! A manager owns the fields it last set. An update takes over the fields it changes; an apply may only change fields that no other
//! owns, unless forced, and gives up the fields it no longer contains. The schema decides which lists and objects are owned by element and
//! which as a whole; without a schema, objects are owned by field and lists as a whole.

mod compare;
mod fields;
pub(crate) mod fuzzing;
mod managers;
mod merge;
mod typing;

pub(crate) use compare::duplicate_key;
pub(crate) use managers::ApplyError;
pub(crate) use managers::Conflicts;
pub(crate) use managers::Managers;
pub(crate) use managers::Writer;
pub(crate) use typing::type_error;

use serde_json::Value;

use crate::custom::Structural;
use crate::registry::{Resource, Schema};
use crate::schema::{ListKind, Shape, Type, types};

/// The schema of a value: a built-in type, that of a custom resource, or none.
#[derive(Debug, Clone, Copy)]
enum Model<'s> {
    Type(&'s Type),
    Shape(&'s Shape),
    /// A whole object outside of the table: its metadata is like that of all others.
    Root(Option<&'s Structural>),
    Custom(&'s Structural),
    Free,
}

/// How a value is owned.
#[derive(Debug, Clone, Copy)]
enum Kind<'s> {
    /// An object, by field.
    Fields(Model<'s>),
    /// A list whose elements are identified by these fields.
    Keyed(&'s [String], Model<'s>),
    /// A set of scalar values.
    Set,
    /// As a whole.
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

    /// The default of a key that a list element does not have.
    fn default_key(self, key: &str) -> Option<Value> {
        match self {
            Self::Custom(schema) => schema.property(key)?.default_value().cloned(),
            // The only key of built-in kinds with a default.
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
