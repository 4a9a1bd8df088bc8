//! The process loop: from the queue into the store, then to the handlers.

use crate::{
    delta::{AnyObject, Deleted, Delta},
    delta_fifo::Batch,
    delta_queue::DeltaQueue,
    handler::Event,
    indexer::{Indexer, Transaction},
    processor::{Notification, Processor},
    telemetry::Telemetry,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

/// Deltas taken at once. A list is taken whole.
const BATCH: usize = 1000;

/// Applies what the reflectors report.
///
/// 1. One batch at a time: the store is written and published, then the listeners get their events, then the
///    batch is committed.
/// 2. Whoever holds the processor sees store and listeners in step; everything that must happen between two
///    batches takes it.
pub(crate) struct Controller {
    pub(crate) queue: Arc<DeltaQueue>,
    pub(crate) indexer: Arc<Indexer>,
    /// Held from the store write to the end of its fan-out, and never over an `.await`.
    processor: Mutex<Processor>,
    telemetry: Arc<Telemetry>,
    /// Decides how long batches stay in flight, in simulations.
    linger: Option<Mutex<fastrand::Rng>>,
}

impl Controller {
    pub(crate) fn new(
        queue: Arc<DeltaQueue>,
        indexer: Arc<Indexer>,
        processor: Processor,
        telemetry: Arc<Telemetry>,
    ) -> Self {
        Self { queue, indexer, processor: Mutex::new(processor), telemetry, linger: None }
    }

    /// Lets batches stay in flight for random times, as they do where threads are slow.
    pub(crate) fn lingering(mut self, rng: fastrand::Rng) -> Self {
        self.linger = Some(Mutex::new(rng));
        self
    }

    /// Holds up the pipeline between two batches.
    pub(crate) fn between_batches(&self) -> MutexGuard<'_, Processor> {
        self.processor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs until the queue is closed and empty, or until `stop`.
    pub(crate) async fn run(&self, stop: CancellationToken) {
        let check = self.between_batches().check_period();
        let mut ticks = check.map(ticks);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                at = async { match &mut ticks { Some(ticks) => ticks.tick().await, None => std::future::pending().await } } => {
                    self.resync(at);
                }
                batch = self.queue.pop(BATCH) => match batch {
                    Some(batch) => {
                        self.linger().await;
                        self.process(batch);
                    }
                    None => return,
                },
            }
        }
    }

    /// A long backlog must not keep the other tasks of this thread waiting. They run while a batch is in flight,
    /// on one thread as on many, so that a simulation, which has only one, meets every order of things that
    /// threads could bring about.
    async fn linger(&self) {
        let time = self.linger.as_ref().map_or(0, |rng| {
            let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
            match rng.u8(0..8) {
                0..4 => 0,
                4..7 => rng.u64(1..50),
                _ => rng.u64(50..1500),
            }
        });
        match time {
            0 => tokio::task::yield_now().await,
            millis => tokio::time::sleep(Duration::from_millis(millis)).await,
        }
    }

    /// `at` is when the tick was due. What counts is that, not when somebody got round to it: otherwise a handler
    /// with the period of the informer would miss each tick that is less late than the one before.
    fn resync(&self, at: Instant) {
        let mut processor = self.between_batches();
        if processor.tick(at) {
            self.queue.resync(&*self.indexer);
        }
    }

    /// Applies one batch.
    pub(crate) fn process(&self, batch: Batch) {
        let start = Instant::now();
        let mut processor = self.between_batches();
        let mut store = self.indexer.begin();
        let mut notifications = Vec::with_capacity(batch.deltas.len());
        for delta in batch.deltas {
            apply(&mut store, delta, &mut notifications);
        }
        store.reach(batch.positions);
        let first_fill =
            batch.replaced.filter(|&partition| !self.indexer.snapshot().is_partition_filled(partition));
        if let Some(partition) = first_fill {
            store.fill(partition);
        }
        let snapshot = store.publish();
        match first_fill {
            // Every object of the partition is news to everybody: one walk says it all.
            Some(partition) => processor.fill(partition, &snapshot),
            None => processor.distribute(&notifications),
        }
        drop(processor);
        self.queue.commit();
        self.telemetry.processed(start.elapsed(), self.queue.len(), &snapshot);
    }
}

/// Ticks of a period. Those that nobody was there for are left out, not made up for.
fn ticks(period: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Applies one delta to the store and notes what the handlers must hear.
fn apply(store: &mut Transaction<'_>, delta: Delta, notifications: &mut Vec<Notification>) {
    match delta {
        Delta::Sync(object) => {
            // What is stored is what the resync is about: in this order of things it cannot have changed.
            let stored = store.get(object.key()).is_some_and(|stored| stored.is_same(&object));
            if stored {
                notifications.push(Notification::Sync(object));
            }
        }
        Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
            let old = store.put(object.clone());
            put(old, object, notifications);
        }
        Delta::Deleted(deleted) => {
            if let Some(old) = store.remove(deleted.key()) {
                let deleted =
                    if old.is_same(deleted.object()) { deleted } else { Deleted::unknown(old.clone()) };
                notifications.push(Notification::Change(Event::Deleted(deleted), Some(old)));
            }
        }
    }
}

/// What handlers hear when `new` takes the place of `old`.
fn put(old: Option<AnyObject>, new: AnyObject, notifications: &mut Vec<Notification>) {
    let added = |object| Notification::Change(Event::Added { object, initial: false }, None);
    match old {
        None => notifications.push(added(new)),
        Some(old) if !old.is_same(&new) => {
            let gone = Event::Deleted(Deleted::unknown(old.clone()));
            notifications.extend([Notification::Change(gone, Some(old)), added(new)]);
        }
        Some(old) if old.is_same_version(&new) && old.is_same_content(&new) => {}
        Some(old) => {
            notifications.push(Notification::Change(Event::Updated { old: old.clone(), new }, Some(old)))
        }
    }
}

#[cfg(test)]
mod tests;
