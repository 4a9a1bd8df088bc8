//! A work queue, its workers, and the ledger they are checked against.

use crate::ledger::{Fault, Ledger, lock};
use kube_informer::ObjectKey;
use kube_workqueue::WorkQueue;
use std::{
    collections::{HashMap, HashSet},
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

/// What happened to each key, in order.
struct Runs {
    tick: u64,
    added: HashMap<ObjectKey, u64>,
    /// When the last run began that succeeded.
    done: HashMap<ObjectKey, u64>,
    running: HashSet<ObjectKey>,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(name: String, rng: fastrand::Rng, ledger: Arc<Ledger>) -> Self {
        let (added, done, running) = (HashMap::new(), HashMap::new(), HashSet::new());
        let runs = Arc::new(Mutex::new(Runs { tick: 0, added, done, running, rng }));
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
        let mut runs = lock(&self.runs);
        runs.tick += 1;
        let tick = runs.tick;
        runs.added.insert(key.clone(), tick);
        drop(runs);
        self.queue.add(key.clone());
    }

    async fn run(&self, key: ObjectKey) -> Result<(), kube_workqueue::HandlerError> {
        let (began, pause) = {
            let mut runs = lock(&self.runs);
            if !runs.running.insert(key.clone()) {
                self.ledger.fail(format_args!("{}: two workers hold {key}", self.name));
            }
            runs.tick += 1;
            (runs.tick, runs.rng.u64(0..20))
        };
        if pause > 15 {
            tokio::time::sleep(Duration::from_millis(pause)).await;
        }
        let mut runs = lock(&self.runs);
        runs.running.remove(&key);
        if self.clumsy.load(Ordering::Relaxed) && runs.rng.u8(0..8) == 0 {
            self.ledger.strike(Fault::WorkFailed);
            return Err("made up".into());
        }
        runs.done.insert(key, began);
        Ok(())
    }

    /// Whether workers fail now and then.
    pub(crate) fn set_clumsy(&self, clumsy: bool) {
        self.clumsy.store(clumsy, Ordering::Relaxed);
    }

    /// Every key was processed after it was added last.
    pub(crate) fn check(&self) -> Result<(), String> {
        let runs = lock(&self.runs);
        let late =
            runs.added.iter().find(|(key, added)| runs.done.get(*key).is_none_or(|done| done < *added));
        late.map_or(Ok(()), |(key, _)| Err(format!("{}: {key} was added and not processed since", self.name)))
    }

    pub(crate) fn shutdown(&self) {
        self.queue.shutdown();
    }
}
