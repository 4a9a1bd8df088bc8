//! Adds the zero values that kube-apiserver always writes.

use serde_json::{Map, Value};

use crate::budget::{Budget, TooLarge};
use kube_informer_types::{Field, Shape, Type, Zero, types};

/// Adds every missing field that is written even if it has its zero value, at every depth, as long as the budget allows.
pub(crate) fn write_zeros(
    object_type: &Type,
    object: &mut Map<String, Value>,
    budget: &mut Budget,
) -> Result<(), TooLarge> {
    for (name, value) in object.iter_mut() {
        if let Some(field) = object_type.field(name) {
            descend(&field.shape, value, budget)?;
        }
    }
    let written = |field: &&Field| matches!(field.zero, Zero::Written | Zero::Null);
    for field in object_type.fields().iter().filter(written) {
        if !object.contains_key(field.name) {
            let zero = zero(field);
            budget.spend_field(field.name, &zero)?;
            object.insert(field.name.to_owned(), zero);
        }
    }
    Ok(())
}

fn descend(shape: &Shape, value: &mut Value, budget: &mut Budget) -> Result<(), TooLarge> {
    match (shape, value) {
        (Shape::Struct(name, _), Value::Object(object)) => {
            types().named(name).map_or(Ok(()), |inner| write_zeros(inner, object, budget))
        }
        (Shape::List(inner, ..), Value::Array(items)) if is_deep(inner) => {
            items.iter_mut().try_for_each(|item| descend(inner, item, budget))
        }
        (Shape::Map(inner), Value::Object(entries)) if is_deep(inner) => {
            entries.values_mut().try_for_each(|value| descend(inner, value, budget))
        }
        _ => Ok(()),
    }
}

fn is_deep(shape: &Shape) -> bool {
    matches!(shape, Shape::Struct(..) | Shape::List(..) | Shape::Map(_))
}

fn zero(field: &Field) -> Value {
    if field.zero == Zero::Null {
        return Value::Null;
    }
    match &field.shape {
        Shape::String | Shape::Enum(_) => "".into(),
        Shape::Int32 | Shape::Int64 | Shape::Number | Shape::IntOrString => 0.into(),
        Shape::Bool => false.into(),
        Shape::Quantity => "0".into(),
        Shape::Struct(..) => {
            let mut empty = Value::Object(Map::new());
            // The zero value of a type has the size of the type, not of the request.
            let _ = descend(&field.shape, &mut empty, &mut Budget::new(usize::MAX));
            empty
        }
        // The zero values of times, lists, maps and bytes in Go encode as null.
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_zero_values_are_added() {
        let rows = [
            (
                "",
                "Pod",
                json!({"spec": {"containers": [{"name": "c"}]}}),
                json!({"metadata": {},
                "spec": {"containers": [{"name": "c", "resources": {}}]}, "status": {}}),
            ),
            (
                "",
                "Event",
                json!({"metadata": {"name": "e"}}),
                json!({"metadata": {"name": "e"}, "eventTime": null,
                "firstTimestamp": null, "lastTimestamp": null, "involvedObject": {}, "source": {},
                "reportingComponent": "", "reportingInstance": ""}),
            ),
            (
                "",
                "PersistentVolumeClaim",
                json!({"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "a"}}}),
                json!({"metadata": {}, "status": {}, "spec": {"resources": {}, "dataSource":
                    {"apiGroup": null, "kind": "PersistentVolumeClaim", "name": "a"}}}),
            ),
            ("rbac.authorization.k8s.io", "ClusterRole", json!({}), json!({"metadata": {}, "rules": null})),
            (
                "policy",
                "PodDisruptionBudget",
                json!({"status": {"conditions": [{"type": "T"}]}}),
                json!({
                "metadata": {}, "spec": {}, "status": {"conditions": [{"type": "T", "status": "", "reason": "",
                "message": "", "lastTransitionTime": null}], "currentHealthy": 0, "desiredHealthy": 0,
                "disruptionsAllowed": 0, "expectedPods": 0}}),
            ),
        ];
        for (group, kind, mut object, wanted) in rows {
            let shape = types().kind(group, "v1", kind).unwrap();
            write_zeros(shape, object.as_object_mut().unwrap(), &mut Budget::new(10_000)).unwrap();
            assert_eq!(object, wanted, "{kind}");
        }
    }
}
