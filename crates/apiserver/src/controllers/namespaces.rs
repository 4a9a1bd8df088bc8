//! Namespaces that are being deleted: they are emptied, and removed once they are empty.

use kube_informer_wire::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_core::future::BoxFuture;

use super::edit::edit;
use super::metadata::{Metadata, Observation};
use super::{Controller, Settled};
use crate::registry::Resource;
use crate::storage::{Range, StorageError, Stored};
use crate::verbs::WriteContext;
use crate::verbs::delete::{DeleteOptions, remove};
use crate::verbs::error::VerbError;

pub(super) struct Namespaces {
    context: Arc<WriteContext>,
    prefix: String,
    /// Namespaces that are being deleted, by name. Locked for one operation, never over an await.
    terminating: Mutex<BTreeMap<String, Progress>>,
}

/// Progress of the termination of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Marked,
    /// All objects in it were deleted. Those with finalizers may still exist.
    Emptied,
}

impl Namespaces {
    pub(super) fn new(context: Arc<WriteContext>, namespaces: Arc<Resource>) -> Self {
        Self { context, prefix: namespaces.storage_prefix(), terminating: Mutex::default() }
    }

    fn terminating(&self) -> MutexGuard<'_, BTreeMap<String, Progress>> {
        lock(&self.terminating)
    }

    async fn terminate(&self, key: &str) -> Result<(), VerbError> {
        let name = key.strip_prefix(&self.prefix).unwrap_or_default();
        let Some(progress) = self.terminating().get(name).copied() else { return Ok(()) };
        if progress == Progress::Marked {
            self.delete_content(name).await?;
            if let Some(progress) = self.terminating().get_mut(name) {
                *progress = Progress::Emptied;
            }
        }
        if self.is_empty(name).await? {
            let release = |namespace: &mut crate::registry::Object| {
                namespace.section_mut("spec").remove("finalizers");
            };
            edit(&self.context, key, None, release).await?;
        }
        Ok(())
    }

    /// Deletes every object of a namespace, pods without a grace period.
    ///
    /// An object that cannot be deleted does not keep the others: the first error is returned after all were tried.
    async fn delete_content(&self, namespace: &str) -> Result<(), VerbError> {
        let options = DeleteOptions::at_once();
        let mut result = Ok(());
        for resource in self.resources() {
            for name in self.names(&resource, namespace).await? {
                tokio::task::consume_budget().await;
                match remove(&self.context, &resource, Some(namespace), &name, &options).await {
                    Err(error) if !error.is_not_found() => result = result.and(Err(error)),
                    _ => {}
                }
            }
        }
        result
    }

    async fn is_empty(&self, namespace: &str) -> Result<bool, StorageError> {
        for resource in self.resources() {
            if !self.names(&resource, namespace).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn resources(&self) -> Vec<Arc<Resource>> {
        let snapshot = self.context.resources.snapshot();
        snapshot.registry.all().filter(|r| r.namespaced && r.is_stored()).cloned().collect()
    }

    async fn names(&self, resource: &Resource, namespace: &str) -> Result<Vec<String>, StorageError> {
        let range =
            Range { prefix: format!("{}{namespace}/", resource.storage_prefix()), ..Range::default() };
        let page = self.context.storage.list(&range).await?;
        Ok(page.items.iter().map(|item| item.name().to_owned()).collect())
    }
}

impl Controller for Namespaces {
    fn reset(&self, items: &[Arc<Stored>]) -> Vec<Arc<str>> {
        let namespaces = items.iter().filter(|stored| stored.key.starts_with(&self.prefix));
        let deleting = |stored: &&Arc<Stored>| Metadata::read(stored).is_some_and(|ns| ns.is_deleting());
        let marked: Vec<&Arc<Stored>> = namespaces.filter(deleting).collect();
        *self.terminating() =
            marked.iter().map(|stored| (stored.name().to_owned(), Progress::Marked)).collect();
        marked.into_iter().map(|stored| Arc::clone(&stored.key)).collect()
    }

    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>> {
        let key = change.key();
        if let Some(name) = key.strip_prefix(&*self.prefix) {
            let mut terminating = self.terminating();
            if !change.metadata().is_some_and(Metadata::is_deleting) {
                terminating.remove(name);
            } else if !terminating.contains_key(name) {
                terminating.insert(name.to_owned(), Progress::Marked);
                return vec![Arc::clone(key)];
            }
            return Vec::new();
        }
        if !change.is_removal() {
            return Vec::new();
        }
        // The last object of a namespace may be gone.
        let namespace = key.rsplit('/').nth(1).unwrap_or_default();
        let emptied = self.terminating().get(namespace) == Some(&Progress::Emptied);
        if emptied { vec![format!("{}{namespace}", self.prefix).into()] } else { Vec::new() }
    }

    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>> {
        Box::pin(async move { self.terminate(key).await.map(|()| None) })
    }
}
