//! `RuntimeClass`: a pod has the overhead, the node selector and the tolerations of its runtime class.

use serde_json::{Map, Value};

use super::index::Index;
use super::resources::ResourceList;
use crate::registry::Object;
use crate::storage::{Storage, StorageError};

/// Applies the runtime class of a new pod. Returns why the pod is rejected, if it is.
pub(super) async fn admit(
    classes: &Index,
    storage: &dyn Storage,
    pod: &mut Object,
) -> Result<Result<(), String>, StorageError> {
    let name = pod.str_at("/spec/runtimeClassName").to_owned();
    let class = match name.as_str() {
        "" => None,
        name => match classes.get(storage, None, name).await? {
            Some(class) => Some(class),
            None => return Ok(Err(format!("pod rejected: RuntimeClass {name:?} not found"))),
        },
    };
    Ok(apply(pod, class.as_deref()))
}

fn apply(pod: &mut Object, class: Option<&Object>) -> Result<(), String> {
    let field = |pointer: &str| class.and_then(|class| class.at(pointer)).filter(|value| !value.is_null());
    let spec = pod.section_mut("spec");
    let sent = spec.get("overhead").filter(|overhead| !overhead.is_null());
    match (field("/overhead/podFixed"), sent) {
        (Some(fixed), Some(sent)) if ResourceList::read(fixed) != ResourceList::read(sent) => {
            return Err(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned()
            );
        }
        (Some(fixed), _) => {
            spec.insert("overhead".to_owned(), fixed.clone());
        }
        (None, Some(_)) => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(why.to_owned());
        }
        (None, None) => {}
    }
    if let Some(selector) = field("/scheduling/nodeSelector").and_then(Value::as_object) {
        select_nodes(spec, selector)?;
    }
    if let Some(tolerations) = field("/scheduling/tolerations").and_then(Value::as_array) {
        let own = spec.get("tolerations").and_then(Value::as_array).cloned().unwrap_or_default();
        spec.insert("tolerations".to_owned(), merge(own, tolerations).into());
    }
    Ok(())
}

fn select_nodes(spec: &mut Map<String, Value>, selector: &Map<String, Value>) -> Result<(), String> {
    let own = spec.entry("nodeSelector").or_insert_with(|| Value::Object(Map::new()));
    if own.is_null() {
        *own = Value::Object(Map::new());
    }
    let Some(own) = own.as_object_mut() else { return Ok(()) };
    for (key, wanted) in selector {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let Some(found) = own.get(key).filter(|found| *found != wanted) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                text(wanted),
                text(found)
            ));
        }
        own.insert(key.clone(), wanted.clone());
    }
    Ok(())
}

/// Appends tolerations, without those that another one includes.
fn merge(own: Vec<Value>, more: &[Value]) -> Vec<Value> {
    let all: Vec<Value> = own.into_iter().chain(more.iter().cloned()).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (i, toleration) in all.iter().enumerate() {
        let included = merged.iter().any(|kept| includes(kept, toleration));
        let later = all[i + 1..].iter().any(|next| next != toleration && includes(next, toleration));
        if !included && !later {
            merged.push(toleration.clone());
        }
    }
    merged
}

/// Whether every taint that `narrow` tolerates is tolerated by `wide`.
fn includes(wide: &Value, narrow: &Value) -> bool {
    let text = |toleration: &Value, field: &str| toleration[field].as_str().unwrap_or_default().to_owned();
    let wide_text = |field: &str| text(wide, field);
    if wide == narrow {
        return true;
    }
    let any_key = wide_text("key").is_empty() && wide_text("operator") == "Exists";
    if text(narrow, "key") != wide_text("key") && !any_key {
        return false;
    }
    if text(narrow, "effect") != wide_text("effect") && !wide_text("effect").is_empty() {
        return false;
    }
    if wide_text("effect") == "NoExecute"
        && let Some(wide) = wide["tolerationSeconds"].as_i64()
        && narrow["tolerationSeconds"].as_i64().is_none_or(|narrow| narrow > wide)
    {
        return false;
    }
    match wide_text("operator").as_str() {
        "Equal" | "" => text(narrow, "operator") == "Equal" && text(narrow, "value") == wide_text("value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tolerations_that_others_include_are_left_out() {
        let narrow = json!({"key": "a", "operator": "Equal", "value": "x", "effect": "NoSchedule"});
        let wide = json!({"key": "a", "operator": "Exists"});
        let other = json!({"key": "b", "operator": "Exists"});
        assert_eq!(
            merge(vec![narrow.clone()], &[wide.clone(), other.clone()]),
            [wide.clone(), other.clone()]
        );
        assert_eq!(merge(vec![wide.clone()], &[narrow, wide.clone()]), [wide]);
        let brief = json!({"key": "b", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
        assert_eq!(merge(vec![brief.clone()], &[]), vec![brief.clone()]);
        assert_eq!(merge(vec![other.clone()], &[brief]), [other]);
    }
}
