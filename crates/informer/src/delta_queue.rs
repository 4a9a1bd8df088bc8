//! The [`DeltaFifo`] as tasks share it: reflectors wait for room, the controller waits for work.

use crate::{
    delta::AnyObject,
    delta_fifo::{Batch, Change, Compare, DeltaFifo, Known, Offered, Position, Staged},
    scope::{Partition, Partitions},
};
use kube_informer_wire::sync::lock;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// A [`DeltaFifo`] behind a lock that is held for one operation at a time, never over an `.await`.
#[derive(Debug)]
pub(crate) struct DeltaQueue {
    fifo: Mutex<DeltaFifo>,
    /// Deltas beyond which reflectors stop reading from the server. A Replace may go over it: its objects have
    /// been read already.
    bound: usize,
    /// There is one consumer, so that a stored permit cannot be taken by somebody else.
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

    pub(crate) fn offer(&self, change: Change, position: Option<Position>, known: &dyn Known) -> Offered {
        let offered = self.lock().offer(change, position, known);
        self.not_empty.notify_one();
        offered
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

    pub(crate) fn is_known(&self, object: &AnyObject, compare: Compare, known: &dyn Known) -> bool {
        self.lock().is_known(object, compare, known)
    }

    pub(crate) fn replace(&self, staged: Staged, position: Position, known: &dyn Known) {
        self.lock().replace(staged, position, known);
        self.not_empty.notify_one();
    }

    pub(crate) fn resync(&self, known: &dyn Known) {
        self.lock().resync(known);
        self.not_empty.notify_one();
    }

    /// Resolves when a reflector may read on.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub(crate) async fn room(&self) {
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            // Registered before looking, so that room made in between is not missed.
            room.as_mut().enable();
            {
                let fifo = self.lock();
                if fifo.is_closed() || fifo.len() < self.bound {
                    return;
                }
            }
            room.await;
        }
    }

    /// The next batch, at most `max` deltas or one whole Replace; `None` once the queue is closed and empty.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped: a batch leaves the queue only with the return.
    pub(crate) async fn pop(&self, max: usize) -> Option<Batch> {
        loop {
            {
                let mut fifo = self.lock();
                if let Some(batch) = fifo.pop(max) {
                    return Some(batch);
                }
                if fifo.is_closed() {
                    return None;
                }
            }
            self.not_empty.notified().await;
        }
    }

    /// The batch popped last is in the store and its notifications are queued.
    pub(crate) fn commit(&self) {
        self.lock().commit();
        self.room.notify_waiters();
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
