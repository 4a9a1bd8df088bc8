//! Maps, which objects of a schema are too.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Eval, Failure, Text, Value, error, to_value};
use crate::escape::{escape, unescape};
use crate::meter::Meter;
use crate::schema::Schema;

/// A map or an object.
#[derive(Debug, Clone)]
pub(crate) enum Map<'a> {
    /// JSON with the schema of the object.
    Json(&'a serde_json::Map<String, Json>, &'a Schema),
    Owned(Arc<BTreeMap<Key, Value<'a>>>),
}

/// The key of a map entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Int(i64),
    Uint(u64),
    String(Arc<str>),
}

impl Key {
    /// Returns the key of a value; a double is the integer that it equals.
    pub(crate) fn of(value: &Value<'_>) -> Option<Self> {
        Some(match value {
            Value::Bool(b) => Self::Bool(*b),
            Value::Int(n) => Self::Int(*n),
            Value::Uint(n) => Self::Uint(*n),
            Value::Double(f) if *f as i64 as f64 == *f && f.abs() < 9.2e18 => Self::Int(*f as i64),
            Value::Double(f) if *f as u64 as f64 == *f => Self::Uint(*f as u64),
            Value::String(text) => Self::String(Arc::from(&**text)),
            _ => return None,
        })
    }

    /// Returns the same number as the other integer type.
    pub(crate) fn other(&self) -> Option<Self> {
        match self {
            Self::Int(n) => u64::try_from(*n).ok().map(Self::Uint),
            Self::Uint(n) => i64::try_from(*n).ok().map(Self::Int),
            _ => None,
        }
    }

    pub(crate) fn value<'a>(&self) -> Value<'a> {
        match self {
            Self::Bool(b) => Value::Bool(*b),
            Self::Int(n) => Value::Int(*n),
            Self::Uint(n) => Value::Uint(*n),
            Self::String(text) => Value::String(Text::Shared(Arc::clone(text))),
        }
    }
}

impl<'a> Map<'a> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(fields, _) => fields.len(),
            Self::Owned(entries) => entries.len(),
        }
    }

    /// Returns the value of a key, `None` if there is none, and an error if it is no key of such a map.
    pub(crate) fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, Failure> {
        match self {
            Self::Json(_, schema) => {
                let Value::String(name) = key else { return error("no such overload") };
                let name = if schema.is_struct() { unescape(name) } else { Some(Cow::Borrowed(&**name)) };
                name.and_then(|name| self.property(&name)).transpose()
            }
            Self::Owned(entries) => Ok(Key::of(key)
                .and_then(|key| entries.get(&key).or_else(|| entries.get(&key.other()?)).cloned())),
        }
    }

    /// Returns the value of a property by its name in the schema.
    pub(super) fn property(&self, name: &str) -> Option<Eval<'a>> {
        match self {
            Self::Json(fields, schema) => {
                let value = fields.get(name)?;
                // A null field of an object is absent.
                if schema.is_struct() && value.is_null() {
                    return None;
                }
                schema.property(name).map(|schema| to_value(value, schema))
            }
            Self::Owned(entries) => entries.get(&Key::String(name.into())).cloned().map(Ok),
        }
    }

    /// Returns the keys that expressions can see.
    pub(crate) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Json(fields, schema) => {
                let visible = fields.keys().filter(|name| schema.property(name).is_some());
                visible
                    .map(|name| match escape(name).filter(|_| schema.is_struct()) {
                        Some(Cow::Owned(identifier)) => Value::string(identifier),
                        _ => Value::String(Text::Borrowed(name)),
                    })
                    .collect()
            }
            Self::Owned(entries) => entries.keys().map(Key::value).collect(),
        }
    }

    /// Adds an entry in place if nothing else refers to the map.
    pub(crate) fn insert(
        self,
        key: &Value<'_>,
        value: Value<'a>,
        meter: &mut Meter,
    ) -> Result<Map<'a>, Failure> {
        if self.find(key)?.is_some() {
            return error(format!("insert failed: key {} already exists", key.plain()));
        }
        let mut entries = match self {
            Self::Owned(entries) => entries,
            Self::Json(..) => {
                let mut entries = BTreeMap::new();
                for key in self.keys() {
                    if let (Some(value), Some(key)) = (self.find(&key)?, Key::of(&key)) {
                        meter.work(1)?;
                        entries.insert(key, value);
                    }
                }
                Arc::new(entries)
            }
        };
        let Some(key) = Key::of(key) else { return error("no such overload") };
        if Arc::strong_count(&entries) > 1 {
            meter.work(entries.len() as u64)?;
        }
        meter.work(1)?;
        Arc::make_mut(&mut entries).insert(key, value);
        Ok(Self::Owned(entries))
    }

    /// Adds all entries of another map.
    pub(crate) fn insert_all(self, more: &Map<'a>, meter: &mut Meter) -> Result<Map<'a>, Failure> {
        let mut map = self;
        for key in more.keys() {
            if let Some(value) = more.find(&key)? {
                map = map.insert(&key, value, meter)?;
            }
        }
        Ok(map)
    }

    /// Makes a map of entries; a later entry replaces an earlier one.
    pub(crate) fn of_entries(entries: Vec<(Value<'a>, Value<'a>)>) -> Result<Self, Failure> {
        let mut map = BTreeMap::new();
        for (key, value) in entries {
            let Some(key) = Key::of(&key) else {
                return error(format!("unsupported key type: {}", key.type_name()));
            };
            map.insert(key, value);
        }
        Ok(Self::Owned(Arc::new(map)))
    }

    pub(super) fn equals(&self, other: &Map<'a>, meter: &mut Meter) -> Result<bool, Failure> {
        if self.len() != other.len() {
            return Ok(false);
        }
        meter.work(self.len() as u64)?;
        for key in self.keys() {
            let same = match (self.find(&key)?, other.find(&key)?) {
                (Some(a), Some(b)) => a.equals(&b, meter)?,
                (a, b) => a.is_none() && b.is_none(),
            };
            if !same {
                return Ok(false);
            }
        }
        Ok(self.unknown_fields_equal(other))
    }

    /// Compares fields that no schema describes.
    fn unknown_fields_equal(&self, other: &Map<'a>) -> bool {
        let (Self::Json(fields, schema), Self::Json(others, _)) = (self, other) else { return true };
        let mut unknown = fields.iter().filter(|(name, _)| schema.property(name).is_none());
        unknown.all(|(name, value)| others.get(name).is_none_or(|other| other == value))
    }
}
