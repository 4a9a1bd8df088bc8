//! Statistics of a cache, for metrics.

use super::WatchCache;

/// Statistics of one cache. Counters count from its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// The number of objects.
    pub objects: usize,
    /// The newest revision it has applied.
    pub revision: u64,
    /// Changes received from the store.
    pub received: u64,
    /// Initializations from the store.
    pub initializations: u64,
    /// Open watches.
    pub watches: usize,
    /// Watches closed because they were read too slowly.
    pub terminated: u64,
    /// The capacity of the window, in changes.
    pub capacity: usize,
}

impl WatchCache {
    /// Returns the statistics of the cache.
    pub fn stats(&self) -> CacheStats {
        let (state, revision) = self.shared.lock_at();
        CacheStats {
            objects: state.tree.len(),
            revision,
            received: state.received,
            initializations: state.resets,
            watches: state.watchers.len(),
            terminated: state.watchers.terminated,
            capacity: state.window.capacity(),
        }
    }
}
