//! `TaintNodesByCondition`: a new node has the taint of one that is not ready.

use serde_json::{Value, json};

use crate::registry::Object;

pub(super) fn add_not_ready(node: &mut Object) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    let taints = node.section_mut("spec").entry("taints").or_insert(Value::Null);
    if taints.is_null() {
        *taints = json!([]);
    }
    if let Some(list) = taints.as_array_mut()
        && !list.iter().any(|t| t["key"] == taint["key"] && t["effect"] == taint["effect"])
    {
        list.push(taint);
    }
}
