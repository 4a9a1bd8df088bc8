//! One consistent state of the store.

use super::{AnyIndex, Indexed, TypedIndex};
use crate::{
    delta::AnyObject,
    scope::{Partition, Partitions},
};
use hashbrown::DefaultHashBuilder;
use imbl::{GenericHashMap, OrdMap, ordmap::Values, shared_ptr::DefaultSharedPtr};
use kube_informer_wire::{FieldPath, FieldPaths, ObjectKey, ResourceVersion};
use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

/// All objects of a snapshot, in the server's order.
pub(crate) type Objects<'a> = Values<'a, ObjectKey, AnyObject, DefaultSharedPtr>;

/// One consistent state of the store. Cloning shares all nodes of the trees.
#[derive(Clone)]
pub(crate) struct Snapshot {
    partitions: Partitions,
    /// In the server's order.
    objects: OrdMap<ObjectKey, AnyObject>,
    /// The same objects, found at once: most reads are for one object. Invariant: covers exactly `objects`.
    by_key: GenericHashMap<ObjectKey, AnyObject, DefaultHashBuilder, DefaultSharedPtr>,
    /// Invariant: every index covers exactly `objects`, except those it cannot read.
    indexes: Vec<Box<dyn AnyIndex>>,
    /// The fields that indexes are over, in the order of their slots.
    field_paths: Vec<FieldPath>,
    /// `field_paths`, compiled.
    fields: Arc<FieldPaths>,
    /// The version each partition shows; none before its first list.
    positions: BTreeMap<Partition, ResourceVersion>,
    /// Partitions that may show another history than the server has. Invariant: none of them is in `positions`.
    withdrawn: BTreeSet<Partition>,
    /// Partitions whose first list is complete.
    filled: BTreeSet<Partition>,
    bytes: usize,
}

impl Snapshot {
    pub(super) fn new(partitions: Partitions) -> Self {
        Self {
            partitions,
            objects: OrdMap::new(),
            by_key: GenericHashMap::default(),
            indexes: Vec::new(),
            field_paths: Vec::new(),
            fields: Arc::default(),
            positions: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            filled: BTreeSet::new(),
            bytes: 0,
        }
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&AnyObject> {
        self.by_key.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// Bytes on the heap, without the nodes of the trees.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// All objects in the server's order.
    pub(crate) fn objects(&self) -> Objects<'_> {
        self.objects.values()
    }

    /// The objects of a namespace in the server's order.
    pub(crate) fn namespace(&self, namespace: &str) -> impl Iterator<Item = &AnyObject> {
        // `ns/` is below every `ns/name` and above whatever sorts before the namespace.
        let start = ObjectKey::namespaced(namespace, "");
        let namespace = namespace.to_owned();
        self.objects
            .range(start..)
            .take_while(move |(key, _)| key.namespace() == Some(&namespace))
            .map(|(_, object)| object)
    }

    /// The first object after a key, or the first of all.
    pub(crate) fn after(&self, key: Option<&ObjectKey>) -> Option<&AnyObject> {
        let start = key.map_or(Bound::Unbounded, |key| Bound::Excluded(key.clone()));
        self.objects.range((start, Bound::Unbounded)).next().map(|(_, object)| object)
    }

    pub(crate) fn index<V: Ord + Clone + Send + Sync + 'static>(&self, id: u64) -> Option<&TypedIndex<V>> {
        let index = self.indexes.iter().find(|index| index.id() == id)?;
        index.as_any().downcast_ref()
    }

    pub(crate) fn indexes(&self) -> &[Box<dyn AnyIndex>] {
        &self.indexes
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

    /// Whether the first list of every partition is complete.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.len() == self.partitions.len()
    }

    pub(crate) fn is_partition_filled(&self, partition: Partition) -> bool {
        self.filled.contains(&partition)
    }

    pub(super) fn put(&mut self, object: AnyObject) -> Option<AnyObject> {
        self.bytes += object.heap_size();
        let old = self.objects.insert(object.key().clone(), object.clone());
        self.by_key.insert(object.key().clone(), object.clone());
        self.bytes -= old.as_ref().map_or(0, |old| old.heap_size());
        if !self.indexes.is_empty() {
            let new = self.indexed(&object);
            let old = old.as_ref().map(|old| self.indexed(old));
            for index in &mut self.indexes {
                index.update(old.as_ref(), Some(&new));
            }
        }
        old
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<AnyObject> {
        let old = self.objects.remove(key)?;
        self.by_key.remove(key);
        self.bytes -= old.heap_size();
        if !self.indexes.is_empty() {
            let gone = self.indexed(&old);
            for index in &mut self.indexes {
                index.update(Some(&gone), None);
            }
        }
        Some(old)
    }

    pub(super) fn add_index(&mut self, mut index: Box<dyn AnyIndex>) {
        if let Some(path) = index.take_slot(self.field_paths.len()) {
            self.field_paths.push(path);
            self.fields = Arc::new(FieldPaths::new(self.field_paths.iter().cloned()));
        }
        for object in self.objects.values() {
            index.update(None, Some(&self.indexed(object)));
        }
        self.indexes.push(index);
    }

    /// The fields that indexes are over: what is to be read of objects before they are packed.
    pub(crate) fn fields(&self) -> &Arc<FieldPaths> {
        &self.fields
    }

    /// What all indexes over fields want of an object: read when it arrived, or, if it arrived before the youngest
    /// of them, now, in one pass over its bytes.
    fn indexed<'a>(&self, object: &'a AnyObject) -> Indexed<'a> {
        let read = |object: &AnyObject| self.fields.read(&object.json().ok()?).ok();
        let fields = match object.packed_fields().filter(|found| found.len() >= self.fields.len()) {
            _ if self.fields.is_empty() => None,
            Some(found) => Some(Cow::Borrowed(found)),
            None => read(object).map(Cow::Owned),
        };
        Indexed { object, fields }
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
    }

    pub(super) fn fill(&mut self, partition: Partition) {
        self.filled.insert(partition);
    }
}
