//! The keys that are being reconciled.

use kube_informer::ObjectKey;
use kube_informer_wire::sync::lock;
use std::{collections::BTreeMap, sync::Mutex, time::Duration};
use tokio::time::Instant;

/// The keys that are being reconciled, with the time at which each began: for reports, and to find a reconcile that
/// blocks its thread, which no deadline ends.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<BTreeMap<ObjectKey, Instant>>);

impl InFlight {
    /// Adds a key until the guard is dropped.
    pub(crate) fn enter(&self, key: &ObjectKey) -> Flight<'_> {
        lock(&self.0).insert(key.clone(), Instant::now());
        Flight { table: self, key: key.clone() }
    }

    /// The key that began first, and how long ago that is.
    pub(crate) fn longest(&self) -> Option<(ObjectKey, Duration)> {
        let keys = lock(&self.0);
        let (key, since) = keys.iter().min_by_key(|(_, since)| **since)?;
        Some((key.clone(), since.elapsed()))
    }

    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        lock(&self.0).keys().cloned().collect()
    }
}

/// A key that is being reconciled.
#[must_use = "dropping it removes the key"]
pub(crate) struct Flight<'a> {
    table: &'a InFlight,
    key: ObjectKey,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        lock(&self.table.0).remove(&self.key);
    }
}
