//! Which fields a value has, and which differ between two.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Kind;
use super::fields::{Fields, Step};
use crate::schema::Shape;

/// What a write did.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// New or changed.
    pub(super) set: Fields,
    /// No longer there.
    pub(super) removed: Fields,
}

/// The fields an applied configuration claims: its leaves, its keyed elements, and empty objects.
pub(super) fn claimed(value: &Value, shape: Option<&Shape>) -> Fields {
    let kind = Kind::of(shape, value);
    let mut set = Fields::default();
    match (kind, value) {
        (Kind::Fields(_) | Kind::Entries(_), Value::Object(fields)) => {
            set.here = fields.is_empty();
            for (name, inner) in fields {
                set.put(Step::field(name), claimed(inner, kind.member(name)));
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            for item in items {
                let mut below = claimed(item, Some(inner));
                below.here = true;
                set.put(keys_of(item, keys), below);
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
pub(super) fn compare(old: Option<&Value>, new: Option<&Value>, shape: Option<&Shape>) -> Difference {
    let mut found = Difference::default();
    match (old, new) {
        (None, None) => {}
        (None, Some(new)) => found.set = everything(new, shape),
        (Some(old), None) => found.removed = everything(old, shape),
        (Some(old), Some(new)) if old == new => {}
        (Some(old), Some(new)) => compare_both(old, new, shape, &mut found),
    }
    found
}

fn compare_both(old: &Value, new: &Value, shape: Option<&Shape>, found: &mut Difference) {
    let kind = Kind::of(shape, new);
    match (kind, old, new) {
        (Kind::Fields(_) | Kind::Entries(_), Value::Object(old), Value::Object(new)) => {
            for name in old.keys().chain(new.keys().filter(|k| !old.contains_key(*k))) {
                let inner = compare(old.get(name), new.get(name), kind.member(name));
                found.put(Step::field(name), inner);
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(old), Value::Array(new)) => {
            let mut versions: BTreeMap<Step, [Option<&Value>; 2]> = BTreeMap::new();
            for (place, list) in [old, new].into_iter().enumerate() {
                list.iter()
                    .for_each(|item| versions.entry(keys_of(item, keys)).or_default()[place] = Some(item));
            }
            for (id, [was, is]) in versions {
                found.put(id, compare(was, is, Some(inner)));
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

impl Difference {
    fn put(&mut self, step: Step, inner: Self) {
        self.set.put(step.clone(), inner.set);
        self.removed.put(step, inner.removed);
    }
}

/// A value with all that is in it, objects and lists included: what appears or vanishes with it.
fn everything(value: &Value, shape: Option<&Shape>) -> Fields {
    let kind = Kind::of(shape, value);
    let mut set = Fields::only_here();
    match (kind, value) {
        (Kind::Fields(_) | Kind::Entries(_), Value::Object(fields)) => {
            for (name, inner) in fields {
                set.put(Step::field(name), everything(inner, kind.member(name)));
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            items.iter().for_each(|item| set.put(keys_of(item, keys), everything(item, Some(inner))));
        }
        (Kind::Set, Value::Array(items)) => {
            items.iter().for_each(|item| set.put(Step::value(item), Fields::only_here()));
        }
        _ => {}
    }
    set
}

/// The step to an element of a keyed list. A protocol left out is TCP, as it will be defaulted.
pub(super) fn keys_of<'a>(item: &'a Value, keys: &[&'a str]) -> Step {
    let tcp = Value::from("TCP");
    let pick = |key: &&'a str| Some((*key, item.get(*key).or((*key == "protocol").then_some(&tcp))?));
    let mut keys: Vec<(&str, &Value)> = keys.iter().filter_map(pick).collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    Step::keys(keys)
}
