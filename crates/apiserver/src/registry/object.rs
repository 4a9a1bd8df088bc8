//! An object on its way through a write: JSON with its metadata within reach.

use serde_json::{Map, Value};

/// A JSON object that has a `metadata` object.
///
/// Both are true by construction, so that no verb has to ask again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object(Value);

impl Object {
    /// Takes a decoded body. A missing or null `metadata` becomes an empty one; anything else that is no object is refused.
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

    /// A string in metadata; absent is empty.
    pub(crate) fn meta_str(&self, field: &str) -> &str {
        self.metadata().get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets a string in metadata; empty removes it.
    pub(crate) fn set_meta(&mut self, field: &str, value: &str) {
        if value.is_empty() {
            self.metadata_mut().remove(field);
        } else {
            self.metadata_mut().insert(field.to_owned(), Value::String(value.to_owned()));
        }
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

    pub(crate) fn name(&self) -> &str {
        self.meta_str("name")
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        Some(self.meta_str("namespace")).filter(|namespace| !namespace.is_empty())
    }

    pub(crate) fn uid(&self) -> &str {
        self.meta_str("uid")
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
        o.set_meta("name", "x");
        assert_eq!(
            (o.name(), o.namespace(), o.str_at("/spec/a/b"), o.str_at("/spec/z")),
            ("x", None, "c", "")
        );
        o.set_meta("name", "");
        assert_eq!(o.metadata().len(), 0);
    }
}
