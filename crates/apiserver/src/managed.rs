//! Who owns which field: `metadata.managedFields` and server-side apply.
//!
//! A manager owns the fields it last set. An ordinary write takes over whatever it changes; an apply may only change what nobody else
//! owns, unless forced, and gives up what it no longer mentions. Which lists and objects are owned piece by piece, and which as a
//! whole, the schema says; without one, objects are taken apart and lists are not.

mod compare;
mod fields;
mod managers;
mod merge;

pub(crate) use managers::Managers;
pub(crate) use managers::Writer;

use serde_json::Value;

use crate::schema::{ListKind, Shape, Type, types};

/// What the schema says about the value at hand.
#[derive(Debug, Clone, Copy)]
enum Kind<'s> {
    /// An object taken apart by its fields.
    Fields(Option<&'s Type>),
    /// A map taken apart by its keys, all values alike.
    Entries(&'s Shape),
    /// A list whose elements are told apart by these fields.
    Keyed(&'s [&'static str], &'s Shape),
    /// A list of distinct plain values.
    Set,
    /// One thing.
    Whole,
}

impl<'s> Kind<'s> {
    fn of(shape: Option<&'s Shape>, value: &Value) -> Self {
        match (shape, value) {
            (Some(Shape::Struct(name, _)), Value::Object(_)) => match types().named(name) {
                Some(inner) if inner.atomic => Self::Whole,
                inner => Self::Fields(inner),
            },
            (Some(Shape::Map(inner)), Value::Object(_)) => Self::Entries(inner),
            (None | Some(Shape::Any), Value::Object(_)) => Self::Fields(None),
            (Some(Shape::List(inner, ListKind::Map(keys), _)), Value::Array(_)) => Self::Keyed(keys, inner),
            (Some(Shape::List(_, ListKind::Set, _)), Value::Array(_)) => Self::Set,
            _ => Self::Whole,
        }
    }

    /// The shape of a member of an object or map.
    fn member(self, name: &str) -> Option<&'s Shape> {
        match self {
            Self::Fields(inner) => inner.and_then(|t| t.field(name)).map(|f| &f.shape),
            Self::Entries(inner) => Some(inner),
            _ => None,
        }
    }
}
