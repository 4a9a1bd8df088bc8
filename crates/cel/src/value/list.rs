//! Lists.

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Eval, Failure, Value, to_value};
use crate::meter::Meter;
use crate::schema::{ListKind, Schema};

/// A list. Lists of sets and maps compare and concatenate without regard to order and duplicates.
#[derive(Debug, Clone)]
pub(crate) struct List<'a> {
    pub(crate) items: Items<'a>,
    kind: &'a ListKind,
}

/// The elements of a list.
#[derive(Debug, Clone)]
pub(crate) enum Items<'a> {
    /// JSON with the schema of its elements.
    Json(&'a [Json], &'a Schema),
    Owned(Arc<Vec<Value<'a>>>),
}

static ATOMIC: ListKind = ListKind::Atomic;

impl<'a> List<'a> {
    pub(crate) fn owned(items: Vec<Value<'a>>) -> Self {
        Self { items: Items::Owned(Arc::new(items)), kind: &ATOMIC }
    }

    pub(super) fn json(items: &'a [Json], element: &'a Schema, kind: &'a ListKind) -> Self {
        Self { items: Items::Json(items, element), kind }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.items {
            Items::Json(items, _) => items.len(),
            Items::Owned(items) => items.len(),
        }
    }

    pub(crate) fn get(&self, index: usize) -> Option<Eval<'a>> {
        match &self.items {
            Items::Json(items, schema) => items.get(index).map(|item| to_value(item, schema)),
            Items::Owned(items) => items.get(index).cloned().map(Ok),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Eval<'a>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Returns the elements, or the error of the first that is invalid.
    pub(crate) fn values(&self, meter: &mut Meter) -> Result<Vec<Value<'a>>, Failure> {
        meter.work(self.len() as u64)?;
        self.iter().collect()
    }

    /// Concatenates two lists; sets and maps of objects merge.
    pub(crate) fn concat(&self, other: &List<'a>, meter: &mut Meter) -> Result<List<'a>, Failure> {
        if *self.kind == ListKind::Atomic && other.len() == 0 {
            return Ok(self.clone());
        }
        let mut items = self.values(meter)?;
        meter.work(other.len() as u64)?;
        match self.kind {
            ListKind::Atomic if items.is_empty() => return Ok(other.clone()),
            ListKind::Atomic => items.extend(other.values(meter)?),
            ListKind::Set => {
                for item in other.iter() {
                    let item = item?;
                    if !contains(&items, &item, meter)? {
                        items.push(item);
                    }
                }
            }
            ListKind::Map(keys) => {
                for item in other.iter() {
                    let item = item?;
                    match position(&items, &item, keys, meter)? {
                        Some(at) => items[at] = item,
                        None => items.push(item),
                    }
                }
            }
        }
        Ok(List { items: Items::Owned(Arc::new(items)), kind: self.kind })
    }

    /// Appends in place if nothing else refers to the list.
    pub(crate) fn extend(self, other: &List<'a>, meter: &mut Meter) -> Result<List<'a>, Failure> {
        match self.items {
            Items::Owned(mut items) if *self.kind == ListKind::Atomic && Arc::strong_count(&items) == 1 => {
                Arc::make_mut(&mut items).extend(other.values(meter)?);
                Ok(List { items: Items::Owned(items), kind: self.kind })
            }
            items => List { items, kind: self.kind }.concat(other, meter),
        }
    }

    pub(crate) fn contains(&self, value: &Value<'a>, meter: &mut Meter) -> Result<bool, Failure> {
        let mut failure = None;
        for item in self.iter() {
            match item.and_then(|item| item.equals(value, meter)) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(Failure::Exceeded) => return Err(Failure::Exceeded),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(false), Err)
    }

    pub(super) fn equals(&self, other: &List<'a>, meter: &mut Meter) -> Result<bool, Failure> {
        if self.len() != other.len() {
            return Ok(false);
        }
        meter.work(self.len() as u64)?;
        match self.kind {
            ListKind::Atomic => {
                for (a, b) in self.iter().zip(other.iter()) {
                    if !a?.equals(&b?, meter)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListKind::Set => {
                for item in other.iter() {
                    if !self.contains(&item?, meter)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListKind::Map(keys) => {
                let items = self.values(meter)?;
                for item in other.iter() {
                    let item = item?;
                    let same = match position(&items, &item, keys, meter)? {
                        Some(at) => items[at].equals(&item, meter)?,
                        None => false,
                    };
                    if !same {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        }
    }
}

fn contains<'a>(items: &[Value<'a>], value: &Value<'a>, meter: &mut Meter) -> Result<bool, Failure> {
    for item in items {
        if item.equals(value, meter)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the place of the object with the same keys.
fn position<'a>(
    items: &[Value<'a>],
    value: &Value<'a>,
    keys: &[String],
    meter: &mut Meter,
) -> Result<Option<usize>, Failure> {
    let key = |value: &Value<'a>| -> Vec<Option<Value<'a>>> {
        let Value::Map(map) = value else { return Vec::new() };
        keys.iter().map(|key| map.property(key).and_then(Result::ok)).collect()
    };
    let wanted = key(value);
    'items: for (at, item) in items.iter().enumerate() {
        for (a, b) in key(item).iter().zip(&wanted) {
            meter.work(1)?;
            let same = match (a, b) {
                (Some(a), Some(b)) => a.equals(b, meter)?,
                (a, b) => a.is_none() && b.is_none(),
            };
            if !same {
                continue 'items;
            }
        }
        return Ok(Some(at));
    }
    Ok(None)
}
