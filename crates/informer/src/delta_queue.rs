//! The [`DeltaFifo`] shared by tasks: reflectors wait for room, the controller waits for work.

use crate::{
    delta::AnyObject,
    delta_fifo::{Batch, Change, Compare, DeltaFifo, Known, Offered, Position, Staged, SyncedBy},
    scope::{Partition, Partitions},
};
use kube_informer_wire::{ObjectKey, sync::lock};
use std::sync::{Mutex, MutexGuard};
use tokio::{sync::Notify, task::yield_now};

/// Objects that are compared with a list while the lock is held.
const STEP: usize = 1000;

/// A [`DeltaFifo`] behind a lock that is held for one short operation, never over an `.await`.
#[derive(Debug)]
pub(crate) struct DeltaQueue {
    fifo: Mutex<DeltaFifo>,
    /// Deltas above which reflectors stop reading from the server. A list may exceed it: its objects have been read
    /// already.
    bound: usize,
    /// There is one consumer, so that no other one can take a stored permit.
    not_empty: Notify,
    room: Notify,
}

impl DeltaQueue {
    pub(crate) fn new(partitions: Partitions, bound: usize) -> Self {
        let fifo = Mutex::new(DeltaFifo::new(partitions));
        Self { fifo, bound: bound.max(1), not_empty: Notify::new(), room: Notify::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    #[cfg(test)]
    pub(crate) fn offer(&self, change: Change, position: Option<Position>, known: &dyn Known) -> Offered {
        let offered = self.lock().offer(change, position, known);
        self.not_empty.notify_one();
        offered
    }

    /// Offers changes in order. Returns how many of them are not queued, because they are known or stale.
    pub(crate) fn offer_all(
        &self,
        changes: impl IntoIterator<Item = (Change, Option<Position>)>,
        known: &dyn Known,
    ) -> usize {
        let mut fifo = self.lock();
        let offer = |(change, position)| fifo.offer(change, position, known);
        let refused = changes.into_iter().map(offer).filter(|offered| *offered != Offered::Queued).count();
        drop(fifo);
        self.not_empty.notify_one();
        refused
    }

    pub(crate) fn judge(&self, change: &Change, known: &dyn Known) -> Offered {
        self.lock().judge(change, known)
    }

    pub(crate) fn bookmark(&self, position: Position) {
        self.lock().bookmark(position);
        self.not_empty.notify_one();
    }

    pub(crate) fn withdraw(&self, partition: Partition) {
        self.lock().withdraw(partition);
        self.not_empty.notify_one();
    }

    pub(crate) fn confirm(&self, position: Position) {
        self.lock().confirm(position);
        self.not_empty.notify_one();
    }

    /// Queues the objects that an earlier process saved, the first list of a partition.
    pub(crate) fn restore(&self, objects: Vec<AnyObject>, position: Position, synced_by: SyncedBy) {
        self.lock().restore(objects, position, synced_by);
        self.not_empty.notify_one();
    }

    pub(crate) fn is_known(&self, object: &AnyObject, compare: Compare, known: &dyn Known) -> bool {
        self.lock().is_known(object, compare, known)
    }

    /// Queues a complete list. Other tasks run while it is compared with the known objects.
    ///
    /// # Cancel safety
    /// If the future is dropped, the list is not queued.
    pub(crate) async fn replace(&self, staged: Staged, position: Position, known: &dyn Known) {
        let mut replacing = self.lock().begin_replace(staged, position);
        loop {
            let more = self.lock().replace_some(&mut replacing, known, STEP);
            if !more {
                break;
            }
            yield_now().await;
        }
        let rest = self.lock().finish_replace(replacing);
        self.not_empty.notify_one();
        // The keys of a long list: not under the lock.
        drop(rest);
    }

    /// Queues a resync of stored objects.
    pub(crate) fn resync(&self, keys: &[ObjectKey], known: &dyn Known) {
        self.lock().resync(keys, known);
        self.not_empty.notify_one();
    }

    pub(crate) fn is_resyncing(&self) -> bool {
        self.lock().is_resyncing()
    }

    /// Resolves when a reflector may read on, with the number of changes that it may queue.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn room(&self) -> usize {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            // Registered before the check, so that room made in between is not missed.
            room.as_mut().enable();
            {
                let fifo = self.lock();
                if fifo.is_closed() || fifo.len() < self.bound {
                    return self.bound.saturating_sub(fifo.len()).max(1);
                }
            }
            room.await;
        }
    }

    /// The next batch, at most `max` deltas or one whole list; `None` once the queue is closed and empty.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped: a batch leaves the queue only with the return.
    pub(crate) async fn pop(&self, max: usize) -> Option<Batch> {
        loop {
            let (batch, is_closed) = {
                let mut fifo = self.lock();
                (fifo.pop(max), fifo.is_closed())
            };
            match batch {
                Some(batch) => return Some(batch),
                None if is_closed => return None,
                None => self.not_empty.notified().await,
            }
        }
    }

    /// The batch popped last is in the store and its notifications are queued.
    pub(crate) fn commit(&self) {
        let committed = self.lock().commit();
        self.room.notify_waiters();
        drop(committed);
    }

    pub(crate) fn close(&self) {
        self.lock().close();
        self.not_empty.notify_one();
        self.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, DeltaFifo> {
        lock(&self.fifo)
    }
}

#[cfg(test)]
mod tests;
