//! Strategic merge: like a merge patch, but lists whose elements have a key are merged element by element.

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::{Merge, Shape, Type, types};

/// Applies `patch` to `object`, both JSON objects.
pub(super) fn merge(object: &mut Value, patch: &Value, shape: Option<&Type>) -> Result<(), PatchError> {
    let (Some(target), Some(patch)) = (object.as_object_mut(), patch.as_object()) else {
        return Err(PatchError::Malformed("a strategic merge patch must be a JSON object".to_owned()));
    };
    merge_object(target, patch, shape)
}

fn merge_object(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Option<&Type>,
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
        target.retain(|key, _| keep.iter().any(|k| k == key));
    }
    delete_values(target, patch);
    for (key, value) in patch.iter().filter(|(key, _)| !key.starts_with('$')) {
        let shape = shape.and_then(|s| s.field(key)).map(|f| &f.shape);
        merge_field(target, key, value, shape, patch)?;
    }
    reorder_untouched(target, patch, shape);
    Ok(())
}

fn merge_field(
    target: &mut Map<String, Value>,
    key: &str,
    value: &Value,
    shape: Option<&Shape>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    if value.is_null() {
        target.remove(key);
        return Ok(());
    }
    match (target.get_mut(key), value) {
        (Some(Value::Object(_)), Value::Object(_)) if replaces(shape) => {
            target.insert(key.to_owned(), value.clone());
        }
        (Some(Value::Object(inner)), Value::Object(patch)) => merge_object(inner, patch, inner_type(shape))?,
        (Some(Value::Array(items)), Value::Array(patch_items)) => {
            let order = patch.get(&format!("$setElementOrder/{key}")).and_then(Value::as_array);
            merge_list(items, patch_items, shape, order)?;
        }
        (None, Value::Object(patch)) => {
            // Merging into nothing drops nulls and directives on the way in.
            let mut fresh = Map::new();
            merge_object(&mut fresh, patch, inner_type(shape))?;
            if patch.get("$patch") != Some(&Value::String("delete".to_owned())) {
                target.insert(key.to_owned(), Value::Object(fresh));
            }
        }
        (None, Value::Array(patch_items)) => {
            // There is nothing to merge with: elements stay as they are sent, also those with equal keys.
            let fresh: Result<Vec<Value>, PatchError> = patch_items
                .iter()
                .filter(|item| directive(item).is_none())
                .map(|item| fresh_element(item, inner_type(shape)))
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

fn merge_list(
    items: &mut Vec<Value>,
    patch: &[Value],
    shape: Option<&Shape>,
    order: Option<&Vec<Value>>,
) -> Result<(), PatchError> {
    let rule = match shape {
        Some(Shape::List(_, _, rule)) if rule.merge => rule,
        _ => {
            *items = patch.to_vec();
            return Ok(());
        }
    };
    if patch.iter().any(|p| directive(p) == Some("replace")) {
        *items = patch.iter().filter(|p| directive(p) != Some("replace")).cloned().collect();
        return Ok(());
    }
    let server_order = items.clone();
    for element in patch {
        merge_element(items, element, rule, inner_type(shape))?;
    }
    let wanted = order.map_or(patch, Vec::as_slice);
    arrange(items, wanted, &server_order, rule);
    Ok(())
}

fn merge_element(
    items: &mut Vec<Value>,
    element: &Value,
    rule: &Merge,
    shape: Option<&Type>,
) -> Result<(), PatchError> {
    let Some(key) = rule.key else {
        if !items.contains(element) {
            items.push(element.clone());
        }
        return Ok(());
    };
    let id = element.get(key);
    if id.is_none() {
        let element = shown(element);
        let why = format!("map: {element} does not contain declared merge key: {key}");
        return Err(PatchError::Contradictory(why));
    }
    if directive(element) == Some("delete") {
        items.retain(|item| item.get(key) != id);
        return Ok(());
    }
    let patch = element
        .as_object()
        .ok_or_else(|| PatchError::Malformed(format!("elements keyed by {key} must be objects")))?;
    match items.iter_mut().find(|item| item.get(key) == id).and_then(Value::as_object_mut) {
        Some(existing) => merge_object(existing, patch, shape),
        None => {
            let mut fresh = Map::new();
            merge_object(&mut fresh, patch, shape)?;
            items.push(Value::Object(fresh));
            Ok(())
        }
    }
}

/// Puts patched elements into the order of the patch. Elements only the server has keep their order among themselves and stay
/// before a patched one that they preceded; new elements therefore come before what is left of the server's.
fn arrange(items: &mut Vec<Value>, wanted: &[Value], server: &[Value], rule: &Merge) {
    let same = |a: &Value, b: &Value| rule.key.map_or(a == b, |key| a.get(key) == b.get(key));
    let place = |list: &[Value], item: &Value| list.iter().position(|other| same(other, item));
    let (mut patched, mut own): (Vec<Value>, Vec<Value>) =
        std::mem::take(items).into_iter().partition(|item| place(wanted, item).is_some());
    patched.sort_by_key(|item| place(wanted, item));
    own.reverse();
    for item in patched {
        while let Some(next) = own.last() {
            match (place(server, next), place(server, &item)) {
                (Some(before), Some(after)) if before < after => items.extend(own.pop()),
                _ => break,
            }
        }
        items.push(item);
    }
    items.extend(own.into_iter().rev());
}

/// `$deleteFromPrimitiveList/f`: values to take out of a list of plain values.
fn delete_values(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (key, values) in patch {
        let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") else { continue };
        if let (Some(Value::Array(items)), Some(values)) = (target.get_mut(field), values.as_array()) {
            items.retain(|item| !values.contains(item));
        }
    }
}

/// `$setElementOrder/f` without a patch for `f` only orders.
fn reorder_untouched(target: &mut Map<String, Value>, patch: &Map<String, Value>, shape: Option<&Type>) {
    for (key, order) in patch {
        let Some(field) = key.strip_prefix("$setElementOrder/") else { continue };
        let rule = match shape.and_then(|s| s.field(field)).map(|f| &f.shape) {
            Some(Shape::List(_, _, rule)) => rule,
            _ => continue,
        };
        if let (false, Some(Value::Array(items)), Some(order)) =
            (patch.contains_key(field), target.get_mut(field), order.as_array())
        {
            let server = items.clone();
            arrange(items, order, &server, rule);
        }
    }
}

/// An element as it is, without nulls and directives.
fn fresh_element(element: &Value, shape: Option<&Type>) -> Result<Value, PatchError> {
    let Some(patch) = element.as_object() else { return Ok(element.clone()) };
    let mut fresh = Map::new();
    merge_object(&mut fresh, patch, shape)?;
    Ok(Value::Object(fresh))
}

/// A value as messages of the original show it: `map[name:a ports:[map[port:1]]]`.
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
