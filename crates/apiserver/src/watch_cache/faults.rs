//! Fault injection into one watch cache.

use super::WatchCache;
use crate::storage::StorageError;

impl WatchCache {
    /// Reinitializes the cache from the store: the window is empty and every watch ends, as after a broken connection to the store.
    /// For a resource without a cache, only ends the watches.
    pub async fn forget_window(&self) -> Result<(), StorageError> {
        if self.cached() {
            return self.initialize().await;
        }
        self.cut_watches();
        Ok(())
    }

    /// Ends every watch at once, without an error in its stream.
    pub fn cut_watches(&self) {
        let wakers = self.shared.lock().watchers.close_all();
        wakers.wake_all();
    }

    /// Pauses or resumes all watch streams, including those opened while paused.
    pub fn stall_watches(&self, stalled: bool) {
        self.shared.stall(stalled);
    }

    /// Makes the cache lag behind the store, like a replica with a slow connection, or catch up with it. A lagging cache buffers at most
    /// as many changes as the window has room for; after more changes, it reinitializes instead of catching up.
    pub async fn lag(&self, lagging: bool) -> Result<(), StorageError> {
        if lagging {
            self.shared.start_lagging();
        } else if !self.shared.catch_up() {
            self.initialize().await?;
        }
        Ok(())
    }

    /// Makes the cache report that it is not initialized, and ends its watches, until [`WatchCache::forget_window`] reinitializes it.
    /// Does not affect reads of a resource without a cache.
    pub fn make_unready(&self, cause: &str) {
        let wakers = self.shared.lock().lost(cause);
        wakers.wake_all();
    }

    /// Returns whether the cache is initialized.
    pub fn is_ready(&self) -> bool {
        self.shared.lock().readiness.is_ready()
    }
}
