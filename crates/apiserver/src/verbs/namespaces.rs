//! Namespaces: which exist from the start (with other objects that every cluster has), which cannot be deleted, and whether one takes new
//! objects.

use serde_json::{Value, json};

use super::WriteContext;
use super::create::{Ownership, insert};
use super::error::{Rejection, VerbError};
use crate::admission::{Plugin, SYSTEM_CLASSES};
use crate::managed::Writer;
use crate::registry::{Lifecycle, Object, Resource};
use crate::work::Work;

/// Namespaces that every cluster has.
const SEEDED: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// Creates the namespaces that every cluster has; existing ones stay as they are.
pub(crate) async fn seed_namespaces(context: &WriteContext) {
    for name in SEEDED {
        seed(context, &context.namespaces, json!({"metadata": {"name": name}})).await;
    }
}

/// Creates the priority classes that every cluster has; existing ones stay as they are.
pub(crate) async fn seed_priority_classes(context: &WriteContext) {
    for (name, value, description) in SYSTEM_CLASSES {
        let class = json!({"metadata": {"name": name}, "value": value, "description": description});
        seed(context, context.admission.priority_classes(), class).await;
    }
}

/// Creates an object, unless it exists in a store that outlived its last server.
async fn seed(context: &WriteContext, resource: &Resource, object: Value) {
    let writer =
        Writer { manager: "kube-apiserver".to_owned(), subresource: None, now: context.clock.timestamp() };
    if let Some(object) = Object::new(object) {
        let owner = Ownership::Writer(writer);
        let _ = insert(context, resource, object, owner, false, &Work::default()).await;
    }
}

/// The phase of a namespace, or `None` if it does not exist.
async fn phase(context: &WriteContext, name: &str) -> Result<Option<String>, VerbError> {
    let namespaces = &context.namespaces;
    let stored = context.storage.get(&namespaces.storage_key(None, name)).await?;
    Ok(stored.map(|s| s.document.attributes().field("status.phase").unwrap_or_default().to_owned()))
}

/// Checks that an object can be created in its namespace.
pub(crate) async fn admit(
    context: &WriteContext,
    resource: &Resource,
    object: &Object,
) -> Result<(), VerbError> {
    if !resource.namespaced || !context.admission.has(Plugin::NamespaceLifecycle) {
        return Ok(());
    }
    let namespace = object.namespace().unwrap_or_default();
    match phase(context, namespace).await?.as_deref() {
        None if IMMORTAL.contains(&namespace) => {
            // No client can have deleted it: the store has lost its data, so the seeded namespaces are created again.
            Box::pin(seed_namespaces(context)).await;
            Ok(())
        }
        None => Err(VerbError::not_found(&context.namespaces, namespace)),
        Some("Terminating") => {
            let rejection = Rejection::NamespaceTerminating { namespace: namespace.to_owned() };
            Err(VerbError::rejected(resource, object.name(), rejection))
        }
        Some(_) => Ok(()),
    }
}

/// Checks that an object is not one of the namespaces that cannot be deleted.
pub(crate) fn check_deletable(
    context: &WriteContext,
    resource: &Resource,
    name: &str,
) -> Result<(), VerbError> {
    let is_checked = context.admission.has(Plugin::NamespaceLifecycle);
    if is_checked && resource.lifecycle == Lifecycle::Namespace && IMMORTAL.contains(&name) {
        return Err(VerbError::rejected(resource, Some(name), Rejection::NamespaceNotDeletable));
    }
    Ok(())
}
