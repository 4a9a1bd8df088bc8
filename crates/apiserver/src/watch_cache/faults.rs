//! What goes wrong on real servers, on demand.

use super::WatchCache;
use super::state::Wake;
use crate::storage::StorageError;

impl WatchCache {
    /// Fills the cache anew: its past is forgotten and every watch ends, as after a broken connection to the store.
    /// Without a cache only the watches end.
    pub async fn forget_window(&self) -> Result<(), StorageError> {
        if self.cached() {
            return self.fill().await;
        }
        self.cut_watches();
        Ok(())
    }

    /// Ends every watch, without an error in its stream.
    pub fn cut_watches(&self) {
        let wake: Wake = self.shared.lock().watchers.close_all();
        wake.all();
    }

    /// Holds every stream still, or lets all go on. Streams opened meanwhile are held too.
    pub fn stall_watches(&self, stalled: bool) {
        self.shared.stall(stalled);
    }

    /// Stops the cache from following the store, as a replica that is behind; or lets it catch up. What was held back while it lagged is
    /// at most as much as the window has room for: a cache that lags further is filled anew.
    pub async fn lag(&self, lagging: bool) -> Result<(), StorageError> {
        if lagging {
            self.shared.hold_back();
        } else if !self.shared.let_go() {
            self.fill().await?;
        }
        Ok(())
    }

    /// Makes the cache say that it is being filled, and end its watches, until [`WatchCache::forget_window`] fills it.
    /// A resource without a cache goes on.
    pub fn make_unready(&self, cause: &str) {
        let wake: Wake = self.shared.lock().lost(cause);
        wake.all();
    }

    /// Whether the cache can answer.
    pub fn is_ready(&self) -> bool {
        self.shared.lock().readiness.is_ready()
    }
}
