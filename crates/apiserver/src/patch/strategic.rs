//! Strategic merge: like a merge patch, but lists whose elements have a key are merged element by element.

mod list;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::{Shape, Type, types};
use crate::work::Work;

/// Applies `patch` to `object`, both JSON objects.
pub(super) fn merge(
    object: &mut Value,
    patch: &Value,
    shape: Option<&Type>,
    work: &Work,
) -> Result<(), PatchError> {
    let (Some(target), Some(patch)) = (object.as_object_mut(), patch.as_object()) else {
        return Err(PatchError::Malformed("a strategic merge patch must be a JSON object".to_owned()));
    };
    merge_object(target, patch, shape, work)
}

fn merge_object(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Option<&Type>,
    work: &Work,
) -> Result<(), PatchError> {
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            *target =
                patch.iter().filter(|(k, _)| *k != "$patch").map(|(k, v)| (k.clone(), v.clone())).collect();
            return Ok(());
        }
        Some("delete") => {
            target.clear();
            return Ok(());
        }
        Some("merge") | None => {}
        Some(other) => {
            let shown = shown(&Value::Object(patch.clone()));
            return Err(PatchError::Contradictory(format!("unknown patch type: {other} in map: {shown}")));
        }
    }
    if let Some(keep) = patch.get("$retainKeys").and_then(Value::as_array) {
        let keep: HashSet<&str> = keep.iter().filter_map(Value::as_str).collect();
        target.retain(|key, _| keep.contains(key.as_str()));
    }
    list::delete_values(target, patch, work)?;
    for (key, value) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
        work.step()?;
        let shape = shape.and_then(|s| s.field(key)).map(|f| &f.shape);
        merge_field(target, key, value, shape, patch, work)?;
    }
    list::reorder_untouched(target, patch, shape, work)
}

fn merge_field(
    target: &mut Map<String, Value>,
    key: &str,
    value: &Value,
    shape: Option<&Shape>,
    patch: &Map<String, Value>,
    work: &Work,
) -> Result<(), PatchError> {
    if value.is_null() {
        target.remove(key);
        return Ok(());
    }
    match (target.get_mut(key), value) {
        (Some(Value::Object(_)), Value::Object(_)) if replaces(shape) => {
            target.insert(key.to_owned(), value.clone());
        }
        (Some(Value::Object(inner)), Value::Object(patch)) => {
            merge_object(inner, patch, inner_type(shape), work)?;
        }
        (Some(Value::Array(items)), Value::Array(patch_items)) => {
            let order = patch.get(&format!("$setElementOrder/{key}")).and_then(Value::as_array);
            list::merge(items, patch_items, shape, order, work)?;
        }
        (None, Value::Object(patch)) => {
            // Merging into nothing drops nulls and directives on the way in.
            let mut fresh = Map::new();
            merge_object(&mut fresh, patch, inner_type(shape), work)?;
            if patch.get("$patch") != Some(&Value::String("delete".to_owned())) {
                target.insert(key.to_owned(), Value::Object(fresh));
            }
        }
        (None, Value::Array(patch_items)) => {
            // There is nothing to merge with: elements stay as they are sent, also those with equal keys.
            let fresh: Result<Vec<Value>, PatchError> = patch_items
                .iter()
                .filter(|item| directive(item).is_none())
                .map(|item| fresh_element(item, inner_type(shape), work))
                .collect();
            target.insert(key.to_owned(), Value::Array(fresh?));
        }
        _ => {
            target.insert(key.to_owned(), value.clone());
        }
    }
    Ok(())
}

fn replaces(shape: Option<&Shape>) -> bool {
    matches!(shape, Some(Shape::Struct(_, merge)) if merge.replace)
}

fn inner_type(shape: Option<&Shape>) -> Option<&'static Type> {
    match shape {
        Some(Shape::Struct(name, _)) => types().named(name),
        Some(Shape::List(inner, ..) | Shape::Map(inner)) => inner_type(Some(inner)),
        _ => None,
    }
}

/// An element as it is, without nulls and directives.
fn fresh_element(element: &Value, shape: Option<&Type>, work: &Work) -> Result<Value, PatchError> {
    let Some(patch) = element.as_object() else { return Ok(element.clone()) };
    let mut fresh = Map::new();
    merge_object(&mut fresh, patch, shape, work)?;
    Ok(Value::Object(fresh))
}

/// A value as Go prints it: `map[name:a ports:[map[port:1]]]`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{key}:{}", shown(value))).collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

fn directive(element: &Value) -> Option<&str> {
    element.get("$patch").and_then(Value::as_str)
}
