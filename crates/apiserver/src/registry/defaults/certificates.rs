//! Certificate signing requests: their creator and their conditions.

use serde_json::{Value, json};

use super::super::Object;
use super::{default_to, each};
use crate::authentication::User;

/// Records who sent the request. Clients cannot set these fields.
pub(in super::super) fn signing_request_creator(object: &mut Object, user: &User) {
    let spec = object.section_mut("spec");
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    spec.insert("username".to_owned(), user.name.as_str().into());
    spec.insert("groups".to_owned(), json!(user.groups));
    if !user.uid.is_empty() {
        spec.insert("uid".to_owned(), user.uid.as_str().into());
    }
    if !user.extra.is_empty() {
        spec.insert("extra".to_owned(), json!(user.extra));
    }
}

/// The spec never changes.
pub(in super::super) fn keep_spec(new: &mut Object, old: &Object) {
    new.copy_field("spec", old);
}

/// Sets the times of conditions that have none. A condition that keeps its status keeps the time of its last transition.
pub(in super::super) fn signing_request_conditions(new: &mut Object, old: &Object, now: &str) {
    let before = old.at("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    for condition in each(new.section_mut("status"), "conditions") {
        default_to(condition, "lastUpdateTime", now);
        let same =
            |other: &&Value| ["type", "status"].iter().all(|field| other.get(field) == condition.get(*field));
        let since = before.iter().find(same).map(|same| same["lastTransitionTime"].clone());
        let since = since.filter(|time| !time.is_null()).unwrap_or_else(|| now.into());
        default_to(condition, "lastTransitionTime", since);
    }
}
