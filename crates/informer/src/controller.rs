//! The process loop: from the queue into the store, then to the handlers.

mod fill;

use crate::{
    delta::{AnyObject, Deleted, Delta},
    delta_fifo::{Batch, Known},
    delta_queue::DeltaQueue,
    fail_point::{FailPoint, FailPoints},
    handler::Event,
    indexer::{Contents, Indexer, Snapshot, Swapped, Transaction},
    listener::Listener,
    processor::{FanOut, Notification, Processor},
    scope::Partition,
    supervision::{Restarts, Supervision, TaskId},
    telemetry::{Task, Telemetry},
    time,
    views::Views,
};
use fill::fill_store;
use futures_util::FutureExt;
use kube_informer_wire::sync::lock;
use kube_informer_wire::{ObjectKey, Packer};
use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{task::yield_now, time::Instant};
use tokio_util::sync::CancellationToken;

/// Deltas taken at once. A list is taken whole.
const BATCH: usize = 1000;

/// Applies what the reflectors report.
///
/// 1. One batch at a time: the store is written and published, then the listeners get their events, then the
///    batch is committed.
/// 2. Code that holds the processor's lock sees store and listeners in the same state, except that listeners may lack
///    the rest of a long batch. Everything that must happen between two batches takes this lock.
/// 3. A panic loses and doubles nothing: the batch in flight is kept with the stage it has reached, and the task
///    that is restarted goes on from there.
pub(crate) struct Controller {
    pub(crate) queue: Arc<DeltaQueue>,
    pub(crate) indexer: Arc<Indexer>,
    /// Held for the store write with the first step of its fan-out, and for each further step; never over an `.await`.
    processor: Mutex<Processor>,
    /// The batch that has been popped and not yet committed. Used by the task alone.
    in_flight: Mutex<Option<InFlight>>,
    telemetry: Arc<Telemetry>,
    packer: Arc<Packer>,
    views: Arc<Views>,
    resync: Mutex<Resync>,
    /// The contents of the store when the restored state of a partition was published.
    restored: Mutex<BTreeMap<Partition, Arc<Contents>>>,
    /// Decides how long batches stay in flight, in simulations.
    linger: Option<Mutex<fastrand::Rng>>,
    fail_points: FailPoints,
}

/// The resync in progress. It queues a batch of objects at a time, so that a large cache does not fill the queue.
enum Resync {
    Idle,
    /// The objects up to this one have been queued.
    After(Option<ObjectKey>),
}

/// A batch between the queue and the listeners.
enum InFlight {
    /// The store does not show it.
    Taken(Arc<Batch>),
    Published(Box<Published>),
}

/// A batch in a store that is not published yet.
struct Applied<'a> {
    store: Transaction<'a>,
    notifications: Vec<Notification>,
    /// The partition whose initial list the batch is.
    initial_list: Option<Partition>,
    /// The partition whose restored state the batch is.
    restored: Option<Partition>,
    /// Number of views that had been added when the list of the batch began; `None` without such a list.
    views: Option<u64>,
}

/// How far a batch is published.
enum Progress<'a> {
    /// Another store was published meanwhile, so that the batch is not shown yet.
    Stale(Box<Applied<'a>>),
    /// Listeners lack a part of it.
    More,
    Done,
}

/// A batch that the store shows.
struct Published {
    swapped: Swapped,
    /// The partition whose initial list the batch is.
    initial_list: Option<Partition>,
    /// Whether the store is synced with this batch, and was not before.
    becomes_synced: bool,
    notifications: Vec<Notification>,
    fan_out: FanOut,
    /// Number of views that had been added when the list of the batch began; `None` without such a list.
    views: Option<u64>,
}

impl Controller {
    pub(crate) fn new(
        queue: Arc<DeltaQueue>,
        indexer: Arc<Indexer>,
        processor: Processor,
        telemetry: Arc<Telemetry>,
        packer: Arc<Packer>,
    ) -> Self {
        let (processor, in_flight) = (Mutex::new(processor), Mutex::new(None));
        let (resync, fail_points) = (Mutex::new(Resync::Idle), FailPoints::default());
        let (restored, linger, views) = (Mutex::default(), None, Arc::default());
        Self {
            queue,
            indexer,
            processor,
            in_flight,
            telemetry,
            packer,
            views,
            resync,
            restored,
            linger,
            fail_points,
        }
    }

    /// The views that are filled in again after a list whose objects may lack some.
    pub(crate) fn views(mut self, views: Arc<Views>) -> Self {
        self.views = views;
        self
    }

    /// Lets batches stay in flight for random times, as they do where threads are slow.
    pub(crate) fn lingering(mut self, rng: fastrand::Rng) -> Self {
        self.linger = Some(Mutex::new(rng));
        self
    }

    pub(crate) fn fail_points(mut self, fail_points: FailPoints) -> Self {
        self.fail_points = fail_points;
        self
    }

    /// Holds up the pipeline between two batches.
    pub(crate) fn between_batches(&self) -> MutexGuard<'_, Processor> {
        lock(&self.processor)
    }

    /// Runs until the queue is closed and empty, or until `stop`. After a panic it goes on where it was, unless the
    /// informer is stopping.
    pub(crate) async fn run(&self, stop: CancellationToken, supervision: &Supervision) {
        let mut restarts = Restarts::new(0);
        loop {
            restarts.started();
            let drive = AssertUnwindSafe(self.drive(&stop, supervision));
            let Err(panic) = drive.catch_unwind().await else { return };
            let Some(restart) = supervision.panicked(&TaskId::Controller, panic, &mut restarts) else {
                return;
            };
            supervision.wait(restart).await;
        }
    }

    async fn drive(&self, stop: &CancellationToken, supervision: &Supervision) {
        self.finish_batch().await;
        supervision.recovered(&TaskId::Controller);
        let check = self.between_batches().check_period();
        let mut ticks = check.and_then(time::ticks);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                at = async { match &mut ticks { Some(ticks) => ticks.tick().await, None => std::future::pending().await } } => {
                    self.resync(at);
                }
                batch = self.queue.pop(BATCH) => match batch {
                    Some(batch) => {
                        self.take_in(batch);
                        self.linger().await;
                        self.finish_batch().await;
                        self.continue_resync();
                    }
                    None => return,
                },
            }
        }
    }

    /// Lets other tasks run while a batch is in flight: also on a single thread, so that a simulation, which has only one,
    /// meets the interleavings of many.
    async fn linger(&self) {
        let millis = self.linger.as_ref().map_or(0, |rng| {
            let mut rng = lock(rng);
            match rng.u8(0..8) {
                0..4 => 0,
                4..7 => rng.u64(1..50),
                _ => rng.u64(50..1500),
            }
        });
        match millis {
            0 => yield_now().await,
            millis => time::sleep(Duration::from_millis(millis)).await,
        }
    }

    /// `at` is when the tick was due, which counts and not when it is handled: otherwise a handler with the period of the
    /// informer would miss each tick that is less delayed than the one before.
    fn resync(&self, at: Instant) {
        self.between_batches().tick(at);
        self.continue_resync();
    }

    /// Queues the next objects of the resync in progress. The next resync begins when no object of it is left in the queue:
    /// otherwise its listeners would receive the rest of the one before.
    fn continue_resync(&self) {
        let mut resync = lock(&self.resync);
        while !self.queue.is_resyncing() {
            let Resync::After(last) = &*resync else {
                if !self.between_batches().begin_resync() {
                    return;
                }
                *resync = Resync::After(None);
                continue;
            };
            let keys = self.indexer.keys_after(last.as_ref(), BATCH);
            self.queue.resync(&keys, &*self.indexer);
            *resync = keys.last().map_or(Resync::Idle, |last| Resync::After(Some(last.clone())));
        }
    }

    /// Applies one batch.
    #[cfg(test)]
    pub(crate) fn process(&self, batch: Batch) {
        self.take_in(batch);
        self.finish_batch().now_or_never().expect("a short batch is applied in one step");
    }

    fn take_in(&self, batch: Batch) {
        *self.lock_in_flight() = Some(InFlight::Taken(Arc::new(batch)));
        self.fail_points.at(FailPoint::BatchTaken);
    }

    /// Completes the batch in flight.
    async fn finish_batch(&self) {
        let start = Instant::now();
        let mut applied = match self.batch_to_apply() {
            Some(batch) => Some(self.apply_batch(&batch).await),
            None => None,
        };
        loop {
            match self.publish(applied.take(), start) {
                Progress::Stale(mut stale) => {
                    // An index was added or removed while the batch was applied. Index functions run here, without a lock.
                    stale.store.rebase();
                    applied = Some(*stale);
                }
                // Listeners may join and leave, and other tasks of this thread run, before the rest is handed out.
                Progress::More => yield_now().await,
                Progress::Done => return,
            }
        }
    }

    /// The batch in flight, unless the store shows it.
    fn batch_to_apply(&self) -> Option<Arc<Batch>> {
        match &*self.lock_in_flight() {
            Some(InFlight::Taken(batch)) => Some(Arc::clone(batch)),
            Some(InFlight::Published(_)) | None => None,
        }
    }

    /// Applies a batch to a store that is not published yet. Index functions and `Ord` of index values run here, without a
    /// lock. A long list is applied in steps, so that the other tasks of this thread do not wait for it. If the store is empty,
    /// as before an initial list or a restored state, its trees are built from the whole list.
    async fn apply_batch(&self, batch: &Batch) -> Applied<'_> {
        let mut store = self.indexer.begin();
        let initial_list = batch.replaced.filter(|&partition| !store.base().is_partition_filled(partition));
        let notifications = match (store.begin_fill(batch.len()), batch.added()) {
            (Some(fill), Some(objects)) => {
                fill_store(&mut store, fill, objects, initial_list.is_some()).await
            }
            _ => apply_all(&mut store, batch).await,
        };
        batch.withdrawn.iter().for_each(|&partition| store.withdraw(partition));
        batch.confirmed.iter().for_each(|&partition| store.confirm(partition));
        match (batch.replaced, batch.restored) {
            (Some(partition), Some(synced_by)) => store.mark_restored(partition, synced_by),
            (Some(partition), None) => {
                store.confirm(partition);
                store.mark_listed(partition);
            }
            (None, _) => {}
        }
        if let Some(partition) = batch.replaced {
            store.set_unconfirmed(partition, batch.unconfirmed());
        }
        store.reach(batch.positions.clone());
        self.fail_points.at(FailPoint::BatchApplied);
        let restored = batch.replaced.filter(|_| batch.restored.is_some());
        Applied { store, notifications, initial_list, restored, views: batch.views() }
    }

    /// Publishes the store, notifies the listeners, of a long batch in steps, and commits the batch. From the moment at which
    /// the store shows the batch, `in_flight` says so.
    fn publish<'a>(&self, applied: Option<Applied<'a>>, start: Instant) -> Progress<'a> {
        let mut slot = self.lock_in_flight();
        let Some(in_flight) = slot.as_mut() else { return Progress::Done };
        let mut processor = self.between_batches();
        if let Some(applied) = applied {
            if !applied.store.is_current() {
                return Progress::Stale(Box::new(applied));
            }
            *in_flight = InFlight::Published(Box::new(self.swap(applied, &processor)));
        }
        let InFlight::Published(published) = in_flight else {
            unreachable!("a batch is applied before it is published");
        };
        let Published { swapped, initial_list, becomes_synced, notifications, fan_out, .. } =
            &mut **published;
        self.fail_points.at(FailPoint::BatchPublished);
        let queued = || self.fail_points.at(FailPoint::BatchQueued);
        let more = match *initial_list {
            // Every object of the partition is new to every listener: one walk covers them all.
            Some(partition) => {
                processor.distribute_initial_list(partition, &swapped.snapshot, fan_out, queued);
                false
            }
            None => processor.distribute(notifications, fan_out, queued),
        };
        if *becomes_synced && !more {
            processor.mark_synced(fan_out);
        }
        drop(processor);
        // From here on code of the user may run, and may panic: wakers, metrics, drops of index values, the error hook.
        fan_out.announce();
        if more {
            return Progress::More;
        }
        self.indexer.announce();
        self.fail_points.at(FailPoint::BatchDelivered);
        swapped.before.clear();
        self.queue.commit();
        let taken = slot.take();
        drop(slot);
        if let Some(InFlight::Published(published)) = taken {
            let Published { swapped, fan_out, views, .. } = *published;
            if views.is_some_and(|added| self.views.fill_since(added)) {
                self.packer.wake();
            }
            self.report(&swapped.panicked, fan_out.into_interrupted());
            let bytes = self.cached_bytes(&swapped.snapshot);
            self.telemetry.processed(start.elapsed(), self.queue.len(), &swapped.snapshot, bytes);
        }
        Progress::Done
    }

    /// Makes a batch visible to readers.
    fn swap(&self, applied: Applied<'_>, processor: &Processor) -> Published {
        let Applied { store, notifications, initial_list, restored, views } = applied;
        let was_synced = store.base().is_listed();
        let (swapped, fan_out) = (store.swap(), processor.fan_out());
        if let Some(partition) = restored {
            lock(&self.restored).insert(partition, swapped.snapshot.contents());
        }
        let becomes_synced = !was_synced && swapped.snapshot.is_listed();
        Published { swapped, initial_list, becomes_synced, notifications, fan_out, views }
    }

    /// The objects of a partition as they were restored, once: what its log has.
    pub(crate) fn take_restored(&self, partition: Partition) -> Option<Arc<Contents>> {
        lock(&self.restored).remove(&partition)
    }

    /// Bytes that the objects of a snapshot occupy in memory, without the search trees over them.
    pub(crate) fn cached_bytes(&self, snapshot: &Snapshot) -> usize {
        snapshot.bytes().saturating_add(self.packer.resident_bytes())
    }

    fn report(&self, panicked: &[ObjectKey], interrupted: Vec<Arc<Listener>>) {
        panicked.iter().for_each(|key| self.telemetry.index_panicked(key));
        for listener in interrupted {
            listener.close(false);
            let why = format!("{}: removed, because a panic interrupted its notification", listener.name());
            self.telemetry.task_failed(Task::Handler, why);
        }
    }

    fn lock_in_flight(&self) -> MutexGuard<'_, Option<InFlight>> {
        lock(&self.in_flight)
    }
}

/// Applies the deltas of a batch one by one.
async fn apply_all(store: &mut Transaction<'_>, batch: &Batch) -> Vec<Notification> {
    let mut notifications = Vec::with_capacity(batch.len());
    for (applied, delta) in batch.all().enumerate() {
        if applied > 0 && applied.is_multiple_of(BATCH) {
            yield_now().await;
        }
        apply(store, delta, &mut notifications);
    }
    notifications
}

/// Applies one delta to the store and collects the notifications of handlers.
fn apply(store: &mut Transaction<'_>, delta: Delta, notifications: &mut Vec<Notification>) {
    match delta {
        Delta::Sync(object) => {
            // A resync is only for the object that is stored.
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
                let last = changed_owner(old, deleted.object(), notifications);
                notifications.push(Notification::Change(Event::Deleted(deleted), Some(last)));
            }
        }
    }
}

/// If the final state of a deleted object has another controlling owner than the stored state, notes an update to it first:
/// handlers that reconcile owners must be called for both. Returns the state before the delete.
fn changed_owner(
    old: AnyObject,
    final_state: &AnyObject,
    notifications: &mut Vec<Notification>,
) -> AnyObject {
    let owner = |object: &AnyObject| object.controller().map(|owner| owner.uid);
    if owner(&old).is_none() || owner(&old) == owner(final_state) {
        return old;
    }
    let updated = Event::Updated { old: old.clone(), new: final_state.clone() };
    notifications.push(Notification::Change(updated, Some(old)));
    final_state.clone()
}

/// Collects the notifications of handlers when `new` replaces `old`.
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
