//! `DefaultTolerationSeconds`: pods tolerate nodes that are not ready or not reachable for five minutes.

use serde_json::{Value, json};

use crate::registry::Object;

/// Adds the tolerations that a pod does not have in another form.
pub(super) fn add_defaults(pod: &mut Object) {
    let tolerations = pod.section_mut("spec").entry("tolerations").or_insert(Value::Null);
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    let Some(list) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if !list.iter().any(|t| t["key"] == key && t["effect"] != "NoSchedule") {
            list.push(
                json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}
