//! Uids and generated names, the same for the same seed.

use kube_informer_wire::sync::lock;
use std::sync::{Mutex, MutexGuard};

use crate::registry::generate_name;

/// A seeded source of uids and generated names.
pub(crate) struct Ids {
    /// Locked for one draw at a time.
    rng: Mutex<fastrand::Rng>,
}

impl Ids {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: Mutex::new(fastrand::Rng::with_seed(seed)) }
    }

    pub(crate) fn uid(&self) -> String {
        let mut bytes = [0; 16];
        self.lock().fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// A name that starts with `prefix`, for `generateName`.
    pub(crate) fn name(&self, prefix: &str) -> String {
        generate_name(prefix, &mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, fastrand::Rng> {
        lock(&self.rng)
    }
}
