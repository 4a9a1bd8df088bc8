//! The life of namespaces: which exist from the start, which never die, and how the others are emptied.
//!
//! There is no background controller. What it would notice happens inside requests of this server (a namespace is marked, the
//! last object of a dying namespace goes), so it acts there and then: no task, no delay, the same run for the same seed.

use serde_json::json;

use super::create::{Ownership, insert};
use super::delete::{DeleteOptions, Outcome, remove};
use crate::engine::Engine;
use crate::managed::Writer;
use crate::registry::{Lifecycle, Object, Resource};
use crate::status::Status;
use crate::storage::{Range, Update, guaranteed_update};

/// Namespaces every cluster has.
const SEEDED: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];
/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

impl Engine {
    /// Creates the namespaces every cluster has; those that are there stay as they are.
    pub(crate) async fn seed_namespaces(&self) {
        for name in SEEDED {
            if let Some(object) = Object::new(json!({"metadata": {"name": name}})) {
                let writer = Writer {
                    manager: "kube-apiserver".to_owned(),
                    subresource: String::new(),
                    now: self.now_text(),
                };
                // Already there, in a store that outlived its last server.
                let _ = insert(self, self.namespaces(), object, Ownership::Writer(writer), false).await;
            }
        }
    }

    /// `None` if there is no such namespace.
    pub(crate) async fn namespace_phase(&self, name: &str) -> Result<Option<String>, Status> {
        let namespaces = self.namespaces();
        let stored = self.storage.get(&namespaces.storage_key("", name)).await;
        let stored = stored.map_err(|e| self.storage_status(namespaces, name, e))?;
        Ok(stored.map(|s| s.document.attributes().field("status.phase").unwrap_or_default().to_owned()))
    }

    /// Whether a namespace is one that cannot be deleted.
    pub(crate) fn is_immortal(&self, name: &str) -> bool {
        IMMORTAL.contains(&name)
    }

    pub(crate) fn check_deletable(&self, resource: &Resource, name: &str) -> Result<(), Status> {
        if resource.lifecycle == Lifecycle::Namespace && IMMORTAL.contains(&name) {
            return Err(Status::forbidden(resource, name, "this namespace may not be deleted", Vec::new()));
        }
        Ok(())
    }

    /// To be called when an object of `resource` was removed: it may have been the last of a dying namespace or definition.
    pub(crate) async fn after_removal(&self, resource: &Resource, namespace: &str) {
        self.after_custom_removal(resource).await;
        if resource.namespaced {
            self.namespace_may_end(namespace).await;
        }
    }

    /// To be called when an object of a namespace was removed.
    pub(crate) async fn namespace_may_end(&self, namespace: &str) {
        if !self.empties_namespaces || namespace.is_empty() {
            return;
        }
        if let Ok(Some(phase)) = self.namespace_phase(namespace).await
            && phase == "Terminating"
        {
            self.end_namespace(namespace).await;
        }
    }

    /// To be called when a delete only marked its object: a marked namespace is emptied, and so is a marked definition.
    pub(crate) async fn after_marking(&self, resource: &Resource, name: &str, outcome: &Outcome) {
        if resource.lifecycle == Lifecycle::CustomResourceDefinition && matches!(outcome, Outcome::Marked(_))
        {
            self.end_definition(name).await;
        }
        if self.empties_namespaces
            && resource.lifecycle == Lifecycle::Namespace
            && matches!(outcome, Outcome::Marked(_))
        {
            self.after_namespace_marked(name).await;
        }
    }

    async fn after_namespace_marked(&self, name: &str) {
        // A dry run marks nothing; the stored phase tells.
        if let Ok(Some(phase)) = self.namespace_phase(name).await
            && phase == "Terminating"
        {
            self.empty_namespace(name).await;
            self.end_namespace(name).await;
        }
    }

    /// Deletes everything in a namespace. Pods get no grace: nobody is there to wait for.
    async fn empty_namespace(&self, namespace: &str) {
        let options = DeleteOptions::at_once();
        for resource in self.now().registry.all().filter(|r| r.namespaced && r.is_stored()) {
            for name in self.names_in(resource, namespace).await {
                if let Err(status) = remove(self, resource, namespace, &name, &options).await {
                    tracing::debug!(
                        namespace,
                        name,
                        resource = resource.plural,
                        ?status,
                        "object of a dying namespace stays"
                    );
                }
            }
        }
    }

    /// Removes a dying namespace if nothing is left in it.
    async fn end_namespace(&self, name: &str) {
        for resource in self.now().registry.all().filter(|r| r.namespaced && r.is_stored()) {
            if !self.names_in(resource, name).await.is_empty() {
                return;
            }
        }
        let namespaces = self.namespaces();
        let key = namespaces.storage_key("", name);
        let ended = guaranteed_update(&*self.storage, &key, None, |stored| {
            let mut namespace = self.object(namespaces, stored)?;
            namespace.section_mut("spec").remove("finalizers");
            let finished = super::update::is_finished(namespaces, &namespace);
            let update =
                if finished { Update::Delete } else { Update::Write(self.document(namespaces, &namespace)?) };
            Ok::<_, Status>(update)
        })
        .await;
        if let Err(error) = ended {
            tracing::debug!(name, ?error, "dying namespace stays");
        }
    }

    async fn names_in(&self, resource: &Resource, namespace: &str) -> Vec<String> {
        let range =
            Range { prefix: format!("{}{namespace}/", resource.storage_prefix()), ..Range::default() };
        let page = self.storage.list(&range).await;
        page.map(|page| page.items.iter().map(|item| item.name().to_owned()).collect()).unwrap_or_default()
    }
}
