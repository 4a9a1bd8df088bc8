//! Services.

use serde_json::Value;

use crate::registry::Object;
use crate::status::FieldError;

pub(in crate::registry) fn service(object: &Object) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let headless = object.str_at("/spec/clusterIP") == "None";
    let external = object.str_at("/spec/type") == "ExternalName";
    let ports = object.at("/spec/ports").and_then(Value::as_array).cloned().unwrap_or_default();
    if ports.is_empty() && !headless && !external {
        errors.push(FieldError::required("spec.ports", ""));
    }
    for (i, port) in ports.iter().enumerate() {
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let why = "must be between 1 and 65535, inclusive";
            errors.push(FieldError::invalid(format!("spec.ports[{i}].port"), number, why));
        }
        if ports.len() > 1 && port.get("name").is_none() {
            errors.push(FieldError::required(format!("spec.ports[{i}].name"), ""));
        }
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !types.contains(&object.str_at("/spec/type")) {
        errors.push(FieldError::not_supported("spec.type", object.str_at("/spec/type"), &types));
    }
    if external && object.str_at("/spec/externalName").is_empty() {
        errors.push(FieldError::required("spec.externalName", ""));
    }
    errors
}
