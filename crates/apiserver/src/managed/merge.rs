//! Merging an applied configuration into an object, and removing fields that are no longer owned.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};

use super::compare::keys_of;
use super::fields::{Fields, Step};
use super::{Kind, Model};
use crate::work::{Abandoned, Work};

/// Merges `config` into `live`. Fields that the configuration does not have stay.
pub(super) fn merge(
    live: &mut Value,
    config: &Value,
    model: Model<'_>,
    work: &Work,
) -> Result<(), Abandoned> {
    work.step()?;
    let kind = Kind::of(model, config);
    match (kind, &mut *live, config) {
        (Kind::Fields(model), Value::Object(live), Value::Object(config)) => {
            for (name, value) in config {
                merge(live.entry(name.clone()).or_insert(Value::Null), value, model.member(name), work)?;
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(live), Value::Array(config)) => {
            let mut places = places(live, |item| keys_of(item, keys, inner), work)?;
            for item in config {
                let id = keys_of(item, keys, inner);
                match places.get(&id) {
                    Some(place) => merge(&mut live[*place], item, inner, work)?,
                    None => {
                        places.insert(id, live.len());
                        live.push(item.clone());
                    }
                }
            }
        }
        (Kind::Set, Value::Array(live), Value::Array(config)) => {
            let mut places = places(live, Step::value, work)?;
            for item in config {
                work.step()?;
                if let Entry::Vacant(free) = places.entry(Step::value(item)) {
                    free.insert(live.len());
                    live.push(item.clone());
                }
            }
        }
        _ => *live = config.clone(),
    }
    Ok(())
}

/// The first place of each element of a list.
fn places(
    list: &[Value],
    step_to: impl Fn(&Value) -> Step,
    work: &Work,
) -> Result<HashMap<Step, usize>, Abandoned> {
    let mut places = HashMap::with_capacity(list.len());
    for (place, item) in list.iter().enumerate() {
        work.step()?;
        places.entry(step_to(item)).or_insert(place);
    }
    Ok(places)
}

/// Removes the fields of `gone` from `value`, and objects and lists that become empty by that.
pub(super) fn remove(value: &mut Value, gone: &Fields, model: Model<'_>) {
    let kind = Kind::of(model, value);
    match (kind, &mut *value) {
        (Kind::Fields(model), Value::Object(fields)) => remove_fields(fields, gone, model),
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            items.retain_mut(|item| match gone.at(&keys_of(item, keys, inner)) {
                Some(set) if set.here => false,
                Some(set) => {
                    remove(item, set, inner);
                    true
                }
                None => true,
            });
        }
        (Kind::Set, Value::Array(items)) => {
            items.retain(|item| !gone.at(&Step::value(item)).is_some_and(|set| set.here));
        }
        _ => {}
    }
}

fn remove_fields(fields: &mut Map<String, Value>, gone: &Fields, model: Model<'_>) {
    for (step, set) in gone.below() {
        let Some(name) = step.as_field() else { continue };
        let Some(inner) = fields.get_mut(name) else { continue };
        let whole = matches!(Kind::of(model.member(name), inner), Kind::Whole);
        if whole && set.here {
            fields.remove(name);
            continue;
        }
        remove(inner, set, model.member(name));
        if is_hollow(inner) {
            fields.remove(name);
        }
    }
}

fn is_hollow(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
