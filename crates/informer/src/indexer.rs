//! The local store: objects, indexes, and the version they show.

mod index;
mod snapshot;

pub use index::Index;
pub(crate) use index::{AnyIndex, Extract, Indexed, TypedIndex};
pub(crate) use snapshot::{Objects, Snapshot};

use crate::{
    delta::AnyObject,
    delta_fifo::Known,
    scope::{Partition, Partitions},
};
use arc_swap::ArcSwap;
use kube_informer_wire::{ObjectKey, ResourceVersion};
use std::{collections::BTreeMap, sync::Arc};
use tokio::sync::{Notify, futures::Notified};

/// The local store of one informer.
///
/// 1. A reader takes the current snapshot and never waits, whatever the writer is doing.
/// 2. A snapshot is consistent: objects, indexes and positions belong together and never change.
/// 3. There is one writer at a time. A [`Transaction`] becomes visible whole, or not at all.
pub(crate) struct Indexer {
    current: ArcSwap<Snapshot>,
    /// Told at each publication. Wakes readers in the order in which they wait: the same run every time.
    published: Notify,
}

impl Indexer {
    pub(crate) fn new(partitions: Partitions) -> Self {
        Self { current: ArcSwap::from_pointee(Snapshot::new(partitions)), published: Notify::new() }
    }

    /// What the store holds now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Looks at what the store holds now: for one short look, cheaper than to take a snapshot.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&Snapshot) -> R) -> R {
        look(&self.current.load())
    }

    /// Resolves at the next publication. To miss none, enable it before looking.
    pub(crate) fn published(&self) -> Notified<'_> {
        self.published.notified()
    }

    /// Wakes those that wait for a publication.
    pub(crate) fn announce(&self) {
        self.published.notify_waiters();
    }

    /// Begins a change. The caller makes sure that there is only one at a time.
    pub(crate) fn begin(&self) -> Transaction<'_> {
        Transaction { indexer: self, next: Snapshot::clone(&self.current.load()) }
    }
}

impl Known for Indexer {
    fn get(&self, key: &ObjectKey) -> Option<AnyObject> {
        self.current.load().get(key).cloned()
    }

    fn each(&self, visit: &mut dyn FnMut(&AnyObject)) {
        self.current.load().objects().for_each(visit);
    }
}

/// A change of the store that nobody sees until it is published.
pub(crate) struct Transaction<'a> {
    indexer: &'a Indexer,
    next: Snapshot,
}

impl Transaction<'_> {
    /// Stores an object and returns what it replaces.
    pub(crate) fn put(&mut self, object: AnyObject) -> Option<AnyObject> {
        self.next.put(object)
    }

    /// Removes an object and returns it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<AnyObject> {
        self.next.remove(key)
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&AnyObject> {
        self.next.get(key)
    }

    /// Adds an index over everything stored.
    pub(crate) fn add_index(&mut self, index: Box<dyn AnyIndex>) {
        self.next.add_index(index);
    }

    /// The store now shows these versions.
    pub(crate) fn reach(&mut self, positions: BTreeMap<Partition, ResourceVersion>) {
        self.next.reach(positions);
    }

    /// The store may show another history of a partition than the server has: it claims no version of it.
    pub(crate) fn withdraw(&mut self, partition: Partition) {
        self.next.withdraw(partition);
    }

    /// The store shows a list of a partition: its history is that of the server.
    pub(crate) fn confirm(&mut self, partition: Partition) {
        self.next.confirm(partition);
    }

    /// The first list of a partition is complete.
    pub(crate) fn fill(&mut self, partition: Partition) {
        self.next.fill(partition);
    }

    /// Makes the change visible.
    pub(crate) fn publish(self) -> Arc<Snapshot> {
        let indexer = self.indexer;
        let (next, _) = self.swap();
        indexer.announce();
        next
    }

    /// Makes the change visible to those that look. Returns it, and what the store held before: nothing is dropped
    /// or woken here, so that no code of the user runs and nothing can panic.
    pub(crate) fn swap(self) -> (Arc<Snapshot>, Arc<Snapshot>) {
        let next = Arc::new(self.next);
        let before = self.indexer.current.swap(Arc::clone(&next));
        (next, before)
    }
}

#[cfg(test)]
mod tests;
