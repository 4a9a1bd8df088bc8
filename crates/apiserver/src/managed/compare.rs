//! The fields of a value, and the differences between two values.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, Step};
use super::{Kind, Model};
use crate::registry::Resource;
use crate::work::{Abandoned, Work};

/// The changes of a write.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// New or changed.
    pub(super) set: Fields,
    /// Removed.
    pub(super) removed: Fields,
}

/// The fields an applied configuration claims: its leaves, its keyed elements, and empty objects.
pub(super) fn claimed(value: &Value, model: Model<'_>, work: &Work) -> Result<Fields, Abandoned> {
    let kind = Kind::of(model, value);
    let mut below = Vec::new();
    let here = match (kind, value) {
        (Kind::Fields(model), Value::Object(fields)) => {
            for (name, inner) in fields {
                work.step()?;
                below.push((Step::field(name), claimed(inner, model.member(name), work)?));
            }
            fields.is_empty()
        }
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            for item in items {
                work.step()?;
                let mut set = claimed(item, inner, work)?;
                set.here = true;
                below.push((keys_of(item, keys, inner), set));
            }
            false
        }
        (Kind::Set, Value::Array(items)) => {
            below.extend(set_elements(items, work)?);
            false
        }
        _ => true,
    };
    Ok(Fields::with_below(here, below))
}

/// The elements of a list of distinct values.
fn set_elements<'v>(
    items: &'v [Value],
    work: &Work,
) -> Result<impl Iterator<Item = (Step, Fields)> + use<'v>, Abandoned> {
    work.steps(items.len())?;
    Ok(items.iter().map(|item| (Step::value(item), Fields::only_here())))
}

/// The changes from `old` to `new`; either may be absent.
pub(super) fn compare(
    old: Option<&Value>,
    new: Option<&Value>,
    model: Model<'_>,
    work: &Work,
) -> Result<Difference, Abandoned> {
    work.step()?;
    Ok(match (old, new) {
        (None, None) => Difference::default(),
        (None, Some(new)) => Difference { set: everything(new, model, work)?, ..Difference::default() },
        (Some(old), None) => Difference { removed: everything(old, model, work)?, ..Difference::default() },
        (Some(old), Some(new)) if old == new => Difference::default(),
        (Some(old), Some(new)) => compare_both(old, new, model, work)?,
    })
}

fn compare_both(old: &Value, new: &Value, model: Model<'_>, work: &Work) -> Result<Difference, Abandoned> {
    let (old, new) = (&*as_empty(old, new), &*as_empty(new, old));
    let kind = Kind::of(model, new);
    let mut found = Found::default();
    match (kind, old, new) {
        (Kind::Fields(model), Value::Object(old), Value::Object(new)) => {
            for name in old.keys().chain(new.keys().filter(|k| !old.contains_key(*k))) {
                let inner = compare(old.get(name), new.get(name), model.member(name), work)?;
                found.put(Step::field(name), inner);
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(old), Value::Array(new)) => {
            let mut versions: BTreeMap<Step, [Option<&Value>; 2]> = BTreeMap::new();
            for (place, list) in [old, new].into_iter().enumerate() {
                for item in list {
                    work.step()?;
                    versions.entry(keys_of(item, keys, inner)).or_default()[place] = Some(item);
                }
            }
            for (id, [was, is]) in versions {
                found.put(id, compare(was, is, inner, work)?);
            }
        }
        (Kind::Set, Value::Array(old), Value::Array(new)) => {
            let old = Fields::with_below(false, set_elements(old, work)?.collect());
            let new = Fields::with_below(false, set_elements(new, work)?.collect());
            return Ok(Difference { set: new.difference(&old), removed: old.difference(&new) });
        }
        _ => return Ok(Difference { set: Fields::only_here(), ..Difference::default() }),
    }
    Ok(found.into())
}

/// Null counts as empty beside a list or an object, as in Go.
fn as_empty<'v>(value: &'v Value, beside: &Value) -> Cow<'v, Value> {
    match (value, beside) {
        (Value::Null, Value::Array(_)) => Cow::Owned(Value::Array(Vec::new())),
        (Value::Null, Value::Object(_)) => Cow::Owned(Value::Object(Map::new())),
        _ => Cow::Borrowed(value),
    }
}

/// The differences below a value, in any order.
#[derive(Debug, Default)]
struct Found {
    set: Vec<(Step, Fields)>,
    removed: Vec<(Step, Fields)>,
}

impl Found {
    fn put(&mut self, step: Step, inner: Difference) {
        if !inner.removed.is_empty() {
            self.removed.push((step.clone(), inner.removed));
        }
        if !inner.set.is_empty() {
            self.set.push((step, inner.set));
        }
    }
}

impl From<Found> for Difference {
    fn from(found: Found) -> Self {
        Self { set: Fields::with_below(false, found.set), removed: Fields::with_below(false, found.removed) }
    }
}

/// The paths of a value and of everything in it.
fn everything(value: &Value, model: Model<'_>, work: &Work) -> Result<Fields, Abandoned> {
    let kind = Kind::of(model, value);
    let mut below = Vec::new();
    match (kind, value) {
        (Kind::Fields(model), Value::Object(fields)) => {
            below.reserve(fields.len());
            for (name, inner) in fields {
                work.step()?;
                below.push((Step::field(name), everything(inner, model.member(name), work)?));
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            below.reserve(items.len());
            for item in items {
                work.step()?;
                below.push((keys_of(item, keys, inner), everything(item, inner, work)?));
            }
        }
        (Kind::Set, Value::Array(items)) => below.extend(set_elements(items, work)?),
        _ => {}
    }
    Ok(Fields::with_below(true, below))
}

/// The first keyed list of a configuration with two elements of one key, as messages name it.
pub(crate) fn duplicate_key(resource: &Resource, config: &Value) -> Option<String> {
    find_duplicate(config, Model::of(resource), &mut String::new())
}

/// `path` is the path of the value, and is unchanged unless a duplicate was found.
fn find_duplicate(value: &Value, model: Model<'_>, path: &mut String) -> Option<String> {
    let mark = path.len();
    match (Kind::of(model, value), value) {
        (Kind::Fields(model), Value::Object(fields)) => fields.iter().find_map(|(name, inner)| {
            path.truncate(mark);
            path.push('.');
            path.push_str(name);
            find_duplicate(inner, model.member(name), path)
        }),
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            let mut seen = BTreeMap::new();
            for item in items {
                if seen.insert(keys_of(item, keys, inner), ()).is_some() {
                    let named: Vec<String> =
                        keys.iter().filter_map(|key| Some(format!("{key}={}", item.get(key)?))).collect();
                    return Some(format!("{path}: duplicate entries for key [{}]", named.join(",")));
                }
            }
            items.iter().find_map(|item| {
                path.truncate(mark);
                path.push_str(&format!("[{:?}]", keys_of(item, keys, inner)));
                find_duplicate(item, inner, path)
            })
        }
        _ => None,
    }
}

/// The step to an element of a keyed list. An absent key has its default.
pub(super) fn keys_of(item: &Value, keys: &[String], inner: Model<'_>) -> Step {
    let pick = |key: &String| {
        let value = item.get(key).map(Cow::Borrowed);
        value.or_else(|| inner.default_key(key).map(Cow::Owned))
    };
    let mut keys: Vec<(&str, Cow<'_, Value>)> =
        keys.iter().filter_map(|key| Some((key.as_str(), pick(key)?))).collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    Step::keys(keys.iter().map(|(key, value)| (*key, &**value)))
}
