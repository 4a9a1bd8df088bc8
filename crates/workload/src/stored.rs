//! Objects as a server stores them.

use serde_json::{Value, json};

/// Adds the fields that a server adds, with the version, uid and managed fields of the object with that number.
pub fn stored(number: usize, mut object: Value) -> Value {
    let version = 100_000 + number * 3;
    let spec = fields(&object["spec"]);
    let status = fields(&object["status"]);
    let meta = &mut object["metadata"];
    meta["uid"] =
        format!("{:08x}-1c8f-4d2a-9a53-{:012x}", number.wrapping_mul(2_654_435_761) as u32, number * 7919)
            .into();
    meta["resourceVersion"] = version.to_string().into();
    meta["creationTimestamp"] = "2026-01-01T08:00:00Z".into();
    meta["managedFields"] = json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T08:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": spec}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T08:00:09Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:status": status}, "subresource": "status"},
    ]);
    object
}

/// The fields of a value in the format of managed fields.
fn fields(value: &Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, value)| (format!("f:{name}"), fields(value))).collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| (format!("k:{{\"name\":{}}}", item["name"]), fields(item)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        _ => Value::Object(serde_json::Map::new()),
    }
}
