//! Defaulting and preparation of CRDs, and the warnings about them.

use serde_json::{Value, json};

use super::definition::Spec;
use super::formats;
use crate::registry::Object;

/// Applies defaults on every write: names derived from the kind, and the conversion strategy.
pub(crate) fn default_definition(object: &mut Object) {
    let kind = object.str_at("/spec/names/kind").to_owned();
    let Some(spec) = object.root_mut().get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.remove("preserveUnknownFields")
        .filter(|v| *v == true)
        .map(|v| spec.insert("preserveUnknownFields".to_owned(), v));
    spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    if !kind.is_empty() {
        names.entry("singular").or_insert_with(|| kind.to_lowercase().into());
        names.entry("listKind").or_insert_with(|| format!("{kind}List").into());
    }
}

/// Sets the initial status on create, with the storage version.
pub(crate) fn prepare_definition(object: &mut Object) {
    let status = object.section_mut("status");
    status.insert("acceptedNames".to_owned(), json!({"kind": "", "plural": ""}));
    status.insert("conditions".to_owned(), Value::Null);
    status.insert("storedVersions".to_owned(), json!([]));
    add_storage_version(object);
}

/// Adds a new storage version to the stored versions on update.
pub(crate) fn prepare_definition_update(new: &mut Object, _old: &Object) {
    add_storage_version(new);
}

fn add_storage_version(object: &mut Object) {
    let versions = object.at("/spec/versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|v| v["storage"] == true);
    let Some(name) = storage.and_then(|v| v["name"].as_str()).map(Value::from) else { return };
    let stored = object.section_mut("status").entry("storedVersions").or_insert_with(|| json!([]));
    if let Some(stored) = stored.as_array_mut().filter(|stored| !stored.contains(&name)) {
        stored.push(name);
    }
}

/// Names the formats that are not checked, except those that the CRD had before.
pub(crate) fn definition_warnings(new: &Object, old: Option<&Object>) -> Vec<String> {
    let known = old.map(unrecognized_formats).unwrap_or_default();
    let found = unrecognized_formats(new).into_iter().filter(|format| !known.contains(format));
    found.map(|format| format!("unrecognized format {format:?}")).collect()
}

fn unrecognized_formats(definition: &Object) -> Vec<String> {
    let mut formats = Vec::new();
    let Ok(spec) = Spec::read(definition.at("/spec")) else { return formats };
    for props in spec.versions.iter().filter_map(|version| version.props()?.ok()) {
        props.visit(&mut |schema| {
            if !schema.format.is_empty() && !formats::is_recognized(&schema.format, &schema.r#type) {
                formats.push(schema.format.clone());
            }
        });
    }
    formats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_the_kind() {
        let mut object =
            Object::new(json!({"spec": {"names": {"kind": "Widget", "plural": "widgets"}}})).unwrap();
        default_definition(&mut object);
        assert_eq!(
            object.at("/spec"),
            Some(
                &json!({"names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
                "conversion": {"strategy": "None"}})
            )
        );
    }

    #[test]
    fn storage_versions_are_added_once() {
        let mut object =
            Object::new(json!({"spec": {"versions": [{"name": "v1", "storage": true}]}})).unwrap();
        prepare_definition(&mut object);
        let old = object.clone();
        prepare_definition_update(&mut object, &old);
        assert_eq!(object.at("/status/storedVersions"), Some(&json!(["v1"])));
        object.section_mut("spec").insert("versions".to_owned(), json!([{"name": "v2", "storage": true}]));
        prepare_definition_update(&mut object, &old);
        assert_eq!(object.at("/status/storedVersions"), Some(&json!(["v1", "v2"])));
    }

    #[test]
    fn formats_that_are_not_checked_are_named_once() {
        let with = |formats: &[(&str, &str)]| {
            let properties: serde_json::Map<String, Value> = formats
                .iter()
                .map(|(kind, format)| ((*format).to_owned(), json!({"type": kind, "format": format})))
                .collect();
            let items = json!({"type": "array", "items": {"type": "object", "properties": properties}});
            let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"list": items}}});
            Object::new(json!({"spec": {"versions": [{"name": "v1", "schema": schema}]}})).unwrap()
        };
        let known =
            with(&[("string", "date-time"), ("integer", "int32"), ("number", "double"), ("string", "isbn")]);
        assert_eq!(definition_warnings(&known, None), Vec::<String>::new());
        let unknown = with(&[("string", "phone"), ("integer", "int8"), ("string", "uuid")]);
        let both = [r#"unrecognized format "int8""#, r#"unrecognized format "phone""#];
        assert_eq!(definition_warnings(&unknown, None), both);
        assert_eq!(definition_warnings(&unknown, Some(&known)), both);
        // A CRD that had it before is not reported again.
        assert_eq!(definition_warnings(&unknown, Some(&with(&[("string", "phone")]))), both[..1]);
    }
}
