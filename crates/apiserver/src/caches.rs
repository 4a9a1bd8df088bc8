//! The watch caches of the served resources.

use std::collections::HashSet;
use std::sync::Arc;

use crate::delegate::FeatureGates;
use crate::registry::Resource;
use crate::serving::ServedResources;
use crate::storage::{Storage, StorageError};
use crate::watch_cache::{CacheOptions, CacheStats, WatchCache};

/// The cache of a resource cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("the resource is no longer served")]
    NotServed,
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Starts the caches of served resources and gives access to them.
pub(crate) struct Caches {
    resources: Arc<ServedResources>,
    storage: Arc<dyn Storage>,
    options: CacheOptions,
}

impl Caches {
    pub(crate) fn new(
        resources: Arc<ServedResources>,
        storage: Arc<dyn Storage>,
        options: CacheOptions,
    ) -> Self {
        Self { resources, storage, options }
    }

    /// The feature gates.
    pub(crate) fn gates(&self) -> FeatureGates {
        self.options.gates
    }

    /// Starts the caches of all resources that are served now, so that a watch may begin at any later version.
    pub(crate) async fn start(&self) -> Result<(), StorageError> {
        for cache in self.resources.snapshot().caches(None) {
            cache.started(&self.storage, &self.options).await?;
        }
        Ok(())
    }

    /// The cache of a resource, started if it was not. A resource that is no longer served has none.
    pub(crate) async fn of(&self, resource: &Resource) -> Result<Arc<WatchCache>, CacheError> {
        let snapshot = self.resources.snapshot();
        let cache = snapshot.cache(resource).ok_or(CacheError::NotServed)?;
        Ok(cache.started(&self.storage, &self.options).await?)
    }

    /// The started caches of the resources with a plural name, or of all resources.
    pub(crate) fn started(&self, plural: Option<&str>) -> Vec<Arc<WatchCache>> {
        self.resources.snapshot().caches(plural).filter_map(|cache| cache.if_started().cloned()).collect()
    }

    /// Whether the caches of all built-in resources can serve reads. Those of custom resources start when they are used.
    pub(crate) fn are_ready(&self) -> bool {
        let snapshot = self.resources.snapshot();
        let built_in = snapshot.registry.all().filter(|r| r.custom.is_none() && r.is_stored());
        built_in.filter_map(|r| snapshot.cache(r)).all(|cache| cache.is_ready())
    }

    /// The numbers of every started cache once, under the first resource that uses it.
    pub(crate) fn stats(&self) -> Vec<(Arc<Resource>, CacheStats)> {
        let mut seen = HashSet::new();
        let snapshot = self.resources.snapshot();
        let once = snapshot.registry.all().filter(|r| seen.insert(r.storage_prefix()));
        once.filter_map(|r| Some((Arc::clone(r), snapshot.cache(r)?.if_started()?.stats()))).collect()
    }
}
