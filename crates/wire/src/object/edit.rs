//! JSON patches of an object.

use super::{DecodeError, Object};
use crate::{JsonPatch, ObjectKey, Omission, Omissions};
use json_patch::{PatchOperation, TestOperation, jsonptr::PointerBuf};
use serde_json::Value;
use std::borrow::Cow;

/// An edit that cannot be turned into a patch. Names the object and the field, never a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The content cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The edit changes a field that the cache does not hold as the server has it.
    #[error("{kind} {key}: cannot edit {path}: {omission}")]
    NotHeld {
        /// Kind of the object.
        kind: String,
        /// Key of the object.
        key: ObjectKey,
        /// Path of the field; `.` is the whole object.
        path: String,
        /// The reason, and what to do about it.
        omission: Omission,
    },
    /// The edit changes a field that identifies the object, or that only the server may write.
    #[error(
        "{kind} {key}: cannot edit {path}: it identifies the object or belongs to the server; leave it as it is"
    )]
    Identity {
        /// Kind of the object.
        kind: String,
        /// Key of the object.
        key: ObjectKey,
        /// Path of the field.
        path: &'static str,
    },
    /// The object or its metadata is replaced by a value that is not a JSON object.
    #[error("{kind} {key}: cannot edit {path}: it must stay an object")]
    NotAnObject {
        /// Kind of the object.
        kind: String,
        /// Key of the object.
        key: ObjectKey,
        /// `.` or `metadata`.
        path: &'static str,
    },
    /// The object has no resource version to guard the patch.
    #[error("{kind} {key}: cannot edit an object without a resource version; get it from the server first")]
    Unversioned {
        /// Kind of the object.
        kind: String,
        /// Key of the object.
        key: ObjectKey,
    },
}

/// The fields that identify an object: their paths, and as JSON pointers.
pub(super) const IDENTITY: [(&str, &str); 6] = [
    ("apiVersion", "/apiVersion"),
    ("kind", "/kind"),
    ("metadata.name", "/metadata/name"),
    ("metadata.namespace", "/metadata/namespace"),
    ("metadata.uid", "/metadata/uid"),
    ("metadata.resourceVersion", "/metadata/resourceVersion"),
];

impl<T> Object<T> {
    /// A JSON patch from this object to what `change` makes of it.
    ///
    /// 1. The server applies the patch only to this version of this object (this uid, where it is a UUID). Otherwise
    ///    the request fails, with 422 on kube-apiserver because a `test` operation fails: wait for the next version
    ///    in the cache and edit that.
    /// 2. The patch contains the changes of `change` and nothing else: fields that the type of this program lacks stay.
    /// 3. It never touches fields that the cache does not hold as the server has them: those that a
    ///    [`Transform`](https://docs.rs/kube-informer/latest/kube_informer/struct.Transform.html) drops or changes, and
    ///    everything but `metadata` if only metadata is cached. Creating, changing or removing such a field, or
    ///    removing or replacing a field that contains one, is [`EditError::NotHeld`]; so is any change inside an
    ///    array of which elements, or fields of elements, are dropped, because elements are known by position only.
    /// 4. A server that was restored from a backup may use a version again, for another state of the same object. Until
    ///    the informer notices the restore, the server applies a patch of the earlier state to that one, as it would
    ///    accept an update by any other client.
    ///
    /// ```
    /// # use kube_informer_wire::{Kind, Limits, Object, Origin};
    /// # let origin = std::sync::Arc::new(Origin::new(Kind::namespaced("apps", "v1", "Deployment", "deployments")));
    /// # let json = r#"{"metadata":{"name":"web","resourceVersion":"7"},"spec":{"replicas":1}}"#;
    /// # let deployment = Object::parse(&origin, json.into(), &Limits::default())?;
    /// let patch = deployment.edit(|object| object["spec"]["replicas"] = 3.into())?;
    /// assert_eq!(serde_json::to_value(&patch)?, serde_json::json!([
    ///     {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
    ///     {"op": "replace", "path": "/spec/replicas", "value": 3},
    /// ]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edit(&self, change: impl FnOnce(&mut Value)) -> Result<JsonPatch, EditError> {
        if self.resource_version().is_unset() {
            return Err(EditError::Unversioned { kind: self.kind().kind.clone(), key: self.key().clone() });
        }
        let before: Value = self.view()?;
        let mut after = before.clone();
        change(&mut after);
        self.check_objects(&after)?;
        let changed = IDENTITY.into_iter().find(|(_, at)| before.pointer(at) != after.pointer(at));
        if let Some((path, _)) = changed {
            return Err(self.identity_error(path));
        }
        self.check_held(&before, &after)?;
        let mut patch = json_patch::diff(&before, &after);
        patch.0.splice(0..0, self.guards());
        Ok(patch)
    }

    /// The operations that fail unless the server has this version of this object.
    fn guards(&self) -> impl Iterator<Item = PatchOperation> {
        let test = |field: &str, value: String| {
            let path = PointerBuf::from_tokens(["metadata", field]);
            PatchOperation::Test(TestOperation { path, value: value.into() })
        };
        let version = test("resourceVersion", self.resource_version().to_string());
        let uid = self.uid().text().map(|uid| test("uid", uid));
        std::iter::once(version).chain(uid)
    }

    fn check_held(&self, before: &Value, after: &Value) -> Result<(), EditError> {
        let mut omissions = Cow::Borrowed(self.omissions());
        // A source may send metadata only without the informer knowing it.
        if before["kind"] == "PartialObjectMetadata" && self.kind().kind != "PartialObjectMetadata" {
            omissions = Cow::Owned(omissions.into_owned().and(&Omissions::outside_metadata()));
        }
        omissions.check(before, after).map_err(|(path, omission)| EditError::NotHeld {
            kind: self.kind().kind.clone(),
            key: self.key().clone(),
            path: path.map_or_else(|| ".".to_owned(), |path| path.to_string()),
            omission,
        })
    }

    /// Checks that `edited` is an object, and its metadata too.
    pub(super) fn check_objects(&self, edited: &Value) -> Result<(), EditError> {
        let path = match edited.get("metadata") {
            _ if !edited.is_object() => ".",
            Some(meta) if !meta.is_object() => "metadata",
            _ => return Ok(()),
        };
        Err(EditError::NotAnObject { kind: self.kind().kind.clone(), key: self.key().clone(), path })
    }

    pub(super) fn identity_error(&self, path: &'static str) -> EditError {
        EditError::Identity { kind: self.kind().kind.clone(), key: self.key().clone(), path }
    }
}

#[cfg(test)]
mod tests;
