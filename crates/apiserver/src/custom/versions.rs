//! Conversion of custom objects between the versions of a CRD: the fields that a version does not have are dropped.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::coerce::{apply_defaults, prune, remove_nulls};
use super::schema::Structural;
use crate::budget::Budget;
use crate::server::OBJECT_BYTES;

/// The versions of a CRD, for requests in one of them.
///
/// 1. A stored object has only fields of the storage version.
/// 2. An object that is read has the defaults of the version in which it was stored, and only fields that this version and the requested
///    one have. The defaults of the requested version are only for request bodies.
#[derive(Debug, Clone)]
pub(crate) struct Versions {
    /// The name and the schema of every version, served or not. Versions with equal schemas share one.
    all: Arc<[(String, Arc<Structural>)]>,
    requested: usize,
    storage: usize,
}

impl Versions {
    /// `requested` and `storage` are places in the list of versions.
    pub(super) fn new(all: &Arc<[(String, Arc<Structural>)]>, requested: usize, storage: usize) -> Self {
        Self { all: Arc::clone(all), requested, storage }
    }

    /// Converts a stored object to the requested version.
    ///
    /// An object whose stored version is not recorded, or is no longer in the CRD, counts as one in the storage version.
    pub(crate) fn show(&self, object: &mut Map<String, Value>, stored_in: &str) {
        let stored_in = self.all.iter().find(|(name, _)| name == stored_in);
        let stored = stored_in.map_or(self.storage(), |(_, schema)| schema);
        // The schema may have changed since the object was stored.
        prune(stored, object);
        // Defaults that do not fit are not shown: such an object cannot be stored.
        let _ = apply_defaults(stored, object, &mut Budget::new(OBJECT_BYTES));
        if !Arc::ptr_eq(stored, self.requested()) {
            drop_unknown(self.requested(), object);
        }
    }

    /// Converts an object of the requested version to the storage version. It gets no defaults: a read adds those.
    pub(crate) fn store(&self, object: &mut Map<String, Value>) {
        if self.differ() {
            drop_unknown(self.storage(), object);
        }
    }

    /// Whether the requested version and the storage version have different schemas.
    pub(crate) fn differ(&self) -> bool {
        !Arc::ptr_eq(self.requested(), self.storage())
    }

    fn requested(&self) -> &Arc<Structural> {
        &self.all[self.requested].1
    }

    fn storage(&self) -> &Arc<Structural> {
        &self.all[self.storage].1
    }
}

/// Removes the fields that a schema does not have, and the values that it does not allow to be `null`.
fn drop_unknown(schema: &Structural, object: &mut Map<String, Value>) {
    prune(schema, object);
    remove_nulls(schema, object);
}

#[cfg(test)]
mod tests {
    use super::super::tests::schema;
    use super::*;
    use serde_json::json;

    /// The versions `v1`, which is the storage version, and `v2`, whose `spec` have these properties, as `v2` sees them.
    fn versions(v1: Value, v2: Value) -> Versions {
        let spec = |properties| {
            Arc::new(schema(
                json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}),
            ))
        };
        let all = vec![("v1".to_owned(), spec(v1)), ("v2".to_owned(), spec(v2))];
        Versions::new(&all.into(), 1, 0)
    }

    fn stored(versions: &Versions, spec: Value) -> Value {
        let mut object = json!({"spec": spec});
        versions.store(object.as_object_mut().unwrap());
        object["spec"].take()
    }

    fn shown(versions: &Versions, spec: Value, stored_in: &str) -> Value {
        let mut object = json!({"spec": spec});
        versions.show(object.as_object_mut().unwrap(), stored_in);
        object["spec"].take()
    }

    #[test]
    fn fields_nulls_and_embedded_objects_are_stored_as_the_storage_version_allows() {
        let (text, optional) = (json!({"type": "string"}), json!({"type": "string", "nullable": true}));
        let embedded = |inner: Value| {
            json!({"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"spec": {"type": "object", "properties": inner}}})
        };
        let list = |nullable: &Value| json!({"type": "array", "items": {"type": "object", "properties": {"n": nullable}}});
        let versions = versions(
            json!({"n": text, "kept": optional, "defaulted": {"type": "string", "default": "d"},
                "list": list(&text), "template": embedded(json!({"a": text}))}),
            json!({"n": optional, "kept": optional, "defaulted": optional, "extra": text,
                "list": list(&optional), "template": embedded(json!({"a": text, "b": text}))}),
        );
        let pod =
            |spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec});
        let sent = json!({"n": null, "kept": null, "defaulted": null, "extra": "x", "list": [{"n": null}],
            "template": pod(json!({"a": "1", "b": "2"}))});
        let expected =
            json!({"kept": null, "defaulted": null, "list": [{}], "template": pod(json!({"a": "1"}))});
        assert_eq!(stored(&versions, sent), expected, "a null with a default is replaced on read");
        let mut read = expected.clone();
        read["defaulted"] = "d".into();
        assert_eq!(shown(&versions, expected, "v1"), read);
    }

    #[test]
    fn the_recorded_version_decides_about_fields_and_defaults() {
        let with_default = |value: &str| json!({"type": "string", "default": value});
        let versions = versions(
            json!({"a": {"type": "string"}, "d": with_default("of v1")}),
            json!({"a": {"type": "string"}, "b": {"type": "string"}, "d": with_default("of v2")}),
        );
        let spec = json!({"a": "1", "b": "2"});
        assert_eq!(shown(&versions, spec.clone(), "v1"), json!({"a": "1", "d": "of v1"}));
        assert_eq!(shown(&versions, spec.clone(), "v2"), json!({"a": "1", "b": "2", "d": "of v2"}));
        for unknown in ["", "v0"] {
            assert_eq!(shown(&versions, spec.clone(), unknown), json!({"a": "1", "d": "of v1"}));
        }
    }
}
