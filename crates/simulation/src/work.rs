//! A work queue, its workers, and the log that checks them.

use crate::{log::Log, operator::Operator, subject::key_delay, totals::Fault};
use harness::WorkLog;
use kube_informer::ObjectKey;
use kube_informer_wire::sync::lock;
use kube_workqueue::{
    ExponentialLimiter, FastSlowLimiter, MaxWaitLimiter, RateLimiter, WorkQueue, controller_rate_limiter,
};
use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::task::{JoinHandle, JoinSet};

/// The longest delay of a retry, so that queues converge.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// How long a reconcile that fails takes at least.
const FAILURE_PAUSE: Duration = Duration::from_secs(1);

/// A rate limiter, sometimes with durations at the limits of what a clock can represent.
fn limiter(rng: &mut fastrand::Rng) -> Box<dyn RateLimiter<ObjectKey>> {
    let (nanosecond, second) = (Duration::from_nanos(1), Duration::from_secs(1));
    match rng.u8(0..8) {
        0 => Box::new(ExponentialLimiter::new(nanosecond, Duration::MAX).expire_after(Duration::ZERO)),
        1 => Box::new(ExponentialLimiter::new(Duration::MAX, second).expire_after(Duration::MAX)),
        2 => Box::new(ExponentialLimiter::new(Duration::ZERO, Duration::ZERO)),
        3 => Box::new(FastSlowLimiter::new(nanosecond, second, 3)),
        _ => Box::new(controller_rate_limiter()),
    }
}

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
    /// Workers that wait only for a short time.
    short_lived: JoinSet<()>,
    rng: fastrand::Rng,
}

impl Work {
    pub(crate) fn new(mut rng: fastrand::Rng, operator: Option<Operator>, log: Arc<Log>) -> Self {
        let queue =
            WorkQueue::builder().rate_limiter(MaxWaitLimiter::new(limiter(&mut rng), MAX_DELAY)).build();
        let runs = Arc::new(Mutex::new(Runs {
            log: WorkLog::default(),
            inject_failures: true,
            short_lived: JoinSet::new(),
            rng,
        }));
        Self { queue, runs, operator, log }
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
        let delay = {
            let mut runs = self.lock();
            let delay = key_delay(&mut runs.rng);
            runs.log.added(key);
            delay
        };
        match delay {
            Some(Duration::ZERO) => self.queue.add(key.clone()),
            Some(delay) => self.queue.add_after(key.clone(), delay),
            None => {
                // Never has no effect on a key that is added now.
                self.queue.add_after(key.clone(), Duration::MAX);
                self.queue.add(key.clone());
            }
        }
        self.drop_worker();
    }

    /// Starts a worker that waits for a key for a short time, and is dropped then. It may be the one whose timer serves
    /// the other workers.
    fn drop_worker(&self) {
        let patience = {
            let mut runs = self.lock();
            if !runs.inject_failures || runs.rng.u8(0..32) > 0 {
                return;
            }
            Duration::from_millis(runs.rng.u64(0..2_000))
        };
        let work = self.clone();
        self.lock().short_lived.spawn(async move {
            match tokio::time::timeout(patience, work.queue.get()).await {
                Ok(Some(item)) => match work.run(item.key().clone()).await {
                    Ok(()) => item.forget(),
                    Err(_) => item.retry(),
                },
                Ok(None) => {}
                Err(_) => work.log.record_fault(Fault::WorkerDropped),
            }
        });
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
        if done.is_err() {
            // A limiter may retry at once. A program that does this for hours only makes the world slow.
            tokio::time::sleep(FAILURE_PAUSE).await;
        }
        let mut runs = self.lock();
        if let Err(error) = done {
            runs.log.failed(&key);
            return Err(error.into());
        }
        if runs.inject_failures && runs.rng.u8(0..20) == 0 {
            runs.log.failed(&key);
            drop(runs);
            self.log.record_fault(Fault::WorkerPanic);
            // Unwinds like a panic, but prints no message.
            resume_unwind(Box::new("simulated"));
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

    /// Shuts the queue down, and waits for all workers but those that [`start`](Self::start) returned.
    pub(crate) async fn shutdown(&self) {
        self.queue.shutdown();
        let mut short_lived = std::mem::take(&mut self.lock().short_lived);
        while short_lived.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        lock(&self.runs)
    }
}
