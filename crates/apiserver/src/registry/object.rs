//! A decoded object: JSON with access to its metadata.

use serde_json::{Map, Value};

/// A JSON object that has a `metadata` object.
///
/// Both hold by construction, so no verb checks again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(Value);

impl Object {
    /// Takes a decoded body. A missing or null `metadata` becomes an empty one; a metadata that is no object is rejected.
    pub(crate) fn new(mut value: Value) -> Option<Self> {
        let map = value.as_object_mut()?;
        match map.get("metadata") {
            Some(Value::Object(_)) => {}
            None | Some(Value::Null) => {
                map.insert("metadata".to_owned(), Value::Object(Map::new()));
            }
            Some(_) => return None,
        }
        Some(Self(value))
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }

    pub(crate) fn into_value(self) -> Value {
        self.0
    }

    pub(crate) fn root(&self) -> &Map<String, Value> {
        self.0.as_object().expect("an object by construction")
    }

    pub(crate) fn root_mut(&mut self) -> &mut Map<String, Value> {
        self.0.as_object_mut().expect("an object by construction")
    }

    pub(crate) fn metadata(&self) -> &Map<String, Value> {
        self.0["metadata"].as_object().expect("an object by construction")
    }

    pub(crate) fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.0["metadata"].as_object_mut().expect("an object by construction")
    }

    /// A string in metadata; an empty one is none.
    fn meta(&self, field: &str) -> Option<&str> {
        Some(self.meta_str(field)).filter(|text| !text.is_empty())
    }

    /// A string in metadata; absent is empty.
    pub(crate) fn meta_str(&self, field: &str) -> &str {
        self.metadata().get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets or removes a string in metadata.
    pub(crate) fn set_meta(&mut self, field: &str, value: Option<&str>) {
        match value {
            Some(value) => self.metadata_mut().insert(field.to_owned(), value.into()),
            None => self.metadata_mut().remove(field),
        };
    }

    /// Makes a metadata field what it is in `other`, absent included.
    pub(crate) fn copy_meta(&mut self, field: &str, other: &Object) {
        match other.metadata().get(field) {
            Some(value) => self.metadata_mut().insert(field.to_owned(), value.clone()),
            None => self.metadata_mut().remove(field),
        };
    }

    /// Makes a top-level field what it is in `other`, absent included.
    pub(crate) fn copy_field(&mut self, field: &str, other: &Object) {
        match other.0.get(field) {
            Some(value) => self.root_mut().insert(field.to_owned(), value.clone()),
            None => self.root_mut().remove(field),
        };
    }

    /// The name; an empty one is none.
    pub(crate) fn name(&self) -> Option<&str> {
        self.meta("name")
    }

    pub(crate) fn generate_name(&self) -> Option<&str> {
        self.meta("generateName")
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.meta("namespace")
    }

    pub(crate) fn uid(&self) -> Option<&str> {
        self.meta("uid")
    }

    pub(crate) fn resource_version(&self) -> &str {
        self.meta_str("resourceVersion")
    }

    pub(crate) fn generation(&self) -> i64 {
        self.metadata().get("generation").and_then(Value::as_i64).unwrap_or_default()
    }

    pub(crate) fn is_deleting(&self) -> bool {
        self.metadata().contains_key("deletionTimestamp")
    }

    pub(crate) fn grace_seconds(&self) -> Option<i64> {
        self.metadata().get("deletionGracePeriodSeconds").and_then(Value::as_i64)
    }

    pub(crate) fn finalizers(&self) -> Vec<&str> {
        let list = self.metadata().get("finalizers").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    pub(crate) fn set_finalizers(&mut self, finalizers: Vec<String>) {
        if finalizers.is_empty() {
            self.metadata_mut().remove("finalizers");
        } else {
            self.metadata_mut().insert("finalizers".to_owned(), finalizers.into());
        }
    }

    /// The value at a JSON pointer such as `/spec/nodeName`.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.pointer(pointer)
    }

    /// The text at a JSON pointer; anything else is empty.
    pub(crate) fn str_at(&self, pointer: &str) -> &str {
        self.at(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// A top-level object field, made if it is missing.
    pub(crate) fn section_mut(&mut self, field: &str) -> &mut Map<String, Value> {
        let section = self.root_mut().entry(field).or_insert_with(|| Value::Object(Map::new()));
        if !section.is_object() {
            *section = Value::Object(Map::new());
        }
        section.as_object_mut().expect("made an object just above")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_is_always_there() {
        assert!(Object::new(json!([])).is_none());
        assert!(Object::new(json!({"metadata": 1})).is_none());
        let mut o = Object::new(json!({"metadata": null, "spec": {"a": {"b": "c"}}})).unwrap();
        o.set_meta("name", Some("x"));
        assert_eq!(
            (o.name(), o.namespace(), o.str_at("/spec/a/b"), o.str_at("/spec/z")),
            (Some("x"), None, "c", "")
        );
        o.set_meta("name", None);
        assert_eq!(o.metadata().len(), 0);
    }
}
