//! A complete list in the queue.

use super::{DeltaFifo, Filed, Known, Position, Staged, SyncedBy, change::Newest, staged::Changed};
use crate::delta::{AnyObject, Deleted, Delta};
use kube_informer_wire::ObjectKey;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, vec};

/// A complete list: tombstones of the objects that it lacks, then its news.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(super) position: Position,
    /// Set if an earlier process saved the list.
    pub(super) restored: Option<SyncedBy>,
    tombstones: BTreeMap<ObjectKey, Deleted<Value>>,
    changed: Changed,
    /// Objects that are kept although the list does not show their state.
    unconfirmed: Vec<ObjectKey>,
    /// Number of views that had been added when the list began; `None` if the objects were restored, without views.
    views: Option<u64>,
}

impl Replacement {
    pub(super) fn views(&self) -> Option<u64> {
        self.views
    }

    pub(super) fn unconfirmed(&self) -> &[ObjectKey] {
        &self.unconfirmed
    }

    pub(super) fn len(&self) -> usize {
        self.tombstones.len().saturating_add(self.changed.len())
    }

    /// Its delta of an object.
    pub(super) fn get(&self, key: &ObjectKey) -> Option<Delta> {
        match self.tombstones.get(key) {
            Some(deleted) => Some(Delta::Deleted(deleted.clone())),
            None => self.changed.get(key).cloned().map(Delta::Replaced),
        }
    }

    pub(super) fn has(&self, key: &ObjectKey) -> bool {
        self.tombstones.contains_key(key) || self.changed.get(key).is_some()
    }

    /// Its deltas in order.
    pub(super) fn deltas(&self) -> impl Iterator<Item = Delta> {
        let tombstones = self.tombstones.values().cloned().map(Delta::Deleted);
        tombstones.chain(self.changed.iter().cloned().map(Delta::Replaced))
    }

    /// Its objects in order, if it deletes none.
    pub(super) fn added(&self) -> Option<impl Iterator<Item = &AnyObject>> {
        self.tombstones.is_empty().then(|| self.changed.iter())
    }

    /// The keys of its news.
    fn changed_keys(&self) -> impl Iterator<Item = &ObjectKey> {
        self.changed.iter().map(|object| object.key())
    }
}

/// A list that is being prepared for the queue. Each step takes bounded time, so that nothing else waits for long.
///
/// While a list of a partition is prepared, no change of that partition is offered, because both come from the same
/// reflector. Objects only move on from the queue to the store. So the keys in the queue are collected first.
#[derive(Debug)]
pub(crate) struct Replacing {
    staged: Staged,
    position: Position,
    /// Keys that were queued or in flight at the start.
    moving: vec::IntoIter<ObjectKey>,
    stored: Cursor,
    tombstones: BTreeMap<ObjectKey, Deleted<Value>>,
    /// Objects that are kept although the list does not show their state.
    unconfirmed: Vec<ObjectKey>,
}

/// How far the stored objects have been compared with the list.
#[derive(Debug)]
enum Cursor {
    After(Option<ObjectKey>),
    Done,
}

impl Replacing {
    /// The next keys to compare with the list; none at the end.
    fn next_keys(&mut self, known: &dyn Known, max: usize) -> Vec<ObjectKey> {
        let moving: Vec<_> = self.moving.by_ref().take(max).collect();
        if !moving.is_empty() {
            return moving;
        }
        let Cursor::After(last) = &self.stored else { return Vec::new() };
        let keys = known.keys_after(last.as_ref(), max);
        self.stored = match keys.last() {
            Some(last) => Cursor::After(Some(last.clone())),
            None => Cursor::Done,
        };
        keys
    }
}

impl DeltaFifo {
    /// Begins to queue a complete list.
    pub(crate) fn begin_replace(&self, staged: Staged, position: Position) -> Replacing {
        let lists = self.lists.iter().map(|(_, list)| list).chain(&self.in_flight.list);
        let listed = lists.flat_map(|list| list.changed_keys());
        let moving = self.in_flight.changes.keys().chain(self.items.keys()).chain(listed);
        let moving = moving.filter(|key| self.partitions.contains(position.partition, key)).cloned();
        Replacing {
            moving: moving.collect::<Vec<_>>().into_iter(),
            stored: Cursor::After(None),
            tombstones: BTreeMap::new(),
            unconfirmed: Vec::new(),
            staged,
            position,
        }
    }

    /// Compares up to `max` known objects with the list. Returns whether there may be more.
    pub(crate) fn replace_some(&self, replacing: &mut Replacing, known: &dyn Known, mut max: usize) -> bool {
        while max > 0 {
            let keys = replacing.next_keys(known, max);
            if keys.is_empty() {
                return false;
            }
            max = max.saturating_sub(keys.len());
            keys.into_iter().for_each(|key| self.compare(replacing, key, known));
        }
        true
    }

    /// Compares one known object with the list.
    fn compare(&self, replacing: &mut Replacing, key: ObjectKey, known: &dyn Known) {
        if !self.partitions.contains(replacing.position.partition, &key) || replacing.staged.shows(&key) {
            return;
        }
        if let Newest::Present(last_known) | Newest::Unconfirmed(last_known) = self.newest(&key, known) {
            if replacing.staged.lacks(&key) {
                replacing.tombstones.insert(key, Deleted::unknown(last_known));
            } else {
                replacing.unconfirmed.push(key);
            }
        }
    }

    /// Queues the list. Returns what is left of it, which may take long to drop.
    pub(crate) fn finish_replace(&mut self, replacing: Replacing) -> Staged {
        let Replacing { mut staged, position, tombstones, unconfirmed, .. } = replacing;
        if self.closed {
            return staged;
        }
        let partition = position.partition;
        self.unconfirmed.retain(|key| !self.partitions.contains(partition, key));
        self.unconfirmed.extend(unconfirmed.iter().cloned());
        let (changed, views) = (staged.take_changed(), Some(staged.views()));
        self.file_list(Replacement { position, restored: None, tombstones, changed, unconfirmed, views });
        staged
    }

    /// Queues the objects that an earlier process saved, the first list of a partition.
    pub(crate) fn restore(&mut self, objects: Vec<AnyObject>, position: Position, synced_by: SyncedBy) {
        if self.closed {
            return;
        }
        // A version that the saved state has not reached is one of an earlier history: the list that was saved last did not
        // show the object.
        let unconfirmed =
            objects.iter().filter(|object| position.version.is_older_than(object.resource_version()));
        let unconfirmed: Vec<_> = unconfirmed.map(|object| object.key().clone()).collect();
        self.unconfirmed.extend(unconfirmed.iter().cloned());
        let changed = Changed::of(objects);
        let (tombstones, restored, views) = (BTreeMap::new(), Some(synced_by), None);
        self.file_list(Replacement { position, restored, tombstones, changed, unconfirmed, views });
    }

    fn file_list(&mut self, list: Replacement) {
        let list = Arc::new(list);
        self.len += list.len();
        let sequence = self.take_sequence();
        self.last_replace[list.position.partition] = sequence;
        self.lists.push_back((sequence, Arc::clone(&list)));
        self.queue.insert(sequence, Filed::List(list));
    }

    /// Queues a complete list in one step.
    #[cfg(test)]
    pub(crate) fn replace(&mut self, staged: Staged, position: Position, known: &dyn Known) {
        let mut replacing = self.begin_replace(staged, position);
        while self.replace_some(&mut replacing, known, 2) {}
        self.finish_replace(replacing);
    }

    /// The newest state of each object in a list.
    #[cfg(test)]
    pub(super) fn listed(list: &Replacement) -> impl Iterator<Item = crate::delta::AnyObject> {
        list.deltas().map(|delta| delta.object().clone())
    }
}
