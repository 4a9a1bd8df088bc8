//! Pods that are being deleted: there is no kubelet to stop them, so their grace period ends at once.

use std::sync::Arc;

use futures_core::future::BoxFuture;

use super::edit::delete;
use super::metadata::{Metadata, Observation};
use super::{Controller, Settled};
use crate::registry::Resource;
use crate::storage::Stored;
use crate::verbs::WriteContext;
use crate::verbs::delete::DeleteOptions;
use crate::verbs::error::VerbError;

pub(super) struct Pods {
    context: Arc<WriteContext>,
    prefix: String,
}

impl Pods {
    pub(super) fn new(context: Arc<WriteContext>, pods: &Resource) -> Self {
        Self { context, prefix: pods.storage_prefix() }
    }

    /// Removes a pod that only its grace period holds.
    async fn finalize(&self, key: &str) -> Result<(), VerbError> {
        let stored = self.context.storage.get(key).await?;
        match stored.as_deref().and_then(Metadata::read) {
            Some(pod) if pod.is_stopping() => {
                delete(&self.context, key, &DeleteOptions::at_once().only(&pod.uid)).await
            }
            _ => Ok(()),
        }
    }
}

impl Controller for Pods {
    fn reset(&self, items: &[Arc<Stored>]) -> Vec<Arc<str>> {
        let pods = items.iter().filter(|stored| stored.key.starts_with(&self.prefix));
        let stopping = |stored: &&Arc<Stored>| Metadata::read(stored).is_some_and(|pod| pod.is_stopping());
        pods.filter(stopping).map(|stored| Arc::clone(&stored.key)).collect()
    }

    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>> {
        let is_pod = change.key().starts_with(&self.prefix);
        if is_pod && change.metadata().is_some_and(Metadata::is_stopping) {
            return vec![Arc::clone(change.key())];
        }
        Vec::new()
    }

    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>> {
        Box::pin(async move { self.finalize(key).await.map(|()| None) })
    }
}
