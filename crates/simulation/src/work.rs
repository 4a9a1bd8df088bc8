//! A work queue, its workers, and the ledger they are checked against.

use crate::{log::Log, operator::Operator, totals::Fault};
use kube_informer::ObjectKey;
use kube_workqueue::WorkQueue;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::task::JoinHandle;

/// A work queue fed by handlers. Cloning gives another handle.
#[derive(Clone)]
pub(crate) struct Work {
    queue: WorkQueue<ObjectKey>,
    ledger: Arc<Mutex<Ledger>>,
    /// Who does something about a key; otherwise it is enough to have looked at it.
    operator: Option<Operator>,
    log: Arc<Log>,
}

/// What happened to each key, in order.
struct Ledger {
    tick: u64,
    added: BTreeMap<ObjectKey, u64>,
    /// When the last run began that succeeded.
    done: BTreeMap<ObjectKey, u64>,
    running: BTreeSet<ObjectKey>,
    /// Whether workers fail now and then.
    clumsy: bool,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(rng: fastrand::Rng, operator: Option<Operator>, log: Arc<Log>) -> Self {
        let ledger = Ledger {
            tick: 0,
            added: BTreeMap::new(),
            done: BTreeMap::new(),
            running: BTreeSet::new(),
            clumsy: true,
            rng,
        };
        Self { queue: WorkQueue::builder().build(), ledger: Arc::new(Mutex::new(ledger)), operator, log }
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
        let mut ledger = self.lock();
        ledger.tick += 1;
        let tick = ledger.tick;
        ledger.added.insert(key.clone(), tick);
        drop(ledger);
        self.queue.add(key.clone());
    }

    async fn run(&self, key: ObjectKey) -> Result<(), kube_workqueue::HandlerError> {
        let (began, pause) = {
            let mut ledger = self.lock();
            if !ledger.running.insert(key.clone()) {
                self.log.fail(format_args!("two workers hold {key}"));
            }
            ledger.tick += 1;
            (ledger.tick, ledger.rng.u64(0..40))
        };
        if pause > 20 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let done = match &self.operator {
            Some(operator) => operator.reconcile(&key).await,
            None => Ok(()),
        };
        let mut ledger = self.lock();
        ledger.running.remove(&key);
        done?;
        if ledger.clumsy && ledger.rng.u8(0..5) == 0 {
            self.log.strike(Fault::WorkFailed);
            return Err("simulated".into());
        }
        self.log.note(format_args!("work done on {key}"));
        ledger.done.insert(key, began);
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
        let ledger = self.lock();
        for (key, added) in &ledger.added {
            if ledger.done.get(key).is_none_or(|done| done < added) {
                return Err(format!("{key} was added and not processed since"));
            }
        }
        drop(ledger);
        self.operator.as_ref().map_or(Ok(()), Operator::check)
    }

    pub(crate) fn shutdown(&self) {
        self.queue.shutdown();
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
