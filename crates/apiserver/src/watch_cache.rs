//! The watch cache of one resource: its current state, a window of recent changes, and its watchers.
//!
//! [`list`](WatchCache::list), [`get`](WatchCache::get) and [`watch`](WatchCache::watch) read from the cache or from the store, as the
//! delegation rule decides. The store notifies the cache of every change before it responds to the write, so a cache needs no background
//! task and costs nothing while it is idle.

mod encodings;
mod error;
mod event;
mod faults;
mod filter;
mod initial;
mod list;
mod options;
mod pages;
mod readiness;
mod registration;
mod request;
mod schedule;
mod shards;
mod shared;
mod state;
mod stats;
mod stream;
mod watch;
mod watcher_index;
mod watchers;
mod window;

use std::sync::{Arc, Weak};

use kube_informer_wire::{FieldSelector, LabelSelector};

pub use crate::delegate::FeatureGates;
pub use error::ReadError;
pub use event::Bookmark;
pub use event::EventType;
pub use event::Format;
pub use event::WatchEvent;
pub use event::WatchItem;
pub use options::CacheOptions;
pub use request::ListRequest;
pub use request::ListResponse;
pub use request::Resource;
pub use request::RevisionMatch;
pub use request::RevisionOption;
pub use request::Scope;
pub use request::WatchRequest;
pub use shards::ShardSelector;
pub use shards::ShardSelectorError;
pub use stats::CacheStats;
pub use stream::WatchStream;

use self::filter::Filter;
use self::shared::Shared;
use crate::storage::{Follower, Storage, StorageError};

/// Serves the reads of one resource.
///
/// 1. A list without a resource version shows every write that completed before it. A list at a resource version shows exactly that
///    version, or that version or a newer one, as `resourceVersionMatch` says.
/// 2. List at `n` and the events of a watch from `n` up to `m`, applied to it, give the list at `m`.
/// 3. Any two watches of the same objects see the same events in the same order.
/// 4. No watch, however slow, delays a write, a read or another watch.
pub struct WatchCache {
    storage: Arc<dyn Storage>,
    shared: Arc<Shared>,
}

impl WatchCache {
    /// Starts a cache that follows the store. If `resource.cached` is false, the same methods read from the store.
    pub async fn start(
        storage: Arc<dyn Storage>,
        resource: Resource,
        options: CacheOptions,
    ) -> Result<Self, StorageError> {
        let cache = Self { storage, shared: Arc::new(Shared::new(resource, options)) };
        if cache.cached() {
            cache.initialize().await?;
        }
        Ok(cache)
    }

    /// Returns the newest revision that the cache has applied.
    pub fn revision(&self) -> u64 {
        self.shared.revision()
    }

    /// Returns the number of open watches.
    pub fn watch_count(&self) -> usize {
        self.shared.lock().watchers.len()
    }

    /// Returns the number of watches that were closed because they were read too slowly.
    pub fn terminated_count(&self) -> u64 {
        self.shared.lock().watchers.terminated
    }

    /// Ends every watch after it has yielded the changes so far. Called when the resource is no longer served.
    pub fn drain_watches(&self) {
        let wakers = self.shared.lock().watchers.drain_all();
        wakers.wake_all();
    }

    /// Reads the whole state from the store and follows it from there.
    async fn initialize(&self) -> Result<(), StorageError> {
        let follower: Arc<dyn Follower> = Arc::clone(&self.shared) as _;
        let follower: Weak<dyn Follower> = Arc::downgrade(&follower);
        self.storage.follow(&self.shared.resource.prefix, follower).await
    }

    fn cached(&self) -> bool {
        self.shared.resource.cached
    }

    fn check_ready(&self) -> Result<(), ReadError> {
        self.shared.lock().check_ready()
    }

    fn filter(&self, scope: &Scope, labels: &LabelSelector, fields: &FieldSelector) -> Filter {
        Filter::new(&self.shared.resource, scope, labels, fields)
    }
}

impl Drop for WatchCache {
    /// A dropped cache receives no more changes, so its watches end.
    fn drop(&mut self) {
        self.drain_watches();
    }
}

impl std::fmt::Debug for WatchCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WatchCache({} at {})", self.shared.resource.prefix, self.revision())
    }
}
