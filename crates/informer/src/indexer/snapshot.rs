//! One consistent state of the store.

mod fill;

pub(crate) use fill::Fill;

use super::{
    fields::{Fields, Indexed, Slot},
    hashed::HashTable,
    index::{AnyIndex, IndexId, IndexMissing, TypedIndex},
    keyed::Keyed,
    sorted::{Change, Iter, SortedSet},
};
use crate::{
    delta::AnyObject,
    delta_fifo::SyncedBy,
    memory::MemoryUsage,
    scope::{Partition, Partitions},
};
use hashbrown::DefaultHashBuilder;
use kube_informer_wire::{FieldPath, FieldPaths, ObjectKey, PackUsage, ResourceVersion};
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::BuildHasher,
    iter::Map,
    sync::Arc,
};

/// All objects of a snapshot, in the server's order.
pub(crate) type Objects<'a> = Map<Iter<'a, Keyed>, fn(&'a Keyed) -> &'a AnyObject>;

/// The objects of a snapshot without its indexes. Values of indexes are of types of the user, and must not be dropped under the
/// lock of a listener.
pub(crate) struct Contents {
    partitions: Partitions,
    objects: SortedSet<Keyed>,
}

impl Contents {
    /// The first object after a key, or the first of all.
    pub(crate) fn after(&self, key: Option<&ObjectKey>) -> Option<&AnyObject> {
        self.objects.after(|object| Some(object.key()) <= key).next().map(Keyed::object)
    }

    pub(crate) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// All objects in the server's order.
    pub(crate) fn iter(&self) -> Objects<'_> {
        self.objects.iter().map(Keyed::object)
    }

    /// Whether both are the same, without looking at the objects. Different ones may have the same objects.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.objects.is_same(&other.objects)
    }

    /// Whether the objects of a partition are others in another state. Takes time in proportion to all changes that lead to it.
    pub(crate) fn differs_in(&self, partition: Partition, new: &Self) -> bool {
        let key = |change: &ContentsChange<'_>| match change {
            ContentsChange::Put(object) | ContentsChange::Removed(object) => object.key().clone(),
        };
        !self.is_same(new) && self.diff(new).any(|change| self.partitions.contains(partition, &key(&change)))
    }

    /// The changes that lead to another state. Takes time in proportion to them.
    pub(crate) fn diff<'a>(&'a self, new: &'a Self) -> impl Iterator<Item = ContentsChange<'a>> {
        self.objects.diff(&new.objects, Keyed::is_identical).map(|change| match change {
            Change::Added(new) | Change::Replaced { new, .. } => ContentsChange::Put(new.object()),
            Change::Removed(old) => ContentsChange::Removed(old.object()),
        })
    }
}

/// A difference of two states.
pub(crate) enum ContentsChange<'a> {
    Put(&'a AnyObject),
    Removed(&'a AnyObject),
}

/// One consistent state of the store. Cloning shares all nodes of the trees.
#[derive(Clone)]
pub(crate) struct Snapshot {
    /// Identifies the store in this process.
    store: u64,
    partitions: Partitions,
    /// In the server's order.
    objects: SortedSet<Keyed>,
    /// The same objects by hash, because most reads are for one object. Invariant: covers exactly `objects`.
    by_key: HashTable<AnyObject>,
    /// Hashes the keys of `by_key`.
    hasher: DefaultHashBuilder,
    /// Invariant: every index covers exactly `objects`, except those it omits.
    indexes: Vec<Entry>,
    /// Number of the next index.
    next_index: u64,
    fields: Fields,
    /// The version each partition shows; none before its initial list.
    positions: BTreeMap<Partition, ResourceVersion>,
    /// Partitions that may show another history than the server has. Invariant: none of them is in `positions`.
    withdrawn: BTreeSet<Partition>,
    /// Partitions whose initial list is complete, or restored.
    filled: BTreeSet<Partition>,
    /// Partitions that show a restored state, until it is proven to be that of the server.
    unproven: BTreeSet<Partition>,
    /// Objects that the newest list kept without showing their state. Their versions may belong to an earlier history of the
    /// server. Invariant: all of them are in `objects`. Shared like them, because it may have every key.
    unconfirmed: SortedSet<ObjectKey>,
    /// Number of complete lists.
    lists: u64,
    bytes: usize,
}

/// An index of the store.
#[derive(Clone)]
struct Entry {
    number: u64,
    index: Box<dyn AnyIndex>,
    /// The field it is over. Indexes over equal fields are one.
    field: Option<Slot>,
    /// How often it was added and not removed.
    users: usize,
}

impl Snapshot {
    pub(super) fn new(store: u64, partitions: Partitions) -> Self {
        Self {
            store,
            partitions,
            objects: SortedSet::new(),
            by_key: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            indexes: Vec::new(),
            next_index: 0,
            fields: Fields::default(),
            positions: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            filled: BTreeSet::new(),
            unproven: BTreeSet::new(),
            unconfirmed: SortedSet::new(),
            lists: 0,
            bytes: 0,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&AnyObject> {
        self.by_key.get(self.hasher.hash_one(key), |object| object.key() == key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Bytes in allocations of the objects alone: without the nodes of the trees, and without packed content.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory of this state, with the packed content and the shared values of a packer.
    pub(crate) fn memory(&self, packed: &PackUsage) -> MemoryUsage {
        let keys: usize = self.objects().map(|object| object.key().heap_size()).sum();
        let unpacked: usize = self.objects().map(|object| object.unpacked_size()).sum();
        let indexes: usize = self.indexes.iter().map(|entry| entry.index.heap_size()).sum();
        MemoryUsage {
            objects: self.len(),
            records: self.bytes.saturating_sub(keys + unpacked),
            keys,
            labels: packed.labels,
            owners: packed.owners,
            fields: packed.fields,
            trees: self.objects.heap_size() + self.by_key.heap_size() + indexes,
            views: self.objects().map(|object| object.views_size()).sum(),
            content: unpacked + packed.live,
            garbage: packed.garbage,
            unused: packed.unused,
            tables: packed.tables,
            cached: packed.cached,
            dictionaries: packed.dictionaries,
            disk_content: packed.disk_live,
            disk_garbage: packed.disk_garbage,
            disk_unused: packed.disk_unused,
        }
    }

    /// All objects in the server's order.
    pub(crate) fn objects(&self) -> Objects<'_> {
        self.objects.iter().map(Keyed::object)
    }

    /// The objects of a namespace in the server's order.
    pub(crate) fn namespace(&self, namespace: &str) -> impl Iterator<Item = &AnyObject> {
        // `ns/` is below every `ns/name` and above all keys of namespaces that sort before it.
        let start = ObjectKey::namespaced(namespace, "");
        let namespace = namespace.to_owned();
        let objects = self.objects.from(&start).map(Keyed::object);
        objects.take_while(move |object| object.namespace() == Some(&namespace))
    }

    /// The objects without the indexes. Shares all nodes of their tree.
    pub(crate) fn contents(&self) -> Arc<Contents> {
        Arc::new(Contents { partitions: self.partitions.clone(), objects: self.objects.clone() })
    }

    /// The first `max` keys after a key, or of all.
    pub(crate) fn keys_after(&self, start: Option<&ObjectKey>, max: usize) -> Vec<ObjectKey> {
        let after = self.objects.after(|object| Some(object.key()) <= start);
        after.take(max).map(|object| object.key().clone()).collect()
    }

    pub(crate) fn index<V: Ord + Send + Sync + 'static>(
        &self,
        id: IndexId,
    ) -> Result<&TypedIndex<V>, IndexMissing> {
        let index = self.entry(id)?.index.as_any().downcast_ref();
        Ok(index.expect("a handle has the type of its index"))
    }

    /// Number of objects that an index omits because it cannot read them.
    pub(crate) fn omitted(&self, id: IndexId) -> Result<usize, IndexMissing> {
        Ok(self.entry(id)?.index.omitted())
    }

    fn entry(&self, id: IndexId) -> Result<&Entry, IndexMissing> {
        if id.store != self.store {
            return Err(IndexMissing::Foreign);
        }
        let missing =
            if id.number < self.next_index { IndexMissing::Removed } else { IndexMissing::AddedLater };
        self.indexes.iter().find(|entry| entry.number == id.number).ok_or(missing)
    }

    pub(crate) fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// The version a partition shows.
    pub(crate) fn position(&self, partition: Partition) -> Option<&ResourceVersion> {
        self.positions.get(&partition)
    }

    /// Whether the server may have another history of a partition, in which versions mean other states.
    pub(crate) fn is_withdrawn(&self, partition: Partition) -> bool {
        self.withdrawn.contains(&partition)
    }

    /// Whether the version of an object can be compared with others: a list or a watch showed its state.
    pub(crate) fn is_confirmed(&self, key: &ObjectKey) -> bool {
        self.unconfirmed.get(key).is_none()
    }

    /// Whether every partition is synced: it shows a state that the server had after this process started.
    pub(crate) fn is_listed(&self) -> bool {
        self.filled.len() == self.partitions.len() && self.unproven.is_empty()
    }

    pub(crate) fn lists(&self) -> u64 {
        self.lists
    }

    /// Whether a partition is synced.
    pub(crate) fn is_partition_listed(&self, partition: Partition) -> bool {
        self.filled.contains(&partition) && !self.unproven.contains(&partition)
    }

    /// Whether a partition shows a state, which may be a restored one.
    pub(crate) fn is_partition_filled(&self, partition: Partition) -> bool {
        self.filled.contains(&partition)
    }

    /// Stores an object and returns what it replaces. Adds its key to `panicked` if code of the user panicked on it.
    pub(super) fn put(&mut self, object: AnyObject, panicked: &mut Vec<ObjectKey>) -> Option<AnyObject> {
        self.bytes += object.own_size();
        let hash = |object: &AnyObject| self.hasher.hash_one(object.key());
        let is_it = |known: &AnyObject| known.key() == object.key();
        let old = self.by_key.insert(hash(&object), object.clone(), is_it, hash);
        let is_old = |known: &Keyed| old.as_ref().is_some_and(|old| old.is_identical(known.object()));
        self.objects.replace(Keyed::new(object.clone()), is_old);
        self.bytes -= old.as_ref().map_or(0, |old| old.own_size());
        self.update_indexes(old.as_ref(), Some(&object), panicked);
        // A change of an object shows its state.
        self.unconfirmed.remove(object.key());
        old
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<AnyObject> {
        let old = self.objects.remove(key)?.object;
        self.by_key.remove(self.hasher.hash_one(key), |object| object.key() == key);
        self.bytes -= old.own_size();
        self.update_indexes(Some(&old), None, &mut Vec::new());
        self.unconfirmed.remove(key);
        Some(old)
    }

    fn update_indexes(
        &mut self,
        old: Option<&AnyObject>,
        new: Option<&AnyObject>,
        panicked: &mut Vec<ObjectKey>,
    ) {
        let old = old.map(|old| Indexed::new(old, &self.fields));
        let new = new.map(|new| Indexed::new(new, &self.fields));
        for entry in &mut self.indexes {
            let updated = entry.index.update(old.as_ref(), new.as_ref());
            if let (Err(_), Some(new)) = (updated, &new) {
                panicked.push(new.object.key().clone());
            }
        }
    }

    /// Brings an index that covers `covered` up to this state. Adds the keys on which code of the user panicked to `panicked`.
    pub(super) fn catch_up(
        &self,
        index: &mut dyn AnyIndex,
        covered: &mut SortedSet<Keyed>,
        panicked: &mut Vec<ObjectKey>,
    ) {
        for change in covered.diff(&self.objects, Keyed::is_identical) {
            let (old, new) = match change {
                Change::Added(new) => (None, Some(new)),
                Change::Replaced { old, new } => (Some(old), Some(new)),
                Change::Removed(old) => (Some(old), None),
            };
            let old = old.map(|old| Indexed::new(old.object(), &self.fields));
            let new = new.map(|new| Indexed::new(new.object(), &self.fields));
            let updated = index.update(old.as_ref(), new.as_ref());
            if let (Err(_), Some(new)) = (updated, &new) {
                panicked.push(new.object.key().clone());
            }
        }
        *covered = self.objects.clone();
    }

    /// Takes over the indexes that were added and removed in `current` since this state began there. Their objects are the same
    /// as then, because one task writes objects. Code of the user runs for added indexes only.
    pub(super) fn rebase(&mut self, current: &Self, panicked: &mut Vec<ObjectKey>) {
        self.next_index = current.next_index;
        self.fields = current.fields.clone();
        let mut own = std::mem::take(&mut self.indexes);
        let rebase = |entry: &Entry| match own.iter().position(|own| own.number == entry.number) {
            Some(at) => Entry { users: entry.users, ..own.swap_remove(at) },
            None => {
                let mut added = entry.clone();
                self.catch_up(&mut *added.index, &mut current.objects.clone(), panicked);
                added
            }
        };
        let indexes = current.indexes.iter().map(rebase).collect();
        self.indexes = indexes;
    }

    /// The slot of a field that is to be indexed.
    pub(super) fn slot(&mut self, path: &FieldPath) -> Slot {
        self.fields.slot(path)
    }

    /// Adds one more user to the index over a field, if there is one.
    pub(super) fn share(&mut self, field: Slot) -> Option<IndexId> {
        let entry = self.indexes.iter_mut().find(|entry| entry.field == Some(field))?;
        entry.users += 1;
        Some(IndexId { store: self.store, number: entry.number })
    }

    /// Adds an index that covers this state.
    pub(super) fn add_index(&mut self, index: Box<dyn AnyIndex>, field: Option<Slot>) -> IndexId {
        let number = self.next_index;
        self.next_index += 1;
        self.indexes.push(Entry { number, index, field, users: 1 });
        IndexId { store: self.store, number }
    }

    /// Removes an index once it was removed as often as it was added.
    pub(super) fn remove_index(&mut self, id: IndexId) -> Result<(), IndexMissing> {
        self.entry(id)?;
        for entry in self.indexes.iter_mut().filter(|entry| entry.number == id.number) {
            entry.users -= 1;
        }
        let unused = self.indexes.iter().filter(|entry| entry.users == 0).filter_map(|entry| entry.field);
        unused.for_each(|slot| self.fields.release(slot));
        self.indexes.retain(|entry| entry.users > 0);
        Ok(())
    }

    /// The paths of the fields that packed objects hold, by slot; `None` if no index is over the field any more.
    pub(crate) fn field_paths(&self) -> Vec<Option<FieldPath>> {
        self.fields.paths()
    }

    /// The fields that indexes are over, to be read of objects before they are packed.
    pub(crate) fn fields(&self) -> &Arc<FieldPaths> {
        self.fields.together()
    }

    pub(super) fn reach(&mut self, positions: BTreeMap<Partition, ResourceVersion>) {
        self.positions.extend(positions);
    }

    pub(super) fn withdraw(&mut self, partition: Partition) {
        self.positions.remove(&partition);
        self.withdrawn.insert(partition);
    }

    pub(super) fn confirm(&mut self, partition: Partition) {
        self.withdrawn.remove(&partition);
        self.unproven.remove(&partition);
    }

    /// Takes time in proportion to the old and the new keys: once for each list.
    pub(super) fn set_unconfirmed(&mut self, partition: Partition, keys: &[ObjectKey]) {
        let others = self.unconfirmed.iter().filter(|key| !self.partitions.contains(partition, key));
        self.unconfirmed = SortedSet::from_sorted(others.chain(keys).cloned());
    }

    pub(super) fn mark_listed(&mut self, partition: Partition) {
        self.filled.insert(partition);
        self.lists += 1;
    }

    pub(super) fn mark_restored(&mut self, partition: Partition, synced_by: SyncedBy) {
        self.filled.insert(partition);
        self.withdraw(partition);
        if synced_by == SyncedBy::Proof {
            self.unproven.insert(partition);
        }
    }
}

#[cfg(test)]
mod tests;
