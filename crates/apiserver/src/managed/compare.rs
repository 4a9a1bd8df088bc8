//! Which fields a value has, and which differ between two.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, Step};
use super::{Kind, Model};
use crate::registry::Resource;

/// What a write did.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// New or changed.
    pub(super) set: Fields,
    /// No longer there.
    pub(super) removed: Fields,
}

/// The fields an applied configuration claims: its leaves, its keyed elements, and empty objects.
pub(super) fn claimed(value: &Value, model: Model<'_>) -> Fields {
    let kind = Kind::of(model, value);
    let mut set = Fields::default();
    match (kind, value) {
        (Kind::Fields(model), Value::Object(fields)) => {
            set.here = fields.is_empty();
            for (name, inner) in fields {
                set.put(Step::field(name), claimed(inner, model.member(name)));
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            for item in items {
                let mut below = claimed(item, inner);
                below.here = true;
                set.put(keys_of(item, keys, inner), below);
            }
        }
        (Kind::Set, Value::Array(items)) => {
            items.iter().for_each(|item| set.put(Step::value(item), Fields::only_here()));
        }
        _ => set.here = true,
    }
    set
}

/// The step from `old` to `new`; either may be absent.
pub(super) fn compare(old: Option<&Value>, new: Option<&Value>, model: Model<'_>) -> Difference {
    let mut found = Difference::default();
    match (old, new) {
        (None, None) => {}
        (None, Some(new)) => found.set = everything(new, model),
        (Some(old), None) => found.removed = everything(old, model),
        (Some(old), Some(new)) if old == new => {}
        (Some(old), Some(new)) => compare_both(old, new, model, &mut found),
    }
    found
}

fn compare_both(old: &Value, new: &Value, model: Model<'_>, found: &mut Difference) {
    let (old, new) = (&*as_empty(old, new), &*as_empty(new, old));
    let kind = Kind::of(model, new);
    match (kind, old, new) {
        (Kind::Fields(model), Value::Object(old), Value::Object(new)) => {
            for name in old.keys().chain(new.keys().filter(|k| !old.contains_key(*k))) {
                let inner = compare(old.get(name), new.get(name), model.member(name));
                found.put(Step::field(name), inner);
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(old), Value::Array(new)) => {
            let mut versions: BTreeMap<Step, [Option<&Value>; 2]> = BTreeMap::new();
            for (place, list) in [old, new].into_iter().enumerate() {
                list.iter().for_each(|item| {
                    versions.entry(keys_of(item, keys, inner)).or_default()[place] = Some(item)
                });
            }
            for (id, [was, is]) in versions {
                found.put(id, compare(was, is, inner));
            }
        }
        (Kind::Set, Value::Array(old), Value::Array(new)) => {
            let only_in =
                |a: &[Value], b: &[Value]| a.iter().filter(|v| !b.contains(v)).cloned().collect::<Vec<_>>();
            only_in(new, old).into_iter().for_each(|v| found.set.put(Step::value(&v), Fields::only_here()));
            only_in(old, new)
                .into_iter()
                .for_each(|v| found.removed.put(Step::value(&v), Fields::only_here()));
        }
        _ => found.set.here = true,
    }
}

/// A null beside a list or an object is an empty one: what a typed server has where nothing was said.
fn as_empty<'v>(value: &'v Value, beside: &Value) -> Cow<'v, Value> {
    match (value, beside) {
        (Value::Null, Value::Array(_)) => Cow::Owned(Value::Array(Vec::new())),
        (Value::Null, Value::Object(_)) => Cow::Owned(Value::Object(Map::new())),
        _ => Cow::Borrowed(value),
    }
}

impl Difference {
    fn put(&mut self, step: Step, inner: Self) {
        self.set.put(step.clone(), inner.set);
        self.removed.put(step, inner.removed);
    }
}

/// A value with all that is in it, objects and lists included: what appears or vanishes with it.
fn everything(value: &Value, model: Model<'_>) -> Fields {
    let kind = Kind::of(model, value);
    let mut set = Fields::only_here();
    match (kind, value) {
        (Kind::Fields(model), Value::Object(fields)) => {
            set = Fields::here_with_room(fields.len());
            for (name, inner) in fields {
                set.put(Step::field(name), everything(inner, model.member(name)));
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            set = Fields::here_with_room(items.len());
            items.iter().for_each(|item| set.put(keys_of(item, keys, inner), everything(item, inner)));
        }
        (Kind::Set, Value::Array(items)) => {
            items.iter().for_each(|item| set.put(Step::value(item), Fields::only_here()));
        }
        _ => {}
    }
    set
}

/// The first keyed list of a configuration with two elements of one key, as messages name it.
pub(crate) fn duplicate_key(resource: &Resource, config: &Value) -> Option<String> {
    find_duplicate(config, Model::of(resource), "")
}

fn find_duplicate(value: &Value, model: Model<'_>, path: &str) -> Option<String> {
    match (Kind::of(model, value), value) {
        (Kind::Fields(model), Value::Object(fields)) => fields
            .iter()
            .find_map(|(name, inner)| find_duplicate(inner, model.member(name), &format!("{path}.{name}"))),
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
                let step = keys_of(item, keys, inner);
                find_duplicate(item, inner, &format!("{path}[{step:?}]"))
            })
        }
        _ => None,
    }
}

/// The step to an element of a keyed list. A key left out has the value it will be given.
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
