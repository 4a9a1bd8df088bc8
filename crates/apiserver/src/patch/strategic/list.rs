//! Lists in a strategic merge. Elements are found by their identity, so that a merge takes time in proportion to the two lists.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{PatchError, directive, inner_type, merge_object, shown};
use crate::schema::{Merge, Shape, Type};
use crate::work::Work;

/// The identity of a list element, as canonical JSON: the merge key, or the whole value. `None` for an element without its key.
type Identity = Option<String>;

fn identity(element: &Value, rule: &Merge) -> Identity {
    match rule.key {
        Some(key) => element.get(key).map(Value::to_string),
        None => Some(element.to_string()),
    }
}

/// Merges `patch` into `items`, which take the order of `order`, or of the patch.
pub(super) fn merge(
    items: &mut Vec<Value>,
    patch: &[Value],
    shape: Option<&Shape>,
    order: Option<&Vec<Value>>,
    work: &Work,
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
    let server_order = places(items, rule, work)?;
    let mut merged = Merged::new(std::mem::take(items), rule, work)?;
    for element in patch {
        work.step()?;
        merged.merge(element, rule, inner_type(shape), work)?;
    }
    *items = merged.elements.into_iter().flatten().collect();
    arrange(items, order.map_or(patch, Vec::as_slice), &server_order, rule, work)
}

/// The elements of a list under change.
struct Merged {
    /// Elements keep their place; a deleted one leaves `None`.
    elements: Vec<Option<Value>>,
    /// Places of the elements with an identity, in rising order.
    places: HashMap<String, Vec<usize>>,
}

impl Merged {
    fn new(items: Vec<Value>, rule: &Merge, work: &Work) -> Result<Self, PatchError> {
        let mut merged = Self { elements: Vec::with_capacity(items.len()), places: HashMap::new() };
        for item in items {
            work.step()?;
            merged.push(item, rule);
        }
        Ok(merged)
    }

    fn push(&mut self, item: Value, rule: &Merge) {
        if let Some(id) = identity(&item, rule) {
            self.places.entry(id).or_default().push(self.elements.len());
        }
        self.elements.push(Some(item));
    }

    fn merge(
        &mut self,
        element: &Value,
        rule: &Merge,
        shape: Option<&Type>,
        work: &Work,
    ) -> Result<(), PatchError> {
        let id = identity(element, rule);
        let Some(key) = rule.key else {
            if !id.is_some_and(|id| self.places.contains_key(&id)) {
                self.push(element.clone(), rule);
            }
            return Ok(());
        };
        let Some(id) = id else {
            let element = shown(element);
            let why = format!("map: {element} does not contain declared merge key: {key}");
            return Err(PatchError::Contradictory(why));
        };
        if directive(element) == Some("delete") {
            self.places.remove(&id).into_iter().flatten().for_each(|place| self.elements[place] = None);
            return Ok(());
        }
        let patch = element
            .as_object()
            .ok_or_else(|| PatchError::Malformed(format!("elements keyed by {key} must be objects")))?;
        let place = self.places.get(&id).and_then(|places| places.first()).copied();
        match place.and_then(|place| self.elements[place].as_mut()).and_then(Value::as_object_mut) {
            Some(existing) => merge_object(existing, patch, shape, work),
            None => {
                let mut fresh = Map::new();
                merge_object(&mut fresh, patch, shape, work)?;
                self.push(Value::Object(fresh), rule);
                Ok(())
            }
        }
    }
}

/// The first place of each identity.
fn places(list: &[Value], rule: &Merge, work: &Work) -> Result<HashMap<Identity, usize>, PatchError> {
    work.steps(list.len())?;
    let mut places = HashMap::with_capacity(list.len());
    for (place, element) in list.iter().enumerate() {
        places.entry(identity(element, rule)).or_insert(place);
    }
    Ok(places)
}

/// Puts patched elements into the order of the patch. Elements only the server has keep their order among themselves and stay
/// before a patched one that they preceded; new elements therefore come before what is left of the server's.
fn arrange(
    items: &mut Vec<Value>,
    wanted: &[Value],
    server: &HashMap<Identity, usize>,
    rule: &Merge,
    work: &Work,
) -> Result<(), PatchError> {
    let wanted = places(wanted, rule, work)?;
    work.steps(items.len())?;
    let (mut patched, mut own) = (Vec::new(), Vec::new());
    for item in std::mem::take(items) {
        let id = identity(&item, rule);
        let before = server.get(&id).copied();
        match wanted.get(&id) {
            Some(place) => patched.push((*place, before, item)),
            None => own.push((before, item)),
        }
    }
    patched.sort_by_key(|(place, ..)| *place);
    let mut own = own.into_iter().peekable();
    for (_, after, item) in patched {
        let precedes = |(before, _): &(Option<usize>, Value)| before.zip(after).is_some_and(|(b, a)| b < a);
        while let Some((_, first)) = own.next_if(precedes) {
            items.push(first);
        }
        items.push(item);
    }
    items.extend(own.map(|(_, item)| item));
    Ok(())
}

/// `$deleteFromPrimitiveList/f`: values to take out of a list of plain values.
pub(super) fn delete_values(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    work: &Work,
) -> Result<(), PatchError> {
    for (key, values) in patch {
        let Some(field) = key.strip_prefix("$deleteFromPrimitiveList/") else { continue };
        if let (Some(Value::Array(items)), Some(values)) = (target.get_mut(field), values.as_array()) {
            work.steps(items.len() + values.len())?;
            let values: HashSet<String> = values.iter().map(Value::to_string).collect();
            items.retain(|item| !values.contains(&item.to_string()));
        }
    }
    Ok(())
}

/// `$setElementOrder/f` without a patch for `f` only orders.
pub(super) fn reorder_untouched(
    target: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    shape: Option<&Type>,
    work: &Work,
) -> Result<(), PatchError> {
    for (key, order) in patch {
        let Some(field) = key.strip_prefix("$setElementOrder/") else { continue };
        let rule = match shape.and_then(|s| s.field(field)).map(|f| &f.shape) {
            Some(Shape::List(_, _, rule)) => rule,
            _ => continue,
        };
        if let (false, Some(Value::Array(items)), Some(order)) =
            (patch.contains_key(field), target.get_mut(field), order.as_array())
        {
            let server = places(items, rule, work)?;
            arrange(items, order, &server, rule, work)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
