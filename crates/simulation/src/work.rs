//! A work queue, its workers, and the ledger they are checked against.

use crate::{log::Log, operator::Operator, totals::Fault};
use harness::WorkLog;
use kube_informer::ObjectKey;
use kube_workqueue::WorkQueue;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::JoinHandle;

/// A work queue fed by handlers. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Work {
    queue: WorkQueue<ObjectKey>,
    runs: Arc<Mutex<Runs>>,
    /// Who does something about a key; otherwise it is enough to have looked at it.
    operator: Option<Operator>,
    log: Arc<Log>,
}

struct Runs {
    log: WorkLog<ObjectKey>,
    /// Whether workers fail now and then.
    clumsy: bool,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(rng: fastrand::Rng, operator: Option<Operator>, log: Arc<Log>) -> Self {
        let runs = Arc::new(Mutex::new(Runs { log: WorkLog::default(), clumsy: true, rng }));
        Self { queue: WorkQueue::builder().build(), runs, operator, log }
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
        if runs.clumsy && runs.rng.u8(0..5) == 0 {
            runs.log.failed(&key);
            self.log.strike(Fault::WorkFailed);
            return Err("injected failure".into());
        }
        self.log.note(format_args!("work done on {key}"));
        runs.log.succeeded(&key, started);
        Ok(())
    }

    /// Whether workers fail now and then.
    pub(crate) fn set_clumsy(&self, clumsy: bool) {
        self.lock().clumsy = clumsy;
    }

    pub(crate) fn is_clumsy(&self) -> bool {
        self.lock().clumsy
    }

    /// Every key was processed after it was added last.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.lock().log.check()?;
        self.operator.as_ref().map_or(Ok(()), Operator::check)
    }

    pub(crate) fn shutdown(&self) {
        self.queue.shutdown();
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
