//! Options of a watch cache, with the defaults of Kubernetes.

use std::time::Duration;

use super::window::WindowSize;
use crate::delegate::FeatureGates;

/// Options of a watch cache. The defaults are those of kube-apiserver 1.36.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CacheOptions {
    /// Decides which lists the cache serves.
    pub gates: FeatureGates,
    /// The smallest capacity of the window, in changes.
    pub window_min: usize,
    /// The largest capacity of the window, in changes. Bounds memory, and how far a slow watcher may fall behind.
    pub window_max: usize,
    /// How long a read waits for the cache to reach its resource version.
    pub wait: Duration,
    /// The time between two bookmarks of a watch.
    pub bookmark_period: Duration,
    /// The time between the last bookmark of a watch and its timeout.
    pub bookmark_before_end: Duration,
    /// Seed for the durations of watches without a timeout. Each resource draws its own sequence from it.
    pub seed: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            gates: FeatureGates::default(),
            window_min: 100,
            window_max: 102_400,
            wait: Duration::from_secs(3),
            bookmark_period: Duration::from_secs(60),
            bookmark_before_end: Duration::from_secs(2),
            seed: 0,
        }
    }
}

impl CacheOptions {
    /// Returns a generator seeded for one resource, so that the watches of all resources do not end at the same time.
    pub(super) fn rng(&self, prefix: &str) -> fastrand::Rng {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        fastrand::Rng::with_seed(prefix.bytes().fold(self.seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    pub(super) fn window(&self) -> WindowSize {
        let period = self.bookmark_period + Duration::from_secs(15);
        WindowSize { min: self.window_min.max(1), max: self.window_max.max(self.window_min).max(1), period }
    }
}
