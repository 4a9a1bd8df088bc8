//! Storing many objects at once.

use super::Snapshot;
use crate::{
    delta::AnyObject,
    indexer::{
        fields::{Fields, Indexed},
        hashed::HashTable,
        index::FillIndex,
        keyed::Keyed,
        sorted::SetBuilder,
    },
};
use hashbrown::DefaultHashBuilder;
use kube_informer_wire::ObjectKey;
use std::{hash::BuildHasher, mem::take};

/// Places of an index that are filed in one step.
const STEP: usize = 4096;

/// Objects that are stored at once in an empty store, with the same result as if they were stored one by one.
///
/// 1. [`add`](Self::add) calls the index functions. A panic of code of the user costs an object its place in an index, as in
///    [`Snapshot::put`].
/// 2. `add` reads everything that is needed of an object, because the records of a long list do not fit into the caches of the
///    processor. If the objects come in the order of keys, no later step reads them.
/// 3. A [`step`](Self::step) takes bounded time, except that one builds the whole hash table and one for each index sorts its
///    places: 3 ms and less than 2 ms for 150,000 objects.
pub(crate) struct Fill {
    objects: SetBuilder<Keyed>,
    /// The same objects with the hashes of their keys.
    hashed: Vec<(u64, AnyObject)>,
    by_key: HashTable<AnyObject>,
    hasher: DefaultHashBuilder,
    /// One for each index of the store, in the same order.
    indexes: Vec<Box<dyn FillIndex>>,
    fields: Fields,
    bytes: usize,
    /// Objects on which code of the user panicked.
    panicked: Vec<ObjectKey>,
    next: Step,
}

/// The next step after all objects were added.
enum Step {
    /// Builds the hash table.
    Hash,
    /// Sorts the places of an index, if there is one.
    Sort(usize),
    /// Files some places of an index.
    File(usize),
}

impl Fill {
    /// Adds an object, which must have another key than all others.
    pub(crate) fn add(&mut self, object: &AnyObject) {
        debug_assert!(matches!(self.next, Step::Hash), "objects are added before the first step");
        self.bytes += object.own_size();
        self.objects.push(Keyed::new(object.clone()));
        self.hashed.push((self.hasher.hash_one(object.key()), object.clone()));
        let new = Indexed::new(object, &self.fields);
        for index in &mut self.indexes {
            if index.add(&new).is_err() {
                self.panicked.push(object.key().clone());
            }
        }
    }

    /// Does a part of the work that is left once all objects were added. Returns whether there was any.
    pub(crate) fn step(&mut self) -> bool {
        self.next = match self.next {
            Step::Hash => {
                self.by_key = HashTable::from_distinct(take(&mut self.hashed));
                Step::Sort(0)
            }
            Step::Sort(at) => {
                let Some(index) = self.indexes.get_mut(at) else { return false };
                index.sort(self.objects.is_ascending());
                Step::File(at)
            }
            Step::File(at) if self.indexes[at].file(STEP) => Step::File(at),
            Step::File(at) => Step::Sort(at + 1),
        };
        true
    }
}

impl Snapshot {
    /// Begins to store this many objects at once; `None` if the store has objects.
    pub(in crate::indexer) fn begin_fill(&self, objects: usize) -> Option<Fill> {
        let indexes = || self.indexes.iter().map(|entry| entry.index.begin_fill(objects)).collect();
        (self.len() == 0).then(|| Fill {
            objects: SetBuilder::new(),
            hashed: Vec::with_capacity(objects),
            by_key: HashTable::new(),
            hasher: self.hasher.clone(),
            indexes: indexes(),
            fields: self.fields.clone(),
            bytes: 0,
            panicked: Vec::new(),
            next: Step::Hash,
        })
    }

    /// Stores the objects of a fill that began at this state. Adds the keys on which code of the user panicked to `panicked`,
    /// once for each index.
    pub(in crate::indexer) fn fill(&mut self, mut fill: Fill, panicked: &mut Vec<ObjectKey>) {
        while fill.step() {}
        debug_assert!(
            self.len() == 0 && self.unconfirmed.len() == 0 && self.indexes.len() == fill.indexes.len()
        );
        self.objects = fill.objects.finish();
        self.by_key = fill.by_key;
        self.bytes = fill.bytes;
        for (entry, index) in self.indexes.iter_mut().zip(fill.indexes) {
            entry.index = index.finish();
        }
        panicked.append(&mut fill.panicked);
    }
}

#[cfg(test)]
mod tests;
