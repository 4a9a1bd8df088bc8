//! The watch cache of one resource: its current state, a window of recent changes, and everybody who watches.
//!
//! A read comes in through [`list`](WatchCache::list), [`get`](WatchCache::get) or [`watch`](WatchCache::watch); the delegation rule says
//! whether the cache answers or the store. The store tells the cache of every change before the write is answered, so nothing runs in
//! the background and a cache costs nothing while nobody writes or reads.

mod error;
mod event;
mod faults;
mod filter;
mod initial;
mod interest;
mod list;
mod options;
mod pages;
mod readiness;
mod request;
mod schedule;
mod seat;
mod shared;
mod state;
mod stats;
mod stream;
mod watch;
mod watchers;
mod window;

use std::sync::{Arc, Weak};

use kube_informer_wire::{FieldSelector, LabelSelector};

pub use error::ReadError;
pub use event::Bookmark;
pub use event::EventType;
pub use event::Format;
pub use event::WatchEvent;
pub use event::WatchItem;
pub use options::CacheOptions;
pub use request::ListAnswer;
pub use request::ListRequest;
pub use request::Resource;
pub use request::RevisionMatch;
pub use request::RevisionOption;
pub use request::Scope;
pub use request::WatchRequest;
pub use stats::CacheStats;
pub use stream::WatchStream;

use self::filter::Filter;
use self::shared::Shared;
use crate::storage::{Follower, Storage, StorageError};

/// Reads of one resource.
///
/// 1. A list without a version shows every write that was answered before it; a list at a version shows exactly that version, or at least
///    that version, as the options say.
/// 2. List at `n` and the events of a watch from `n` up to `m`, applied to it, give the list at `m`.
/// 3. Any two watches of the same objects see the same events in the same order.
/// 4. No watch, however slow, delays a write, a read or another watch.
pub struct WatchCache {
    storage: Arc<dyn Storage>,
    shared: Arc<Shared>,
}

impl WatchCache {
    /// A cache that follows the store. A resource without a cache is read from the store, through the same methods.
    pub async fn start(
        storage: Arc<dyn Storage>,
        resource: Resource,
        options: CacheOptions,
    ) -> Result<Self, StorageError> {
        let cache = Self { storage, shared: Arc::new(Shared::new(resource, options)) };
        if cache.cached() {
            cache.fill().await?;
        }
        Ok(cache)
    }

    /// The newest revision the cache is known to show.
    pub fn revision(&self) -> u64 {
        self.shared.revision()
    }

    /// How many watches are open.
    pub fn watch_count(&self) -> usize {
        self.shared.lock().watchers.len()
    }

    /// How many watches were closed because they were read too slowly.
    pub fn overtaken_count(&self) -> u64 {
        self.shared.lock().watchers.overtaken
    }

    /// Ends every watch when it has shown what happened so far: the resource is no longer served.
    pub fn end_watches(&self) {
        let wake = self.shared.lock().watchers.drain_all();
        wake.all();
    }

    async fn fill(&self) -> Result<(), StorageError> {
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
    /// A cache that is gone follows nothing, so its watches end.
    fn drop(&mut self) {
        self.end_watches();
    }
}

impl std::fmt::Debug for WatchCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WatchCache({} at {})", self.shared.resource.prefix, self.revision())
    }
}
