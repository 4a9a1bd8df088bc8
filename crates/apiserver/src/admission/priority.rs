//! `Priority`: the priority of a pod is that of its priority class.

use std::sync::Arc;

use serde_json::{Value, json};

use super::index::Index;
use crate::registry::Object;
use crate::storage::{Storage, StorageError};

/// The priority classes that every cluster has: name, value and description.
pub(crate) const SYSTEM_CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
];

/// Sets the priority of a new pod. Returns why it is rejected, if it is.
pub(super) async fn admit(
    classes: &Index,
    storage: &dyn Storage,
    pod: &mut Object,
) -> Result<Result<(), String>, StorageError> {
    let name = pod.str_at("/spec/priorityClassName").to_owned();
    let class = match name.as_str() {
        "" => default_class(classes),
        name => match classes.get(storage, None, name).await? {
            Some(class) => Some(class),
            None => return Ok(Err(format!("no PriorityClass with name {name} was found"))),
        },
    };
    Ok(assign(pod, class.as_deref()))
}

/// Returns the class of pods that name none. Of several the lowest counts.
fn default_class(classes: &Index) -> Option<Arc<Object>> {
    let defaults = classes.all().into_iter().filter(|class| is_default(class));
    defaults.min_by_key(|class| value(class))
}

fn is_default(class: &Object) -> bool {
    class.at("/globalDefault") == Some(&Value::Bool(true))
}

fn value(class: &Object) -> i64 {
    class.at("/value").and_then(Value::as_i64).unwrap_or_default()
}

fn assign(pod: &mut Object, class: Option<&Object>) -> Result<(), String> {
    let (priority, policy) = match class {
        Some(class) => (value(class), class.str_at("/preemptionPolicy")),
        None => (0, "PreemptLowerPriority"),
    };
    let spec = pod.section_mut("spec");
    if let Some(class) = class.and_then(Object::name) {
        spec.insert("priorityClassName".to_owned(), class.into());
    }
    if let Some(sent) = spec.get("priority").and_then(Value::as_i64).filter(|sent| *sent != priority) {
        return Err(format!(
            "the integer value of priority ({sent}) must not be provided in pod spec; priority admission controller computed \
             {priority} from the given PriorityClass name"
        ));
    }
    spec.insert("priority".to_owned(), priority.into());
    if policy.is_empty() {
        return Ok(());
    }
    if let Some(sent) = spec.get("preemptionPolicy").and_then(Value::as_str).filter(|sent| *sent != policy) {
        return Err(format!(
            "the string value of PreemptionPolicy ({sent}) must not be provided in pod spec; priority admission controller \
             computed {policy} from the given PriorityClass name"
        ));
    }
    spec.insert("preemptionPolicy".to_owned(), json!(policy));
    Ok(())
}

/// Checks that at most one class is the default.
pub(super) fn check_class(classes: &Index, class: &Object) -> Result<(), String> {
    if !is_default(class) {
        return Ok(());
    }
    match default_class(classes) {
        Some(other) if other.name() != class.name() => Err(format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            other.name().unwrap_or_default()
        )),
        _ => Ok(()),
    }
}
