//! Server-side apply of fields of an object.

use super::{EditError, Object};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt;

/// The body of a server-side apply request, with its field manager.
///
/// `Serialize` writes the body: pass it to `kube::api::Patch::Apply`. `Debug` prints neither names nor
/// values of fields.
#[derive(Clone, PartialEq)]
pub struct Apply {
    manager: String,
    name: String,
    document: Value,
}

impl Apply {
    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// The name of the object.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The body of the request.
    pub fn document(&self) -> &Value {
        &self.document
    }
}

impl Serialize for Apply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.document.serialize(serializer)
    }
}

impl fmt::Debug for Apply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Apply({} by {})", self.name, self.manager)
    }
}

impl<T> Object<T> {
    /// A server-side apply of the fields that `set` adds to an empty object.
    ///
    /// 1. The body has `apiVersion`, `kind`, `metadata.name`, `metadata.namespace`, `metadata.uid` (where it is a UUID)
    ///    and the fields that `set` adds; nothing of the cached content. Use it for fields that the cache does not hold. It
    ///    does not depend on a version of the object.
    /// 2. The manager owns the fields that it applies. The server removes fields that the same manager applied earlier and
    ///    leaves out now: set *all* fields of the manager in each apply.
    /// 3. Fields of other managers stay. If one of them owns a field with another value the server responds with 409,
    ///    unless the request is forced.
    /// 4. Because of the uid, the server rejects the request if the object was deleted, instead of creating it again, or
    ///    was recreated with a new uid.
    ///
    /// ```
    /// # use kube_informer_wire::{Kind, Limits, Object, Origin};
    /// # let origin = std::sync::Arc::new(Origin::new(Kind::namespaced("apps", "v1", "Deployment", "deployments")));
    /// # let json = r#"{"metadata":{"name":"web","namespace":"shop","resourceVersion":"7"},"spec":{"paused":true}}"#;
    /// # let deployment = Object::parse(&origin, json.into(), &Limits::default())?;
    /// let apply = deployment.edit_via_apply("autoscaler", |fields| fields["spec"]["replicas"] = 3.into())?;
    /// assert_eq!(apply.document(), &serde_json::json!({
    ///     "apiVersion": "apps/v1",
    ///     "kind": "Deployment",
    ///     "metadata": {"name": "web", "namespace": "shop"},
    ///     "spec": {"replicas": 3},
    /// }));
    /// // api.patch(apply.name(), &PatchParams::apply(apply.manager()), &Patch::Apply(&apply)).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edit_via_apply(
        &self,
        manager: impl Into<String>,
        set: impl FnOnce(&mut Value),
    ) -> Result<Apply, EditError> {
        let mut document = json!({});
        set(&mut document);
        self.check_objects(&document)?;
        if document.pointer("/metadata/managedFields").is_some() {
            return Err(self.identity_error("metadata.managedFields"));
        }
        let own = self.identity_document();
        let resource_version = json!(self.resource_version().to_string());
        for (path, at) in super::edit::IDENTITY {
            // The caller may add the resource version of this object as a guard.
            let own_value =
                if path == "metadata.resourceVersion" { Some(&resource_version) } else { own.pointer(at) };
            if document.pointer(at).is_some_and(|value| Some(value) != own_value) {
                return Err(self.identity_error(path));
            }
        }
        json_patch::merge(&mut document, &own);
        Ok(Apply { manager: manager.into(), name: self.name().to_owned(), document })
    }

    /// The object with its identity only.
    fn identity_document(&self) -> Value {
        let mut meta = json!({"name": self.name()});
        if let Some(namespace) = self.namespace() {
            meta["namespace"] = namespace.into();
        }
        if let Some(uid) = self.uid().text() {
            meta["uid"] = uid.into();
        }
        json!({"apiVersion": self.kind().api_version(), "kind": self.kind().kind, "metadata": meta})
    }
}

#[cfg(test)]
mod tests;
