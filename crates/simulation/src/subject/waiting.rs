//! Checks that waits for a cache end with the right result, and in time.

use super::{Subject, cache::CacheCheck};
use crate::{history::Write, log::Log, truth::Truth};
use kube_informer::{ObjectKey, ResourceVersion, SharedInformer, WaitError};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The clock has a resolution of a millisecond.
const TOLERANCE: Duration = Duration::from_millis(2);

/// A wait for a write to reach the cache.
struct Waiter {
    name: String,
    informer: SharedInformer<Value>,
    truth: Arc<Truth>,
    log: Arc<Log>,
    cache: Arc<CacheCheck>,
    write: Arc<Write>,
    within: Duration,
}

impl Subject {
    /// Waits until the cache has a write.
    pub(crate) fn await_write(&mut self, write: &Arc<Write>, within: Duration) {
        let waiter = self.waiter(write, within);
        let covered = self.covers(&write.key);
        self.reap();
        self.waits.spawn(async move { waiter.reached(covered).await });
    }

    /// Waits until an object is at least as new as a write, or deleted.
    pub(crate) fn await_condition(&mut self, write: &Arc<Write>, within: Duration) {
        let waiter = self.waiter(write, within);
        let covered = self.covers(&write.key);
        self.reap();
        self.waits.spawn(async move { waiter.condition(covered).await });
    }

    /// Checks that waiting for the newest version succeeds. Call it after convergence.
    pub(crate) async fn await_newest(&self, within: Duration) {
        let newest = ResourceVersion::from(self.truth.lock().history.version);
        for partition in self.settings.coverage.partitions() {
            let key = ObjectKey::namespaced(partition.unwrap_or("a"), "nothing");
            if let Err(error) = self.informer.reached_version(&key, &newest, within).await {
                self.log.fail(format_args!("{} after convergence: {error}", self.name));
            }
        }
    }

    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        self.settings.coverage.partitions().iter().any(|partition| crate::history::is_in(key, *partition))
    }

    fn waiter(&self, write: &Arc<Write>, within: Duration) -> Waiter {
        Waiter {
            name: self.name.clone(),
            informer: self.informer.clone(),
            truth: Arc::clone(&self.truth),
            log: Arc::clone(&self.log),
            cache: Arc::clone(&self.cache),
            write: Arc::clone(write),
            within,
        }
    }

    fn reap(&mut self) {
        while self.waits.try_join_next().is_some() {}
    }
}

impl Waiter {
    async fn reached(self, covered: bool) {
        let begin = Instant::now();
        let version = self.write.version.into();
        let result = self.informer.reached_version(&self.write.key, &version, self.within).await;
        self.log.note(format_args!("{} reached n={}: {}", self.name, self.write.n, result.is_ok()));
        match &result {
            Err(WaitError::OutOfScope { .. }) if !covered => {}
            Err(WaitError::OutOfScope { .. }) => self.fail("out of scope"),
            Ok(()) if !covered => self.fail("reached a version of a namespace out of scope"),
            Ok(()) => self.check_cache(),
            Err(error) => self.check_error(error, begin),
        }
    }

    async fn condition(self, covered: bool) {
        let begin = Instant::now();
        let version = self.write.version;
        let mut held = false;
        let result = self.informer.wait_until(&self.write.key, self.within, |object| {
            held = object.is_none_or(|object| object.resource_version().number() >= Some(version));
            held
        });
        let result = result.await;
        self.log.note(format_args!("{} wait for n={}: {}", self.name, self.write.n, result.is_ok()));
        match result {
            Err(WaitError::OutOfScope { .. }) if !covered => {}
            Err(WaitError::OutOfScope { .. }) => self.fail("out of scope"),
            Ok(()) if !covered => self.fail("a condition on an object that it does not cover"),
            Ok(()) if !held => self.fail("the condition does not hold"),
            Ok(()) => {}
            Err(error) => self.check_error(&error, begin),
        }
    }

    /// Checks that the cache has the write or a later one of the same object.
    fn check_cache(&self) {
        let truth = self.truth.lock();
        let history = &truth.history;
        // Versions of different epochs cannot be compared.
        if history.epoch() != self.write.epoch || self.cache.epoch(&self.write.key) != self.write.epoch {
            return;
        }
        let Write { key, n, epoch, version, .. } = &*self.write;
        if self.cache.may_be_stale(key, (*epoch, *version), &truth) {
            return;
        }
        let cached = self
            .informer
            .lister()
            .get(key)
            .and_then(|object| history.find(&object, self.cache.view).map(|write| write.n));
        let reached = match cached {
            Some(cached) => cached >= *n,
            None => {
                let selection = self.cache.view.selection;
                let removed = self.write.deleted || !selection.selects(&self.write);
                removed || history.was_removed_after(key, *n, selection)
            }
        };
        drop(truth);
        if !reached {
            self.fail(&format!("reached n={n} but the cache has {cached:?}"));
        }
    }

    fn check_error(&self, error: &WaitError, begin: Instant) {
        let waited = begin.elapsed();
        match error {
            WaitError::Timeout { .. } if waited + TOLERANCE < self.within => self.fail("timed out too early"),
            WaitError::Timeout { .. } if waited > self.within.saturating_add(TOLERANCE) => {
                self.fail("timed out too late")
            }
            WaitError::Failed { why, .. } => self.fail(why),
            WaitError::Stopped { .. } if !self.informer.is_stopped() => {
                self.fail("reports that the informer stopped")
            }
            _ => {}
        }
    }

    fn fail(&self, why: &str) {
        self.log.fail(format_args!("{} waiting for n={}: {why}", self.name, self.write.n));
    }
}
