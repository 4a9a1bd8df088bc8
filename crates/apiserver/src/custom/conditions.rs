//! `status.conditions` of a CRD.

use serde_json::{Map, Value, json};

use crate::registry::Object;

/// A condition to set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) holds: bool,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

pub(crate) const INSTALLING: Condition<'static> = Condition {
    kind: "Established",
    holds: false,
    reason: "Installing",
    message: "the initial names have been accepted",
};
pub(crate) const ESTABLISHED: Condition<'static> =
    Condition { holds: true, reason: "InitialNamesAccepted", ..INSTALLING };
pub(crate) const NOT_ACCEPTED: Condition<'static> =
    Condition { reason: "NotAccepted", message: "not all names are accepted", ..INSTALLING };
pub(crate) const NO_CONFLICTS: Condition<'static> =
    Condition { kind: "NamesAccepted", holds: true, reason: "NoConflicts", message: "no conflicts found" };
pub(crate) const TERMINATING: Condition<'static> = Condition {
    kind: "Terminating",
    holds: true,
    reason: "InstanceDeletionInProgress",
    message: "CustomResource deletion is in progress",
};

/// Returns whether a condition is true.
pub(crate) fn holds(object: &Object, kind: &str) -> bool {
    let list = object.at("/status/conditions").and_then(Value::as_array);
    list.into_iter().flatten().any(|c| c["type"] == kind && c["status"] == "True")
}

/// Sets a condition. Its `lastTransitionTime` changes only with its status.
pub(crate) fn set(object: &mut Object, condition: Condition<'_>, now: &str) {
    let status = if condition.holds { "True" } else { "False" };
    let list = object.section_mut("status").entry("conditions").or_insert(Value::Null);
    if list.is_null() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return };
    let mut entry = Map::new();
    entry.insert("lastTransitionTime".to_owned(), now.into());
    entry.insert("message".to_owned(), condition.message.into());
    entry.insert("reason".to_owned(), condition.reason.into());
    entry.insert("status".to_owned(), status.into());
    entry.insert("type".to_owned(), condition.kind.into());
    match list.iter_mut().find(|c| c["type"] == condition.kind) {
        Some(old) => {
            if old["status"] == status {
                entry.insert("lastTransitionTime".to_owned(), old["lastTransitionTime"].clone());
            }
            *old = Value::Object(entry);
        }
        None => list.push(Value::Object(entry)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_changes_with_the_status() {
        let mut object = Object::new(json!({"metadata": {}})).unwrap();
        set(&mut object, INSTALLING, "t1");
        set(&mut object, NOT_ACCEPTED, "t2");
        assert_eq!(object.str_at("/status/conditions/0/lastTransitionTime"), "t1");
        assert!(!holds(&object, "Established"));
        set(&mut object, ESTABLISHED, "t3");
        assert_eq!(object.str_at("/status/conditions/0/lastTransitionTime"), "t3");
        assert!(holds(&object, "Established"));
    }
}
