//! What a cache tells those who look after the server.

use super::WatchCache;

/// Numbers of one cache at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStats {
    /// Objects in it.
    pub objects: usize,
    /// The newest revision it shows.
    pub revision: u64,
    /// Changes it was told of since the start.
    pub received: u64,
    /// How often it was filled.
    pub fills: u64,
    /// Open watches.
    pub watches: usize,
    /// Watches closed because they were read too slowly, since the start.
    pub overtaken: u64,
    /// Changes its window has room for.
    pub capacity: usize,
}

impl WatchCache {
    /// Numbers to look at.
    pub fn stats(&self) -> CacheStats {
        let (state, revision) = self.shared.lock_at();
        CacheStats {
            objects: state.tree.len(),
            revision,
            received: state.received,
            fills: state.resets,
            watches: state.watchers.len(),
            overtaken: state.watchers.overtaken,
            capacity: state.window.capacity(),
        }
    }
}
