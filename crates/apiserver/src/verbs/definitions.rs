//! The life of definitions: they get their names, are established, and take their objects with them when they go.
//!
//! Elsewhere controllers do this. Here, as with namespaces, it happens inside the request that causes it: when the answer to a
//! create arrives, the new kind can be used.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::delete::{DeleteOptions, Outcome, Step, remove};
use super::update::is_finished;
use crate::custom::{self, Condition, Names};
use crate::engine::Engine;
use crate::managed::{Managers, Writer};
use crate::registry::{Lifecycle, Object, Resource};
use crate::status::Status;
use crate::storage::{Range, Stored, Update, guaranteed_update};

impl Engine {
    /// To be called when an object was created: a new definition is established, and an object whose kind went meanwhile goes too.
    pub(crate) async fn after_creation(&self, resource: &Resource, stored: &Stored) -> Result<(), Status> {
        if resource.lifecycle == Lifecycle::CustomResourceDefinition {
            self.settle_definition(stored.name()).await;
        }
        // Whoever ends a definition marks it, then looks for objects. So an object is either found there, or its creator finds
        // the mark here.
        if !self.serving.is_current(resource) {
            let _ = self.storage.delete(&stored.key, stored.revision).await;
            return Err(Status::kind_terminating("create"));
        }
        Ok(())
    }

    /// To be called when an object was changed: a definition may ask for other names.
    pub(crate) async fn after_update(&self, resource: &Resource, name: &str) {
        if resource.lifecycle == Lifecycle::CustomResourceDefinition {
            self.settle_definition(name).await;
            self.end_definition(name).await;
        }
    }

    /// To be called when an object of a custom kind is gone: its definition may have waited for that.
    pub(crate) async fn after_custom_removal(&self, resource: &Resource) {
        if let Some(custom) = &resource.custom
            && self.serving.is_terminating(&custom.definition)
        {
            self.end_definition(&custom.definition).await;
        }
    }

    /// Brings all definitions to where they should be: what a server that went down left undone.
    pub(crate) async fn settle_definitions(&self) {
        for stored in self.stored_under(&self.definitions.storage_prefix()).await {
            self.settle_definition(stored.name()).await;
            self.end_definition(stored.name()).await;
        }
    }

    /// Gives a definition the names that are free, and establishes it once it has all of them.
    async fn settle_definition(&self, name: &str) {
        // Held over the writes on purpose: definitions take names one after the other.
        let _turn = self.naming.lock().await;
        let group = self.definitions_of(group_of(name)).await;
        self.write_status(name, |object| self.accept_names(object, &group)).await;
        self.write_status(name, |object| {
            if custom::holds(object, "NamesAccepted") {
                custom::set_condition(object, custom::ESTABLISHED, &self.now_text());
            }
        })
        .await;
        if let Some(resource) = self.now().registry.all().find(|r| makes(r, name)) {
            // From now on a watch may begin at any version.
            let _ = self.cache(resource).await;
        }
    }

    fn accept_names(&self, object: &mut Object, group: &[Object]) {
        let names = |object: &Object, pointer: &str| -> Names {
            let names = object.at(pointer).cloned().unwrap_or_default();
            serde_json::from_value(names).unwrap_or_default()
        };
        let others = group.iter().filter(|o| o.name() != object.name());
        let others: Vec<Names> = others.map(|o| names(o, "/status/acceptedNames")).collect();
        let asked = names(object, "/spec/names");
        let accepted = custom::accept(&asked, &names(object, "/status/acceptedNames"), &others);
        let now = self.now_text();
        let established = custom::holds(object, "Established");
        let (naming, establishing) = match &accepted.conflict {
            None => (custom::NO_CONFLICTS, custom::INSTALLING),
            Some((reason, message)) => {
                (Condition { holds: false, reason, message, ..custom::NO_CONFLICTS }, custom::NOT_ACCEPTED)
            }
        };
        custom::set_condition(object, naming, &now);
        if !established {
            custom::set_condition(object, establishing, &now);
        }
        let names = serde_json::to_value(&accepted.names).unwrap_or_default();
        object.section_mut("status").insert("acceptedNames".to_owned(), names);
    }

    /// Changes the status of a definition as the server's own controllers would.
    async fn write_status(&self, name: &str, mut change: impl FnMut(&mut Object)) {
        let definitions = &self.definitions;
        let writer = Writer {
            manager: "kube-apiserver".to_owned(),
            subresource: "status".to_owned(),
            now: self.now_text(),
        };
        let key = definitions.storage_key("", name);
        let written = guaranteed_update(&*self.storage, &key, None, |stored| {
            let old = self.object(definitions, stored)?;
            let mut new = old.clone();
            change(&mut new);
            Managers::read(&old).updated(definitions, &writer, Some(&old), &new).write(&mut new);
            Ok::<_, Status>(Update::Write(self.document(definitions, &new)?))
        })
        .await;
        if let Err(error) = written {
            tracing::debug!(name, ?error, "status of a definition stays as it is");
        }
    }

    /// The definitions of a group. Others are not even decoded: some are large.
    async fn definitions_of(&self, group: &str) -> Vec<Object> {
        let all = self.stored_under(&self.definitions.storage_prefix()).await;
        let own = all.iter().filter(|stored| group_of(stored.name()) == group);
        own.filter_map(|stored| self.object(&self.definitions, stored).ok()).collect()
    }

    /// The first delete of a definition begins its end; it is over when its objects are gone.
    pub(super) fn definition_step(&self, mut definition: Object) -> Step {
        if definition.is_deleting() {
            return if definition.finalizers().is_empty() { Step::Remove } else { Step::Wait };
        }
        definition.metadata_mut().insert("deletionTimestamp".to_owned(), self.now_text().into());
        let mut finalizers: Vec<String> = definition.finalizers().into_iter().map(str::to_owned).collect();
        if !finalizers.iter().any(|f| f == custom::FINALIZER) {
            finalizers.push(custom::FINALIZER.to_owned());
        }
        definition.set_finalizers(finalizers);
        custom::set_condition(&mut definition, custom::TERMINATING, &self.now_text());
        Step::Mark(definition)
    }

    /// Removes the objects of a dying definition, and it once they are gone. Objects with finalizers hold it.
    pub(crate) async fn end_definition(&self, name: &str) {
        let key = self.definitions.storage_key("", name);
        let Ok(Some(stored)) = self.storage.get(&key).await else { return };
        let Ok(definition) = self.object(&self.definitions, &stored) else { return };
        if !definition.is_deleting() || !definition.finalizers().contains(&custom::FINALIZER) {
            return;
        }
        if self.remove_objects_of(&definition).await {
            self.remove_definition(&key).await;
            self.after_definition_removal(name).await;
        }
    }

    /// To be called when a definition is gone: others may have waited for its names.
    pub(crate) async fn after_definition_removal(&self, name: &str) {
        let others = self.definitions_of(group_of(name)).await;
        for other in others.iter().filter(|o| !custom::holds(o, "NamesAccepted")) {
            self.settle_definition(other.name()).await;
        }
    }

    /// True if none is left.
    async fn remove_objects_of(&self, definition: &Object) -> bool {
        let prefix =
            format!("/{}/{}/", definition.str_at("/spec/group"), definition.str_at("/spec/names/plural"));
        let now = self.now();
        let resource = now.registry.all().find(|r| makes(r, definition.name()));
        let (mut namespaces, mut left) = (BTreeSet::new(), 0);
        for stored in self.stored_under(&prefix).await {
            let removed = match resource {
                Some(resource) => {
                    let namespace = if resource.namespaced { stored.parent() } else { "" };
                    namespaces.insert(namespace.to_owned());
                    let removed =
                        remove(self, resource, namespace, stored.name(), &DeleteOptions::at_once()).await;
                    matches!(removed, Ok(Outcome::Removed(_)))
                }
                // No version is served: nobody can be asked, and nobody can see them.
                None => self.storage.delete(&stored.key, stored.revision).await.is_ok(),
            };
            left += usize::from(!removed);
        }
        for namespace in &namespaces {
            self.namespace_may_end(namespace).await;
        }
        left == 0 || self.stored_under(&prefix).await.is_empty()
    }

    async fn stored_under(&self, prefix: &str) -> Vec<Arc<Stored>> {
        let range = Range { prefix: prefix.to_owned(), ..Range::default() };
        self.storage.list(&range).await.map(|page| page.items).unwrap_or_default()
    }

    async fn remove_definition(&self, key: &str) {
        let definitions = &self.definitions;
        let ended = guaranteed_update(&*self.storage, key, None, |stored| {
            let mut definition = self.object(definitions, stored)?;
            let others = definition.finalizers().into_iter().filter(|f| *f != custom::FINALIZER);
            let others = others.map(str::to_owned).collect();
            definition.set_finalizers(others);
            let done = Condition {
                holds: false,
                reason: "InstanceDeletionCompleted",
                message: "removed all instances",
                ..custom::TERMINATING
            };
            custom::set_condition(&mut definition, done, &self.now_text());
            Ok::<_, Status>(match is_finished(definitions, &definition) {
                true => Update::Delete,
                false => Update::Write(self.document(definitions, &definition)?),
            })
        })
        .await;
        if let Err(error) = ended {
            tracing::debug!(key, ?error, "dying definition stays");
        }
    }
}

/// The group in the name of a definition.
fn group_of(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

fn makes(resource: &Resource, definition: &str) -> bool {
    resource.custom.as_ref().is_some_and(|custom| custom.definition == definition)
}
