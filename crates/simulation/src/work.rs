//! A work queue, its workers, and the log that checks them.

use crate::{log::Log, operator::Operator, totals::Fault};
use harness::WorkLog;
use kube_informer::ObjectKey;
use kube_informer_wire::sync::lock;
use kube_workqueue::WorkQueue;
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::task::JoinHandle;

/// A work queue to which handlers add keys. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Work {
    queue: WorkQueue<ObjectKey>,
    runs: Arc<Mutex<Runs>>,
    /// Processes keys, if the queue belongs to a controller.
    operator: Option<Operator>,
    log: Arc<Log>,
}

struct Runs {
    log: WorkLog<ObjectKey>,
    /// Whether workers sometimes fail.
    inject_failures: bool,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(rng: fastrand::Rng, operator: Option<Operator>, log: Arc<Log>) -> Self {
        let runs = Arc::new(Mutex::new(Runs { log: WorkLog::default(), inject_failures: true, rng }));
        Self { queue: WorkQueue::builder().build(), runs, operator, log }
    }

    /// Starts workers, which run until the queue is shut down.
    pub(crate) fn start(&self, workers: usize) -> JoinHandle<()> {
        let work = self.clone();
        let running = self.queue.spawn_workers(workers, move |key| {
            let work = work.clone();
            async move { work.run(key).await }
        });
        tokio::spawn(running)
    }

    pub(crate) fn add(&self, key: &ObjectKey) {
        self.lock().log.added(key);
        self.queue.add(key.clone());
    }

    async fn run(&self, key: ObjectKey) -> Result<(), kube_workqueue::HandlerError> {
        let (started, pause) = {
            let mut runs = self.lock();
            (runs.log.started(&key), runs.rng.u64(0..40))
        };
        let started = started.unwrap_or_else(|why| {
            self.log.fail(format_args!("{why}"));
            0
        });
        if pause > 20 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let done = match &self.operator {
            Some(operator) => operator.reconcile(&key).await,
            None => Ok(()),
        };
        let mut runs = self.lock();
        if let Err(error) = done {
            runs.log.failed(&key);
            return Err(error.into());
        }
        if runs.inject_failures && runs.rng.u8(0..5) == 0 {
            runs.log.failed(&key);
            self.log.record_fault(Fault::WorkFailed);
            return Err("injected failure".into());
        }
        self.log.note(format_args!("work done on {key}"));
        runs.log.succeeded(&key, started);
        Ok(())
    }

    /// Sets whether workers sometimes fail and slow readers pause for long.
    pub(crate) fn set_inject_failures(&self, inject_failures: bool) {
        self.lock().inject_failures = inject_failures;
    }

    pub(crate) fn injects_failures(&self) -> bool {
        self.lock().inject_failures
    }

    /// Checks that every key was processed after it was last added.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.lock().log.check()?;
        self.operator.as_ref().map_or(Ok(()), Operator::check)
    }

    pub(crate) fn shutdown(&self) {
        self.queue.shutdown();
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }
}
