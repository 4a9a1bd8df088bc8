//! The type and the metadata of objects that are a part of a custom resource (`x-kubernetes-embedded-resource`).

use serde_json::{Map, Value, json};

use super::path::Path;
use crate::registry::{Object, label_1035, validate_embedded_metadata};
use crate::schema::{conform, types};
use crate::status::{FieldError, FieldErrors};

/// Returns the errors in the type and the metadata of an embedded object.
pub(super) fn errors(fields: &Map<String, Value>, path: Path<'_>) -> FieldErrors {
    let mut errors = FieldErrors::new();
    errors.extend(check_text(fields, "apiVersion", path, |version| match version.split('/').count() {
        1 | 2 => None,
        _ => Some(format!("unexpected GroupVersion string: {version}")),
    }));
    errors.extend(check_text(fields, "kind", path, |kind| {
        let faults = label_1035(&kind.to_lowercase());
        let why = || format!("may have mixed case, but should otherwise match: {}", faults.join(","));
        (!faults.is_empty()).then(why)
    }));
    if let Some(metadata) = fields.get("metadata") {
        errors.extend(metadata_errors(metadata).into_iter().map(|error| error.below(&path.to_string())));
    }
    errors
}

fn check_text(
    fields: &Map<String, Value>,
    name: &str,
    path: Path<'_>,
    fault: impl Fn(&str) -> Option<String>,
) -> Option<FieldError> {
    let at = path.field(name).to_string();
    match fields.get(name) {
        None => Some(FieldError::required(at, "")),
        Some(Value::String(text)) if text.is_empty() => {
            Some(FieldError::invalid(at, text, "must not be empty"))
        }
        Some(Value::String(text)) => fault(text).map(|why| FieldError::invalid(at, text, why)),
        Some(other) => Some(FieldError::invalid(at, other, "must be a string")),
    }
}

fn metadata_errors(metadata: &Value) -> FieldErrors {
    let mut typed = metadata.as_object().cloned().unwrap_or_default();
    let of_objects = types().named("meta.v1.ObjectMeta");
    if let Some(Err(error)) = of_objects.map(|shape| conform(shape, "ObjectMeta", &mut typed)) {
        return [FieldError::invalid("metadata", metadata, error.to_string())].into();
    }
    Object::new(json!({"metadata": typed})).as_ref().map(validate_embedded_metadata).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(object: &Value) -> Vec<String> {
        let fields = object.as_object().expect("an object");
        let template = Path::ROOT.field("template");
        errors(fields, template).iter().map(FieldError::text).collect()
    }

    #[test]
    fn the_type_of_an_embedded_object_is_required_and_checked() {
        assert_eq!(
            found(&json!({})),
            ["template.apiVersion: Required value", "template.kind: Required value"]
        );
        assert_eq!(
            found(&json!({"apiVersion": "", "kind": 7})),
            [
                r#"template.apiVersion: Invalid value: "": must not be empty"#,
                "template.kind: Invalid value: 7: must be a string"
            ]
        );
        let odd = found(&json!({"apiVersion": "a/b/c", "kind": "My Kind"}));
        assert_eq!(
            odd[0],
            r#"template.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#
        );
        assert!(odd[1].contains("may have mixed case, but should otherwise match"), "{odd:?}");
        assert!(found(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})).is_empty());
    }

    #[test]
    fn the_metadata_of_an_embedded_object_is_checked() {
        let with = |metadata: Value| found(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}));
        for (metadata, wanted) in [
            (json!({"name": "a/b"}), r#"template.metadata.name: Invalid value: "a/b""#),
            (json!({"generateName": "a%"}), r#"template.metadata.generateName: Invalid value: "a%""#),
            (json!({"namespace": "A"}), r#"template.metadata.namespace: Invalid value: "A""#),
            (json!({"labels": {"a b": "c"}}), r#"template.metadata.labels: Invalid value: "a b""#),
            (json!({"labels": {"a": 1}}), "template.metadata: Invalid value"),
            (json!({"annotations": {"-": ""}}), r#"template.metadata.annotations: Invalid value: "-""#),
            (json!({"finalizers": ["a b"]}), r#"template.metadata.finalizers: Invalid value: "a b""#),
            (
                json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
                "template.metadata.ownerReferences[0].uid: Invalid value",
            ),
        ] {
            let errors = with(metadata);
            assert!(errors.len() == 1 && errors[0].starts_with(wanted), "{wanted}: {errors:?}");
        }
        // Neither a name nor known fields are required.
        let free = json!({"name": "A_b:c", "labels": {"a": "b"}, "unknown": {}});
        assert!(with(free).is_empty() && with(json!({})).is_empty());
    }
}
