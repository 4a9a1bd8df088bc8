//! `ResourceQuota`: quotas bound the number of objects in a namespace, and their resources.

use serde_json::Value;

use super::resources::ResourceList;
use super::usage;
use crate::registry::{Object, Resource};

/// Returns the usage of a quota with an object in addition, or `None` if the quota is not about the object. `old` is the object before an
/// update.
///
/// # Errors
///
/// The quota does not allow the object; the text says why.
pub(super) fn charge(
    quota: &Object,
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
) -> Result<Option<ResourceList>, String> {
    let list = |pointer: &str| ResourceList::read(quota.at(pointer).unwrap_or(&Value::Null));
    let (hard, used) = (list("/status/hard"), list("/status/used"));
    let restricted: Vec<&str> = hard.names().filter(|name| usage::counts(resource, name)).collect();
    if restricted.is_empty() || !usage::in_scope(resource, object, quota) {
        return Ok(None);
    }
    let name = quota.name().unwrap_or_default();
    if let Some(missing) = usage::unspecified(resource, object, &restricted) {
        return Err(format!("failed quota: {name}: {missing}"));
    }
    if restricted.iter().any(|name| !used.contains(name)) {
        return Err(format!("status unknown for quota: {name}, resources: {}", restricted.join(",")));
    }
    let mut requested = usage::of(resource, object);
    if let Some(old) = old.filter(|old| usage::in_scope(resource, old, quota)) {
        let before = usage::of(resource, old);
        requested = difference(&requested, &before);
    }
    requested.retain(|name, quantity| hard.contains(name) && !quantity.is_zero());
    if requested.is_empty() {
        return Ok(None);
    }
    let mut total = used.clone();
    total.add(&requested);
    let exceeded = |name: &str| {
        requested.contains(name)
            && total.get(name).zip(hard.get(name)).is_some_and(|(total, hard)| total > hard)
    };
    if hard.names().any(exceeded) {
        let shown = |list: &ResourceList| {
            let mut list = list.clone();
            list.retain(|name, _| exceeded(name));
            list.listed()
        };
        return Err(format!(
            "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
            shown(&requested),
            shown(&used),
            shown(&hard)
        ));
    }
    Ok(Some(total))
}

fn difference(new: &ResourceList, old: &ResourceList) -> ResourceList {
    let mut more = ResourceList::default();
    for (name, quantity) in new.iter() {
        more.set(name, old.get(name).map_or(quantity, |before| quantity.above(before)));
    }
    more
}
