//! The usage of resource quotas: computed when a quota changes, and when an object that counts does.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_core::future::BoxFuture;
use kube_informer_wire::sync::lock;
use serde_json::{Value, json};

use super::metadata::Observation;
use super::{Controller, Settled};
use crate::admission::{ResourceList, usage};
use crate::registry::{Object, Resource};
use crate::schema::Quantity;
use crate::storage::{Range, StorageError, Stored, Update, UpdateError, guaranteed_update};
use crate::verbs::WriteContext;
use crate::verbs::error::VerbError;

pub(super) struct Quotas {
    context: Arc<WriteContext>,
    resource: Arc<Resource>,
    prefix: String,
    /// The resources of each quota, by storage key. Locked for one operation, never over an await.
    quotas: Mutex<BTreeMap<Arc<str>, Vec<String>>>,
}

impl Quotas {
    pub(super) fn new(context: Arc<WriteContext>) -> Self {
        let resource = Arc::clone(context.admission.quotas());
        Self { context, prefix: resource.storage_prefix(), resource, quotas: Mutex::default() }
    }

    fn quotas(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Vec<String>>> {
        lock(&self.quotas)
    }

    fn read(&self, stored: &Stored) -> Option<Vec<String>> {
        let quota = self.resource.decode(stored).ok()?;
        Some(hard(&quota).names().map(str::to_owned).collect())
    }

    /// Returns the quotas of a namespace that an object of this resource counts towards.
    fn concerned(&self, resource: &Resource, namespace: &str) -> Vec<Arc<str>> {
        let prefix = format!("{}{namespace}/", self.prefix);
        let quotas = self.quotas();
        let in_namespace = quotas
            .range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(&prefix));
        let concerned =
            in_namespace.filter(|(_, names)| names.iter().any(|name| usage::counts(resource, name)));
        concerned.map(|(key, _)| Arc::clone(key)).collect()
    }

    async fn compute(&self, key: &str) -> Result<Settled, VerbError> {
        // Objects that are being admitted are counted either here or by the request that creates them.
        let _turn = self.context.admission.quota_turn().await;
        let Some(stored) = self.context.storage.get(key).await? else { return Ok(None) };
        let quota = self.resource.decode(&stored)?;
        let used = self.used(&quota).await?;
        let name = quota.name().unwrap_or_default();
        let updated = guaranteed_update(&*self.context.storage, key, Some(stored), |stored| {
            let mut current = self.resource.decode(stored)?;
            if current.at("/spec") != quota.at("/spec") {
                // The change of the quota has queued it again.
                return Ok(Update::Unchanged);
            }
            let hard = current.at("/spec/hard").cloned().unwrap_or_else(|| json!({}));
            let status = current.section_mut("status");
            status.insert("hard".to_owned(), hard);
            status.insert("used".to_owned(), used.to_json());
            Ok::<_, VerbError>(Update::Write(self.resource.encode(&current)?))
        })
        .await;
        match updated {
            // Objects may have been deleted meanwhile, so that the write does not settle the quota.
            Ok(_) | Err(UpdateError::Storage(StorageError::NotFound)) => Ok(None),
            Err(error) => Err(VerbError::update(&self.resource, name, error)),
        }
    }

    /// Returns what the objects of the namespace use of each resource that can be counted.
    async fn used(&self, quota: &Object) -> Result<ResourceList, VerbError> {
        let hard = hard(quota);
        let mut used = ResourceList::default();
        for resource in self.counted(&hard) {
            for name in hard.names().filter(|name| usage::counts(&resource, name)) {
                used.add(&ResourceList::from([(name, Quantity::count(0))]));
            }
            let namespace = quota.namespace().unwrap_or_default();
            let range =
                Range { prefix: format!("{}{namespace}/", resource.storage_prefix()), ..Range::default() };
            let items = self.context.storage.list(&range).await?.items;
            if usage::is_plain_count(&resource) && !has_scopes(quota) {
                let mut count = ResourceList::default();
                for name in hard.names().filter(|name| usage::counts(&resource, name)) {
                    count.set(name, Quantity::count(items.len()));
                }
                used.add(&count);
                continue;
            }
            for stored in items {
                tokio::task::consume_budget().await;
                let object = resource.decode(&stored)?;
                if usage::in_scope(&resource, &object, quota) {
                    let mut own = usage::of(&resource, &object);
                    own.retain(|name, _| hard.contains(name));
                    used.add(&own);
                }
            }
        }
        Ok(used)
    }

    /// Returns the resources whose objects count, each in one version.
    fn counted(&self, hard: &ResourceList) -> Vec<Arc<Resource>> {
        let snapshot = self.context.resources.snapshot();
        let mut by_prefix = BTreeMap::new();
        for resource in snapshot.registry.all().filter(|resource| resource.owns_store()) {
            if hard.names().any(|name| usage::counts(resource, name)) {
                by_prefix.entry(resource.storage_prefix()).or_insert_with(|| Arc::clone(resource));
            }
        }
        by_prefix.into_values().collect()
    }
}

fn hard(quota: &Object) -> ResourceList {
    ResourceList::read(quota.at("/spec/hard").unwrap_or(&Value::Null))
}

fn has_scopes(quota: &Object) -> bool {
    let not_empty =
        |pointer: &str| quota.at(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    not_empty("/spec/scopes") || not_empty("/spec/scopeSelector/matchExpressions")
}

impl Controller for Quotas {
    fn reset(&self, items: &[Arc<Stored>]) -> Vec<Arc<str>> {
        let quotas = items.iter().filter(|stored| stored.key.starts_with(&self.prefix));
        let read = quotas.filter_map(|stored| Some((Arc::clone(&stored.key), self.read(stored)?))).collect();
        let mut known = self.quotas();
        *known = read;
        known.keys().map(Arc::clone).collect()
    }

    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>> {
        let key = change.key();
        if key.starts_with(&self.prefix) {
            let current = change.current().and_then(|stored| self.read(stored));
            let mut quotas = self.quotas();
            let exists = current.is_some();
            match current {
                Some(names) => quotas.insert(Arc::clone(key), names),
                None => quotas.remove(key),
            };
            drop(quotas);
            let mut keys = if exists { vec![Arc::clone(key)] } else { Vec::new() };
            // Quotas count themselves.
            let namespace = key.rsplit('/').nth(1).unwrap_or_default();
            keys.extend(self.concerned(&self.resource, namespace).into_iter().filter(|other| other != key));
            return keys;
        }
        if self.quotas().is_empty() {
            return Vec::new();
        }
        match self.context.resources.snapshot().locate(key) {
            Some((resource, Some(namespace), _)) => self.concerned(&resource, namespace),
            _ => Vec::new(),
        }
    }

    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>> {
        Box::pin(self.compute(key))
    }
}
