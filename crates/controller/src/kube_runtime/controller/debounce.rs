//! Waits a moment after a change.

use kube_informer::ObjectKey;
use kube_informer_wire::sync::lock;
use std::{collections::HashMap, sync::Mutex, time::Duration};
use tokio::time::Instant;

/// Delays reconciles, so that changes in quick succession are one reconcile.
#[derive(Debug)]
pub(super) struct Debounce {
    period: Duration,
    /// When the keys that were delayed are reconciled.
    due: Mutex<HashMap<ObjectKey, Instant>>,
}

impl Debounce {
    pub(super) fn new(period: Duration) -> Self {
        Self { period, due: Mutex::default() }
    }

    /// How long the reconcile of a key has to wait; `None` if it is due.
    pub(super) fn delay(&self, key: &ObjectKey) -> Option<Duration> {
        if self.period.is_zero() {
            return None;
        }
        let (mut due, now) = (lock(&self.due), Instant::now());
        let Some(at) = due.get(key).copied() else {
            due.insert(key.clone(), now.checked_add(self.period)?);
            return Some(self.period);
        };
        let rest = at.saturating_duration_since(now);
        if rest.is_zero() {
            due.remove(key);
            return None;
        }
        Some(rest)
    }

    /// Forgets a key that does not exist any more.
    pub(super) fn forget(&self, key: &ObjectKey) {
        lock(&self.due).remove(key);
    }
}
