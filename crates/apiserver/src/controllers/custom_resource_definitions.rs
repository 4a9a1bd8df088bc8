//! The CRD controller: accepts names, establishes CRDs, and removes a deleted CRD after its last object.
//!
//! A CRD is established before the response to its create is sent.

use kube_informer_wire::sync::lock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_core::future::BoxFuture;

use super::edit::{drop_finalizer, edit};
use super::metadata::{Metadata, Observation};
use super::{Controller, Settled};
use crate::caches::Caches;
use crate::custom::{self, AcceptedNames, Condition, Names};
use crate::managed::{Managers, Writer};
use crate::registry::{Object, Resource, Subresource};
use crate::storage::{Range, StorageError, Stored, Update, UpdateError, guaranteed_update};
use crate::verbs::WriteContext;
use crate::verbs::delete::{DeleteOptions, remove};
use crate::verbs::error::VerbError;
use crate::work::Work;

pub(super) struct CustomResourceDefinitions {
    context: Arc<WriteContext>,
    caches: Arc<Caches>,
    definitions: Arc<Resource>,
    prefix: String,
    /// Keys of CRDs that are being deleted. Locked for one operation, never over an await.
    terminating: Mutex<BTreeSet<Arc<str>>>,
    /// The names in use. Locked for one operation, never over an await.
    names: Mutex<AcceptedNames>,
}

impl CustomResourceDefinitions {
    pub(super) fn new(context: Arc<WriteContext>, caches: Arc<Caches>, definitions: Arc<Resource>) -> Self {
        let prefix = definitions.storage_prefix();
        Self { context, caches, definitions, prefix, terminating: Mutex::default(), names: Mutex::default() }
    }

    fn terminating(&self) -> MutexGuard<'_, BTreeSet<Arc<str>>> {
        lock(&self.terminating)
    }

    fn names(&self) -> MutexGuard<'_, AcceptedNames> {
        lock(&self.names)
    }

    async fn reconcile_crd(&self, key: &str) -> Result<Settled, VerbError> {
        let name = key.strip_prefix(&self.prefix).unwrap_or_default();
        let Some(stored) = self.context.storage.get(key).await? else {
            self.offer_names(name).await?;
            return Ok(None);
        };
        let settled = self.accept(name).await?;
        if Metadata::read(&stored).is_some_and(|m| m.is_deleting() && m.has(custom::FINALIZER)) {
            self.terminate(key, &self.definitions.decode(&stored)?).await?;
            return Ok(None);
        }
        Ok(settled)
    }

    /// Accepts the free names of a CRD, and establishes it once all are accepted.
    async fn accept(&self, name: &str) -> Result<Settled, VerbError> {
        self.write_status(name, |object| self.accept_names(object)).await?;
        let settled = self
            .write_status(name, |object| {
                if custom::holds(object, "NamesAccepted") {
                    custom::set_condition(object, custom::ESTABLISHED, &self.context.clock.timestamp());
                }
            })
            .await?;
        if let Some(resource) = self.context.resources.of_definition(name) {
            // A started cache lets a watch begin at any later version. Without one the first read starts it.
            let _ = self.caches.of(&resource).await;
        }
        Ok(settled)
    }

    fn accept_names(&self, object: &mut Object) {
        let names = |object: &Object, pointer: &str| -> Names {
            let names = object.at(pointer).cloned().unwrap_or_default();
            serde_json::from_value(names).unwrap_or_default()
        };
        let requested = names(object, "/spec/names");
        let previous = names(object, "/status/acceptedNames");
        let accepted = self.names().accept(object.name().unwrap_or_default(), &requested, &previous);
        let now = self.context.clock.timestamp();
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

    /// Changes the status of a CRD as kube-apiserver's own controllers do. Returns the revision it then has, or `None` if it does
    /// not exist.
    async fn write_status(
        &self,
        name: &str,
        mut change: impl FnMut(&mut Object),
    ) -> Result<Settled, VerbError> {
        let definitions = &self.definitions;
        let writer = Writer {
            manager: "kube-apiserver".to_owned(),
            subresource: Some(Subresource::Status),
            now: self.context.clock.timestamp(),
        };
        let key = definitions.storage_key(None, name);
        let written = guaranteed_update(&*self.context.storage, &key, None, |stored| {
            let old = definitions.decode(stored)?;
            let mut new = old.clone();
            change(&mut new);
            let managers = Managers::read(&old);
            managers.updated(definitions, &writer, Some(&old), &new, &Work::default())?.write(&mut new);
            Ok::<_, VerbError>(Update::Write(definitions.encode(&new)?))
        })
        .await;
        match written {
            Ok(updated) => Ok(Some(updated.stored().revision)),
            Err(UpdateError::Storage(StorageError::NotFound)) => Ok(None),
            Err(error) => Err(VerbError::update(definitions, name, error)),
        }
    }

    /// Accepts the released names of a removed CRD for other CRDs of its group that request them.
    async fn offer_names(&self, name: &str) -> Result<(), VerbError> {
        let others = self.names().rejected_beside(name);
        for other in others {
            self.accept(&other).await?;
        }
        Ok(())
    }

    /// Deletes the objects of a CRD, and the CRD once they are gone. Objects with finalizers hold it.
    async fn terminate(&self, key: &str, definition: &Object) -> Result<(), VerbError> {
        if !self.remove_objects(definition).await? {
            return Ok(());
        }
        let done = Condition {
            holds: false,
            reason: "InstanceDeletionCompleted",
            message: "removed all instances",
            ..custom::TERMINATING
        };
        let release = |definition: &mut Object| {
            drop_finalizer(definition, custom::FINALIZER);
            custom::set_condition(definition, done, &self.context.clock.timestamp());
        };
        edit(&self.context, key, None, release).await
    }

    /// Deletes the objects of a CRD. Returns whether none is left.
    async fn remove_objects(&self, definition: &Object) -> Result<bool, VerbError> {
        let prefix =
            format!("/{}/{}/", definition.str_at("/spec/group"), definition.str_at("/spec/names/plural"));
        let resource = definition.name().and_then(|name| self.context.resources.of_definition(name));
        let mut result = Ok(());
        for stored in self.stored_under(&prefix).await? {
            tokio::task::consume_budget().await;
            let removed = match &resource {
                Some(resource) => {
                    let namespace = resource.namespaced.then(|| stored.parent());
                    let options = DeleteOptions::at_once();
                    remove(&self.context, resource, namespace, stored.name(), &options).await.map(drop)
                }
                // No version is served: no client can see the objects, and no rules apply to them.
                None => self
                    .context
                    .storage
                    .delete(&stored.key, stored.revision)
                    .await
                    .map(drop)
                    .map_err(Into::into),
            };
            match removed {
                Err(error) if !error.is_not_found() => result = result.and(Err(error)),
                _ => {}
            }
        }
        result?;
        Ok(self.stored_under(&prefix).await?.is_empty())
    }

    async fn stored_under(&self, prefix: &str) -> Result<Vec<Arc<Stored>>, StorageError> {
        let range = Range { prefix: prefix.to_owned(), ..Range::default() };
        Ok(self.context.storage.list(&range).await?.items)
    }

    /// The key of the CRD of a custom object, if it is being deleted.
    fn terminating_definition(&self, object: &str) -> Option<Arc<str>> {
        let terminating = self.terminating();
        if terminating.is_empty() {
            return None;
        }
        let (group, rest) = object.strip_prefix('/')?.split_once('/')?;
        let (plural, _) = rest.split_once('/')?;
        terminating.get(&*format!("{}{plural}.{group}", self.prefix)).cloned()
    }
}

impl Controller for CustomResourceDefinitions {
    fn reset(&self, items: &[Arc<Stored>]) -> Vec<Arc<str>> {
        let definitions: Vec<&Arc<Stored>> =
            items.iter().filter(|stored| stored.key.starts_with(&self.prefix)).collect();
        let deleting = |stored: &&&Arc<Stored>| Metadata::read(stored).is_some_and(|d| d.is_deleting());
        *self.terminating() =
            definitions.iter().filter(deleting).map(|stored| Arc::clone(&stored.key)).collect();
        let mut names = self.names();
        names.clear();
        for stored in &definitions {
            names.update(stored.name(), Some(&stored.json(&self.definitions.head)));
        }
        definitions.into_iter().map(|stored| Arc::clone(&stored.key)).collect()
    }

    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>> {
        let key = change.key();
        if let Some(name) = key.strip_prefix(&*self.prefix) {
            let json = change.current().map(|stored| stored.json(&self.definitions.head));
            self.names().update(name, json.as_deref());
            if change.metadata().is_some_and(Metadata::is_deleting) {
                self.terminating().insert(Arc::clone(key));
            } else {
                self.terminating().remove(key);
            }
            return vec![Arc::clone(key)];
        }
        if change.is_removal() { Vec::from_iter(self.terminating_definition(key)) } else { Vec::new() }
    }

    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>> {
        Box::pin(self.reconcile_crd(key))
    }
}

#[cfg(test)]
mod tests;
