//! Custom resource definitions, their schemas and JSON paths.

use crate::{halves, text, values};
use kube_embedded_apiserver::fuzzing::{self, Schema};
use serde_json::Value;

/// Pruning and defaulting are idempotent, and validation is deterministic.
pub fn schema(data: &[u8]) {
    let Some((schema, value)) = values(data) else { return };
    let Some(schema) = Schema::compile(&schema) else { return };
    schema.error_count(&value);
    let Value::Object(mut object) = value else { return };
    schema.prune(&mut object);
    let pruned = object.clone();
    assert!(schema.prune(&mut object).is_empty(), "pruning is not idempotent");
    assert_eq!(object, pruned);
    schema.apply_defaults(&mut object);
    schema.prune(&mut object);
    schema.apply_defaults(&mut object);
    let filled = object.clone();
    schema.apply_defaults(&mut object);
    assert_eq!(object, filled, "defaulting is not idempotent");
    let object = Value::Object(object);
    assert_eq!(schema.error_count(&object), schema.error_count(&object.clone()));
}

/// Every accepted definition can be served.
pub fn definition(data: &[u8]) {
    let Ok(spec) = serde_json::from_slice::<Value>(data) else { return };
    let (accepted, served) = fuzzing::definition(spec);
    assert!(!accepted || served == Ok(true), "accepted, but {served:?}");
}

/// Any text is a path or an error; a path finds no more values than the object has.
pub fn json_path(data: &[u8]) {
    let Some((path, value)) = halves(data) else { return };
    let (Some(path), Ok(value)) = (text(path), serde_json::from_slice::<Value>(value)) else { return };
    if let Some(found) = fuzzing::follow(path, &value) {
        assert!(found <= count(&value), "{path:?} finds {found} of {} values", count(&value));
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum::<usize>(),
        _ => 0,
    }
}
