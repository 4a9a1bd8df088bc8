//! The local store: objects, indexes, and the version they show.

mod fields;
mod hashed;
mod index;
mod keyed;
mod snapshot;
mod sorted;
mod values;

pub use index::Index;
pub use index::IndexMissing;
use index::{AnyIndex, TypedIndex};
pub(crate) use index::{Extract, IndexId};
pub(crate) use snapshot::{Contents, ContentsChange, Fill, Objects, Snapshot};
use sorted::SortedSet;

use crate::{
    delta::AnyObject,
    delta_fifo::{Known, SyncedBy},
    scope::{Partition, Partitions},
};
use arc_swap::ArcSwap;
use kube_informer_wire::{FieldPath, ObjectKey, ResourceVersion};
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tokio::sync::{Notify, futures::Notified};

/// The local store of one informer.
///
/// 1. A reader takes the current snapshot and never waits, whatever the writer is doing.
/// 2. A snapshot is consistent: objects, indexes and positions belong together and never change.
/// 3. A [`Transaction`] becomes visible whole, or not at all. It is prepared without a lock, because that calls code of the
///    user, and swapped in under the lock of the processor if no other one was swapped in meanwhile.
pub(crate) struct Indexer {
    current: ArcSwap<Snapshot>,
    /// Notified at each publication. Wakes readers in the order in which they wait: the same run every time.
    published: Notify,
}

/// How the values of a new index are found.
pub(crate) enum NewIndex<V> {
    Function(Extract<V>),
    Field(FieldPath, fn(&[serde_json::Value]) -> Vec<V>),
}

impl Indexer {
    pub(crate) fn new(partitions: Partitions) -> Self {
        static STORES: AtomicU64 = AtomicU64::new(0);
        let snapshot = Snapshot::new(STORES.fetch_add(1, Relaxed), partitions);
        Self { current: ArcSwap::from_pointee(snapshot), published: Notify::new() }
    }

    /// The current state of the store.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Looks at the current state of the store: for one short look, cheaper than to take a snapshot.
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

    /// Begins a change.
    pub(crate) fn begin(&self) -> Transaction<'_> {
        let base = self.current.load_full();
        Transaction { indexer: self, next: Snapshot::clone(&base), base, panicked: Vec::new() }
    }

    /// Adds an index over everything stored, or another user to the one that is over the same field. `lock` keeps other
    /// changes from being published while its guard exists. Returns also the objects on which code of the user panicked.
    pub(crate) fn add_index<V: Ord + Send + Sync + 'static, G>(
        &self,
        new: &NewIndex<V>,
        lock: impl Fn() -> G,
    ) -> (IndexId, Vec<ObjectKey>) {
        let (mut field, mut panicked) = (None, Vec::new());
        let mut build: Option<(TypedIndex<V>, SortedSet<_>)> = None;
        loop {
            let mut store = self.begin();
            let extract = match new {
                NewIndex::Function(extract) => extract.clone(),
                NewIndex::Field(path, values) => {
                    let slot = store.next.slot(path);
                    if let Some(shared) = store.next.share(slot) {
                        match store.try_publish(lock()) {
                            true => return (shared, panicked),
                            false => continue,
                        }
                    }
                    if field.replace(slot) != Some(slot) {
                        build = None;
                    }
                    Extract::Field(slot, *values)
                }
            };
            let (mut index, mut covered) =
                build.take().unwrap_or_else(|| (TypedIndex::new(extract), SortedSet::new()));
            store.next.catch_up(&mut index, &mut covered, &mut panicked);
            let id = store.next.add_index(index.clone_box(), field);
            if store.try_publish(lock()) {
                return (id, panicked);
            }
            build = Some((index, covered));
        }
    }

    /// Removes an index once it was removed as often as it was added.
    pub(crate) fn remove_index<G>(&self, id: IndexId, lock: impl Fn() -> G) -> Result<(), IndexMissing> {
        loop {
            let mut store = self.begin();
            store.next.remove_index(id)?;
            if store.try_publish(lock()) {
                return Ok(());
            }
        }
    }
}

impl Known for Indexer {
    fn get(&self, key: &ObjectKey) -> Option<AnyObject> {
        self.current.load().get(key).cloned()
    }

    fn keys_after(&self, start: Option<&ObjectKey>, max: usize) -> Vec<ObjectKey> {
        self.current.load().keys_after(start, max)
    }
}

/// A change of the store that is invisible until it is published.
pub(crate) struct Transaction<'a> {
    indexer: &'a Indexer,
    /// The state it started from.
    base: Arc<Snapshot>,
    next: Snapshot,
    /// Objects on which code of the user panicked: an index omits them.
    panicked: Vec<ObjectKey>,
}

impl Transaction<'_> {
    /// Stores an object and returns what it replaces.
    pub(crate) fn put(&mut self, object: AnyObject) -> Option<AnyObject> {
        self.next.put(object, &mut self.panicked)
    }

    /// Begins to store many objects at once; `None` if the store has objects. The change is as before until
    /// [`fill`](Self::fill).
    pub(crate) fn begin_fill(&self, objects: usize) -> Option<Fill> {
        self.next.begin_fill(objects)
    }

    /// Stores the objects that were added to a fill.
    pub(crate) fn fill(&mut self, fill: Fill) {
        self.next.fill(fill, &mut self.panicked);
    }

    /// Removes an object and returns it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<AnyObject> {
        self.next.remove(key)
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&AnyObject> {
        self.next.get(key)
    }

    /// The store now shows these versions.
    pub(crate) fn reach(&mut self, positions: BTreeMap<Partition, ResourceVersion>) {
        self.next.reach(positions);
    }

    /// The store may show another history of a partition than the server has: it claims no version of it.
    pub(crate) fn withdraw(&mut self, partition: Partition) {
        self.next.withdraw(partition);
    }

    /// The store shows a list of a partition, or a restored state that is proven: its history is that of the server.
    pub(crate) fn confirm(&mut self, partition: Partition) {
        self.next.confirm(partition);
    }

    /// The newest list of a partition kept these objects without showing their state, and confirmed all others.
    pub(crate) fn set_unconfirmed(&mut self, partition: Partition, keys: &[ObjectKey]) {
        self.next.set_unconfirmed(partition, keys);
    }

    /// The initial list of a partition is complete.
    pub(crate) fn mark_listed(&mut self, partition: Partition) {
        self.next.mark_listed(partition);
    }

    /// The store shows a restored state of a partition, and claims no version of it before it is confirmed.
    pub(crate) fn mark_restored(&mut self, partition: Partition, synced_by: SyncedBy) {
        self.next.mark_restored(partition, synced_by);
    }

    /// The state this change started from.
    pub(crate) fn base(&self) -> &Snapshot {
        &self.base
    }

    /// Whether the store is still in the state this change started from.
    pub(crate) fn is_current(&self) -> bool {
        Arc::ptr_eq(&self.base, &self.indexer.current.load())
    }

    /// Lets the change start from the current state instead, in which indexes were added or removed.
    pub(crate) fn rebase(&mut self) {
        self.base = self.indexer.current.load_full();
        self.next.rebase(&self.base, &mut self.panicked);
    }

    /// Makes the change visible to readers that look. Drops and wakes nothing, so that no code of the user runs and nothing
    /// can panic. The caller holds the lock of the processor, and has checked that the change is current.
    pub(crate) fn swap(self) -> Swapped {
        let next = Arc::new(self.next);
        let before = self.indexer.current.swap(Arc::clone(&next));
        Swapped { snapshot: next, before: vec![self.base, before], panicked: self.panicked }
    }

    /// Publishes the change, unless another one was published since it began. Returns whether it did. `guard` is that of
    /// the lock of the processor; the states that are no longer used are dropped without it.
    fn try_publish<G>(self, guard: G) -> bool {
        if !self.is_current() {
            drop(guard);
            return false;
        }
        let indexer = self.indexer;
        let swapped = self.swap();
        drop(guard);
        indexer.announce();
        drop(swapped);
        true
    }

    /// Makes the change visible. For tests with one writer.
    #[cfg(test)]
    pub(crate) fn publish(self) -> Arc<Snapshot> {
        let indexer = self.indexer;
        let swapped = self.swap();
        indexer.announce();
        swapped.snapshot
    }
}

/// A change that was published.
pub(crate) struct Swapped {
    pub(crate) snapshot: Arc<Snapshot>,
    /// States that are no longer current. With them values of indexes are dropped, which is code of the user: to be dropped
    /// without a lock.
    pub(crate) before: Vec<Arc<Snapshot>>,
    /// Objects on which code of the user panicked: an index omits them.
    pub(crate) panicked: Vec<ObjectKey>,
}

#[cfg(test)]
mod tests;
