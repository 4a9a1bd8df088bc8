//! The former value of a part of an object, by which unchanged invalid values stay accepted.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::schema::{ListKind, Schema};

/// A value with its former value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Correlated<'o> {
    pub(super) new: &'o Json,
    pub(super) old: &'o Json,
    pub(super) schema: &'o Schema,
}

/// Where a check is in the object: the value and the nearest value above it that have a former value.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ratcheting<'o> {
    current: Option<Correlated<'o>>,
    nearest: Option<Correlated<'o>>,
}

impl<'o> Ratcheting<'o> {
    pub(super) fn new(root: Option<Correlated<'o>>) -> Self {
        Self { current: root, nearest: None }
    }

    /// Returns whether the value, or the nearest value above it with a former value, is unchanged.
    pub(super) fn is_unchanged(&self) -> bool {
        self.current.or(self.nearest).is_some_and(|correlated| correlated.is_equal())
    }

    pub(super) fn key(&self, field: &str) -> Self {
        match self.current {
            None => *self,
            // Both are always those of the new version.
            Some(_) if self.nearest.is_none() && matches!(field, "apiVersion" | "kind") => Self::default(),
            Some(current) => Self { current: current.key(field), nearest: self.current },
        }
    }

    pub(super) fn item(&self, index: usize, old: Option<&'o Json>) -> Self {
        match self.current {
            None => *self,
            Some(current) => Self { current: current.item(index, old), nearest: self.current },
        }
    }
}

impl<'o> Correlated<'o> {
    fn key(&self, field: &str) -> Option<Self> {
        let (Json::Object(new), Json::Object(old)) = (self.new, self.old) else { return None };
        let (new, old) = new.get(field).zip(old.get(field))?;
        let schema = self.schema.properties.get(field).or(self.schema.additional.as_deref())?;
        Some(Self { new, old, schema })
    }

    fn item(&self, index: usize, old: Option<&'o Json>) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        Some(Self { new, old: old?, schema: self.schema.items.as_deref()? })
    }

    fn is_equal(&self) -> bool {
        match (self.new, self.old) {
            (Json::Array(new), Json::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                if !matches!(self.schema.list, ListKind::Map(_)) {
                    return new == old;
                }
                let keyed = Keyed::new(self.schema, Some(self.old));
                (0..new.len()).all(|i| self.item(i, keyed.get(&new[i])).is_some_and(|item| item.is_equal()))
            }
            (Json::Object(new), Json::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|key| self.key(key).is_some_and(|value| value.is_equal()))
            }
            (new, old) => new == old,
        }
    }
}

/// The former elements of a list by their keys. Only lists of objects with keys have any.
#[derive(Debug)]
pub(super) struct Keyed<'o> {
    keys: &'o [String],
    items: HashMap<String, &'o Json>,
}

impl<'o> Keyed<'o> {
    pub(super) fn new(schema: &'o Schema, old: Option<&'o Json>) -> Self {
        let ListKind::Map(keys) = &schema.list else { return Self { keys: &[], items: HashMap::new() } };
        let mut items = HashMap::new();
        for item in old.and_then(Json::as_array).into_iter().flatten() {
            items.entry(key(item, keys)).or_insert(item);
        }
        Self { keys, items }
    }

    pub(super) fn get(&self, item: &Json) -> Option<&'o Json> {
        if self.items.is_empty() { None } else { self.items.get(&key(item, self.keys)).copied() }
    }
}

fn key(item: &Json, keys: &[String]) -> String {
    let parts: Vec<String> =
        keys.iter().map(|key| item.get(key).map_or(String::new(), Json::to_string)).collect();
    parts.join("\u{0}")
}
