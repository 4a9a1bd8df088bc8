//! A work queue and its workers, checked by a log.

use crate::report::{Fault, Report, lock};
use harness::WorkLog;
use kube_informer::ObjectKey;
use kube_workqueue::WorkQueue;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::task::JoinHandle;

/// A work queue filled by handlers. Every key must be processed after it was last added, never by two workers at once.
#[derive(Clone)]
pub(crate) struct Work {
    name: String,
    queue: WorkQueue<ObjectKey>,
    runs: Arc<Mutex<Runs>>,
    /// Whether workers fail sometimes.
    failing: Arc<AtomicBool>,
    report: Arc<Report>,
}

struct Runs {
    log: WorkLog<ObjectKey>,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(name: String, rng: fastrand::Rng, report: Arc<Report>) -> Self {
        let runs = Arc::new(Mutex::new(Runs { log: WorkLog::default(), rng }));
        let failing = Arc::new(AtomicBool::new(true));
        Self { name, queue: WorkQueue::builder().build(), runs, failing, report }
    }

    /// Spawns workers that run until the queue is shut down.
    pub(crate) fn spawn_workers(&self, workers: usize) -> JoinHandle<()> {
        let work = self.clone();
        let running = self.queue.spawn_workers(workers, move |key| {
            let work = work.clone();
            async move { work.run(key).await }
        });
        tokio::spawn(running)
    }

    pub(crate) fn add(&self, key: &ObjectKey) {
        lock(&self.runs).log.added(key);
        self.queue.add(key.clone());
    }

    async fn run(&self, key: ObjectKey) -> Result<(), kube_workqueue::HandlerError> {
        let (started, pause) = {
            let mut runs = lock(&self.runs);
            (runs.log.started(&key), runs.rng.u64(0..20))
        };
        let started = started.unwrap_or_else(|why| {
            self.report.fail(format_args!("{}: {why}", self.name));
            0
        });
        if pause > 15 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let mut runs = lock(&self.runs);
        if self.failing.load(Ordering::Relaxed) && runs.rng.u8(0..8) == 0 {
            runs.log.failed(&key);
            self.report.record_fault(Fault::WorkFailed);
            return Err("injected failure".into());
        }
        runs.log.succeeded(&key, started);
        Ok(())
    }

    /// Sets whether workers fail sometimes.
    pub(crate) fn set_failing(&self, failing: bool) {
        self.failing.store(failing, Ordering::Relaxed);
    }

    /// Checks that every key was processed after it was last added.
    pub(crate) fn check(&self) -> Result<(), String> {
        lock(&self.runs).log.check().map_err(|why| format!("{}: {why}", self.name))
    }

    pub(crate) fn shutdown(&self) {
        self.queue.shutdown();
    }
}
