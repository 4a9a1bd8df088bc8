//! Takes keys from the queue and reconciles them.

use crate::{
    action::Action,
    barrier::StaleCache,
    context::Context,
    failure::{BoxError, FailureCause, ReconcileFailure, panic_message},
    phase::Phase,
    run::{Reconcile, Shared},
    shards::Admission,
    time,
};
use futures_util::FutureExt;
use kube_informer::{Item, ObjectKey};
use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// Period in which the gauges of the queue are updated.
const REFRESH: Duration = Duration::from_millis(500);

/// Number of keys that may wait for their caches without a permit to reconcile.
const MAX_WAITING: usize = 1024;

/// How long a cancelled reconcile may take to reach its next `.await`. After that it blocks its thread.
const CANCEL: Duration = Duration::from_secs(5);

/// Reconciles keys until `stop` resolves or the queue is shut down, then waits for those in flight.
///
/// Each reconcile is a task, so that they run in parallel and a panic ends nothing else. Dropping the future aborts them.
pub(crate) async fn dispatch(shared: &Arc<Shared>, reconcile: &Reconcile, stop: impl Future<Output = ()>) {
    let worker = Worker {
        shared: Arc::clone(shared),
        reconcile: Arc::clone(reconcile),
        permits: Arc::new(Semaphore::new(shared.settings.concurrency)),
        waiting: Arc::new(Semaphore::new(MAX_WAITING)),
        stopping: CancellationToken::new(),
    };
    let mut tasks = JoinSet::new();
    let mut stop = pin!(stop);
    let mut refresh = pin!(time::sleep(REFRESH));
    loop {
        tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            next = next(shared, &worker.permits) => match next {
                Some((item, permit)) => _ = tasks.spawn(process(worker.clone(), item, permit)),
                None => break,
            },
            () = &mut refresh => {
                shared.queue.refresh_metrics();
                refresh.set(time::sleep(REFRESH));
            }
        }
    }
    worker.stopping.cancel();
    drain(shared, tasks).await;
}

/// The next key, once fewer keys than the limit are in flight. `None` if the queue is shut down.
async fn next(shared: &Shared, permits: &Arc<Semaphore>) -> Option<(Item<ObjectKey>, OwnedSemaphorePermit)> {
    // Never closed.
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    let item = shared.queue.get().await?;
    Some((item, permit))
}

/// Waits for the reconciles in flight, and cancels those that do not return in time.
async fn drain(shared: &Shared, mut tasks: JoinSet<()>) {
    let timeout = shared.settings.drain_timeout;
    let finished = async { while tasks.join_next().await.is_some() {} };
    if time::timeout(timeout, finished).await.is_ok() {
        return;
    }
    let (name, mut cancelled) = (&shared.settings.name, shared.in_flight.keys());
    tasks.abort_all();
    let ended = async { while tasks.join_next().await.is_some() {} };
    let blocked = match time::timeout(CANCEL, ended).await {
        Ok(()) => Vec::new(),
        Err(time::Elapsed) => shared.in_flight.keys(),
    };
    cancelled.retain(|key| !blocked.contains(key));
    if !cancelled.is_empty() {
        shared.telemetry.cancelled(name, &cancelled, timeout);
    }
    if !blocked.is_empty() {
        shared.telemetry.blocked(name, &blocked);
        shared.phase.set(Phase::Blocked);
    }
    // Until they end, this process must not give up the lease under which they may write.
    while tasks.join_next().await.is_some() {}
}

/// Reconciles one key. The item is held until the reconcile has ended, so no other worker gets the key.
async fn process(worker: Worker, item: Item<ObjectKey>, permit: OwnedSemaphorePermit) {
    let Worker { shared, reconcile, .. } = &worker;
    let started = Instant::now();
    let Some((fresh, _permit)) = worker.caches_are_fresh(&item, permit).await else { return };
    if let Err(stale) = fresh {
        return finish(shared, item, Err(stale.into()), started.elapsed());
    }
    let admission = match shared.shards.get().map(|keys| keys.enter(item.key())) {
        // Another replica reconciles it, or has to finish with it first.
        Some(None) => return item.forget(),
        Some(admission) => admission,
        None => None,
    };
    let (_active, _in_flight) = (shared.telemetry.started(), shared.in_flight.enter(item.key()));
    let started = Instant::now();
    let subject = admission.as_ref().map(|admission| admission.subject.clone());
    let context = Context::new(Arc::clone(shared), item.key().clone(), item.num_requeues(), subject);
    let call = AssertUnwindSafe(async { reconcile(context).await }).catch_unwind();
    let called = tokio::select! {
        biased;
        () = lost(admission.as_ref()) => None,
        called = time::timeout(shared.settings.deadline, call) => Some(called),
    };
    let Some(called) = called else {
        drop(admission);
        return item.forget();
    };
    let outcome = outcome(called, shared.settings.deadline);
    if let (Some(admission), Ok(action)) = (&admission, &outcome)
        && action.and_then(|action| action.delay()).is_none()
    {
        admission.settle();
    }
    // The key is free before it is taken again.
    drop(admission);
    finish(shared, item, outcome, started.elapsed());
}

/// Resolves when this replica lost the shard of the object.
async fn lost(admission: Option<&Admission>) {
    match admission {
        Some(admission) => admission.lost().await,
        None => std::future::pending().await,
    }
}

/// The parts that the task of each reconcile needs.
#[derive(Clone)]
struct Worker {
    shared: Arc<Shared>,
    reconcile: Reconcile,
    /// Limits the number of reconciles at once.
    permits: Arc<Semaphore>,
    /// Limits the number of keys that wait for caches beside them.
    waiting: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl Worker {
    /// Waits until the caches show earlier writes of the key. `None` if the controller stops meanwhile.
    ///
    /// The permit is given back for the time of the wait, so that a cache that lags behind stops only the keys that depend on
    /// it; unless very many keys wait already.
    async fn caches_are_fresh(
        &self,
        item: &Item<ObjectKey>,
        permit: OwnedSemaphorePermit,
    ) -> Option<(Result<(), StaleCache>, OwnedSemaphorePermit)> {
        let Self { shared, permits, waiting, stopping, .. } = self;
        if !shared.barrier.is_pending(item.key()) {
            return Some((Ok(()), permit));
        }
        let waiting = waiting.try_acquire().ok();
        let permit = waiting.is_none().then_some(permit);
        let fresh = async {
            let reached = shared.barrier.reached(item.key(), &shared.client, shared.settings.barrier_timeout);
            let reached = reached.await.or_else(|stale| self.tolerate(item.key(), stale));
            let permit = match permit {
                Some(permit) => permit,
                // Never closed.
                None => Arc::clone(permits).acquire_owned().await.ok()?,
            };
            Some((reached, permit))
        };
        tokio::select! {
            biased;
            () = stopping.cancelled() => None,
            fresh = fresh => fresh,
        }
    }

    fn tolerate(&self, key: &ObjectKey, stale: StaleCache) -> Result<(), StaleCache> {
        if !self.shared.settings.allow_stale {
            return Err(stale);
        }
        tracing::warn!(controller = %self.shared.settings.name, %key, %stale, "reconciling with a stale cache");
        // Otherwise the writes of all reconciles would add up for as long as the cache is stale.
        self.shared.barrier.forget(key);
        Ok(())
    }
}

type Called = Result<Result<Option<Action>, BoxError>, Box<dyn Any + Send>>;

fn outcome(
    called: Result<Called, time::Elapsed>,
    deadline: Duration,
) -> Result<Option<Action>, FailureCause> {
    match called {
        Ok(Ok(Ok(action))) => Ok(action),
        Ok(Ok(Err(error))) => Err(FailureCause::error(error)),
        Ok(Err(panic)) => Err(FailureCause::panic(&*panic)),
        Err(time::Elapsed) => Err(FailureCause::Deadline(deadline)),
    }
}

fn finish(
    shared: &Shared,
    item: Item<ObjectKey>,
    outcome: Result<Option<Action>, FailureCause>,
    took: Duration,
) {
    match outcome {
        Ok(action) => {
            let (name, failures) = (&shared.settings.name, item.num_requeues());
            shared.telemetry.succeeded(name, item.key(), action, failures, took);
            match action.and_then(|action| action.delay()) {
                Some(delay) => {
                    shared.queue.forget(item.key());
                    item.retry_after(delay);
                }
                None => item.forget(),
            }
        }
        Err(cause) => {
            let failure = ReconcileFailure {
                controller: Arc::clone(&shared.settings.name),
                key: item.key().clone(),
                failures: item.num_requeues().saturating_add(1),
                cause,
            };
            let delay = retry_delay(shared, item.key());
            // `Display` of the error and the hook are code of the user; the key is retried whatever they do.
            let reported = catch_unwind(AssertUnwindSafe(|| report(shared, &failure, took, delay)));
            if let Err(panic) = reported {
                let (controller, panic) = (&shared.settings.name, panic_message(&*panic));
                tracing::error!(%controller, panic, "cannot report a failed reconcile; it will be retried");
            }
            match delay {
                Some(delay) => item.retry_after(delay),
                None => item.retry(),
            }
        }
    }
}

/// Counts a failure of the key, and returns the delay of its retry; `None` if the queue has to do both.
fn retry_delay(shared: &Shared, key: &ObjectKey) -> Option<Duration> {
    let limiter = shared.settings.limiter.as_ref()?;
    // The limiter may be code of the user. The queue calls it again, and reports its panic.
    catch_unwind(AssertUnwindSafe(|| limiter.when(key))).ok()
}

fn report(shared: &Shared, failure: &ReconcileFailure, took: Duration, delay: Option<Duration>) {
    shared.telemetry.failed(failure, took, delay);
    if let Some(hook) = &shared.settings.hook {
        (hook.0)(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Settings;
    use harness::CapturedLog;
    use kube_informer::WorkQueue;
    use tokio::sync::oneshot;

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_that_blocks_its_thread_is_not_reported_as_cancelled() {
        let client = kube_embedded_apiserver::ApiServer::builder().in_process().await.unwrap().client();
        let shared = Shared::new(Settings::named("c".to_owned()), WorkQueue::named("c"), Vec::new(), client);
        // Threads of its own, so that the clock of this one goes on.
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (entered, in_flight) = oneshot::channel();
        let (release, released) = std::sync::mpsc::channel::<()>();
        let (task, mut tasks) = (Arc::clone(&shared), JoinSet::new());
        let blocking = async move {
            let _flight = task.in_flight.enter(&ObjectKey::namespaced("ns", "stuck"));
            entered.send(()).unwrap();
            let _ = released.recv();
        };
        tasks.spawn_on(blocking, threads.handle());
        in_flight.await.unwrap();
        let log = CapturedLog::capture(tracing::Level::WARN);
        let draining = Arc::clone(&shared);
        let drained = tokio::spawn(async move { drain(&draining, tasks).await });
        tokio::time::sleep(Duration::from_secs(60)).await;
        let text = log.text();
        assert!(text.contains("1 reconciles do not end: they block their threads"), "{text}");
        assert!(text.contains("stuck"), "{text}");
        assert!(!text.contains("cancelled"), "{text}");
        assert!(shared.phase.get() == Phase::Blocked && !drained.is_finished());
        drop(release);
        drained.await.unwrap();
        threads.shutdown_background();
    }
}
