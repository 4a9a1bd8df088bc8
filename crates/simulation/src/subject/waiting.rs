//! Those who wait for a cache: they are never lied to and never wait too long.

use super::{Subject, cache::CacheCheck};
use crate::{history::Written, log::Log, truth::Truth};
use kube_informer::{ObjectKey, ResourceVersion, SharedInformer, WaitError};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// The clock has a resolution of a millisecond.
const TOLERANCE: Duration = Duration::from_millis(2);

/// Somebody who waits.
struct Waiter {
    name: String,
    informer: SharedInformer<Value>,
    truth: Arc<Truth>,
    log: Arc<Log>,
    cache: Arc<CacheCheck>,
    write: Arc<Written>,
    within: Duration,
}

impl Subject {
    /// Somebody waits until the cache shows a write.
    pub(crate) fn await_write(&mut self, write: &Arc<Written>, within: Duration) {
        let waiter = self.waiter(write, within);
        let covered = self.covers(&write.key);
        self.reap();
        self.waits.spawn(async move { waiter.reached(covered).await });
    }

    /// Somebody waits until an object is at least as new as a write, or gone.
    pub(crate) fn await_condition(&mut self, write: &Arc<Written>, within: Duration) {
        let waiter = self.waiter(write, within);
        let covered = self.covers(&write.key);
        self.reap();
        self.waits.spawn(async move { waiter.condition(covered).await });
    }

    /// The cache shows what there is, and says so: awaiting the newest version succeeds.
    pub(crate) async fn await_newest(&self, within: Duration) {
        let newest = ResourceVersion::from(self.truth.lock().history.version);
        for partition in self.settings.partitions() {
            let key = ObjectKey::namespaced(partition.unwrap_or("a"), "nothing");
            if let Err(error) = self.informer.reached_version(&key, &newest, within).await {
                self.log.fail(format_args!("{} at rest: {error}", self.name));
            }
        }
    }

    pub(crate) fn covers(&self, key: &ObjectKey) -> bool {
        self.settings.partitions().iter().any(|partition| crate::history::is_in(key, *partition))
    }

    fn waiter(&self, write: &Arc<Written>, within: Duration) -> Waiter {
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
            Err(WaitError::OutOfScope { .. }) => self.wrong("out of scope"),
            Ok(()) if !covered => self.wrong("reached what it does not cover"),
            Ok(()) => self.look(),
            Err(error) => self.late(error, begin),
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
            Err(WaitError::OutOfScope { .. }) => self.wrong("out of scope"),
            Ok(()) if !covered => self.wrong("a condition on an object that it does not cover"),
            Ok(()) if !held => self.wrong("a condition that does not hold"),
            Ok(()) => {}
            Err(error) => self.late(&error, begin),
        }
    }

    /// The cache shows the write or a later one of the same object.
    fn look(&self) {
        let known = self.truth.lock();
        let history = &known.history;
        // A version of another history means nothing here, and nobody who awaits one can know.
        if history.epoch() != self.write.epoch || self.cache.epoch(&self.write.key) != self.write.epoch {
            return;
        }
        let Written { key, n, epoch, version, .. } = &*self.write;
        if self.cache.is_veiled(key, (*epoch, *version), &known) {
            return;
        }
        let shown =
            self.informer.lister().get(key).and_then(|object| history.find(&object).map(|write| write.n));
        let truth = match shown {
            Some(shown) => shown >= *n,
            // Gone with this write, or with a later one.
            None => self.write.gone || history.was_deleted_after(key, *n),
        };
        drop(known);
        if !truth {
            self.wrong(&format!("reached n={n} but shows {shown:?}"));
        }
    }

    fn late(&self, error: &WaitError, begin: Instant) {
        let waited = begin.elapsed();
        match error {
            WaitError::Timeout { .. } if waited + TOLERANCE < self.within => self.wrong("gave up early"),
            WaitError::Timeout { .. } if waited > self.within + TOLERANCE => self.wrong("waited too long"),
            WaitError::Failed { why, .. } => self.wrong(why),
            WaitError::Stopped { .. } if !self.informer.is_stopped() => self.wrong("says it stopped"),
            _ => {}
        }
    }

    fn wrong(&self, what: &str) {
        self.log.fail(format_args!("{} waiting for n={}: {what}", self.name, self.write.n));
    }
}
