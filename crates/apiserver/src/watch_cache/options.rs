//! Numbers of the cache, with the values Kubernetes uses.

use std::time::Duration;

use super::window::WindowSize;
use crate::delegate::Gates;

/// How a watch cache behaves. The default is what kube-apiserver 1.36 does.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Which lists the cache answers.
    pub gates: Gates,
    /// The fewest changes the window has room for.
    pub window_min: usize,
    /// The most changes the window has room for. It bounds memory, and how far a slow watcher may fall behind.
    pub window_max: usize,
    /// How long a read waits for a version that is not there yet.
    pub wait: Duration,
    /// How often a watch gets a bookmark.
    pub bookmark_period: Duration,
    /// A watch shorter than an hour gets its last bookmark so long before its end.
    pub bookmark_before_end: Duration,
    /// Seed of the lengths of watches without a timeout; each resource draws its own sequence from it.
    pub seed: u64,
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self {
            gates: Gates::default(),
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
    /// A sequence of its own for each resource: their watches should not all end at the same moments.
    pub(super) fn rng(&self, prefix: &str) -> fastrand::Rng {
        let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        fastrand::Rng::with_seed(prefix.bytes().fold(self.seed ^ 0xcbf2_9ce4_8422_2325, mix))
    }

    pub(super) fn window(&self) -> WindowSize {
        let period = self.bookmark_period + Duration::from_secs(15);
        WindowSize { min: self.window_min.max(1), max: self.window_max.max(self.window_min).max(1), period }
    }
}
