//! Putting an applied configuration into an object, and taking out what is no longer claimed.

use serde_json::{Map, Value};

use super::compare::keys_of;
use super::fields::{Fields, Step};
use super::{Kind, Model};

/// `live` with everything `config` says. What the configuration does not mention stays.
pub(super) fn merge(live: &mut Value, config: &Value, model: Model<'_>) {
    let kind = Kind::of(model, config);
    match (kind, &mut *live, config) {
        (Kind::Fields(model), Value::Object(live), Value::Object(config)) => {
            for (name, value) in config {
                merge(live.entry(name.clone()).or_insert(Value::Null), value, model.member(name));
            }
        }
        (Kind::Keyed(keys, inner), Value::Array(live), Value::Array(config)) => {
            for item in config {
                let id = keys_of(item, keys, inner);
                match live.iter_mut().find(|existing| keys_of(existing, keys, inner) == id) {
                    Some(existing) => merge(existing, item, inner),
                    None => live.push(item.clone()),
                }
            }
        }
        (Kind::Set, Value::Array(live), Value::Array(config)) => {
            for item in config {
                if !live.contains(item) {
                    live.push(item.clone());
                }
            }
        }
        _ => *live = config.clone(),
    }
}

/// Takes the fields of `gone` out of `value`. An object or list that is emptied by that, and is itself not kept, goes too.
pub(super) fn remove(value: &mut Value, gone: &Fields, model: Model<'_>) {
    let kind = Kind::of(model, value);
    match (kind, &mut *value) {
        (Kind::Fields(model), Value::Object(fields)) => remove_fields(fields, gone, model),
        (Kind::Keyed(keys, inner), Value::Array(items)) => {
            items.retain(|item| !gone.at(&keys_of(item, keys, inner)).is_some_and(|set| set.here));
            for item in items {
                if let Some(set) = gone.at(&keys_of(item, keys, inner)) {
                    remove(item, set, inner);
                }
            }
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
