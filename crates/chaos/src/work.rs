//! A work queue, its workers, and the ledger they are checked against.

use crate::ledger::{Fault, Ledger, lock};
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

/// A work queue fed by handlers: every key is processed after it was added last, and never by two workers at once.
#[derive(Clone)]
pub(crate) struct Work {
    name: String,
    queue: WorkQueue<ObjectKey>,
    runs: Arc<Mutex<Runs>>,
    /// Whether workers fail now and then.
    clumsy: Arc<AtomicBool>,
    ledger: Arc<Ledger>,
}

struct Runs {
    log: WorkLog<ObjectKey>,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(name: String, rng: fastrand::Rng, ledger: Arc<Ledger>) -> Self {
        let runs = Arc::new(Mutex::new(Runs { log: WorkLog::default(), rng }));
        let clumsy = Arc::new(AtomicBool::new(true));
        Self { name, queue: WorkQueue::builder().build(), runs, clumsy, ledger }
    }

    /// Lets workers loose on the queue until it is shut down.
    pub(crate) fn begin(&self, workers: usize) -> JoinHandle<()> {
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
            self.ledger.fail(format_args!("{}: {why}", self.name));
            0
        });
        if pause > 15 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let mut runs = lock(&self.runs);
        if self.clumsy.load(Ordering::Relaxed) && runs.rng.u8(0..8) == 0 {
            runs.log.failed(&key);
            self.ledger.strike(Fault::WorkFailed);
            return Err("injected failure".into());
        }
        runs.log.succeeded(&key, started);
        Ok(())
    }

    /// Whether workers fail now and then.
    pub(crate) fn set_clumsy(&self, clumsy: bool) {
        self.clumsy.store(clumsy, Ordering::Relaxed);
    }

    /// Every key was processed after it was added last.
    pub(crate) fn check(&self) -> Result<(), String> {
        lock(&self.runs).log.check().map_err(|why| format!("{}: {why}", self.name))
    }

    pub(crate) fn shutdown(&self) {
        self.queue.shutdown();
    }
}
