//! The queue between reflectors and the store.

mod change;
mod replacement;
mod staged;

pub(crate) use change::{Change, Compare, Offered};
pub(crate) use staged::Staged;

use crate::{
    delta::{AnyObject, Deleted, Delta},
    scope::{Partition, Partitions},
};
use change::{Newest, is_equal, is_known, judge};
use hashbrown::{HashMap, HashSet};
use kube_informer_wire::{ObjectKey, ResourceVersion};
use replacement::Replacement;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

/// The store, read-only.
pub(crate) trait Known: Sync {
    /// The stored state of an object.
    fn get(&self, key: &ObjectKey) -> Option<AnyObject>;
    /// The first `max` keys after `start`, in order.
    fn keys_after(&self, start: Option<&ObjectKey>, max: usize) -> Vec<ObjectKey>;
}

/// Keyed deltas in the order in which they happened.
///
/// 1. Every delta has a sequence number. `items` holds the deltas of each object, `queue` says which comes
///    next: each queued key is filed under its oldest sequence number.
/// 2. [`pop`](Self::pop) returns a batch that is a prefix of the sequence. A list is one entry of the queue and a batch
///    of its own, so that it is applied whole.
/// 3. A popped batch stays *in flight* until [`commit`](Self::commit). The newest state of an object is in the queue, or
///    in the batch in flight, or in the store, in this order. Otherwise an object that was popped and not yet stored
///    would be invisible: a list without it would leave it in the store, and a resync would bring back the state before
///    it.
/// 4. A delete of an unknown object, or a second delete in a row, queues nothing. A resync skips queued objects.
/// 5. Positions pass through the queue: each batch has the position that each partition reaches once it has been applied,
///    whether or not an object changed.
/// 6. Each operation takes time in proportion to a bound that the caller passes or to the changes in the queue, not to the
///    length of a list.
#[derive(Debug)]
pub(crate) struct DeltaFifo {
    partitions: Partitions,
    /// Deltas not yet popped, oldest first. Invariant: never an empty list.
    items: HashMap<ObjectKey, VecDeque<Sequenced>>,
    /// Entries in sequence order. Invariant: a key is here exactly once if and only if it is in `items`.
    queue: BTreeMap<u64, Filed>,
    /// The lists in `queue` with their sequence numbers, in order.
    lists: VecDeque<(u64, Arc<Replacement>)>,
    in_flight: InFlight,
    /// Sequence number of the newest list of each partition, queued or already popped. A delete before it says nothing
    /// about an event after it: the list is newer, and may be of another history of the server.
    last_replace: Vec<u64>,
    /// Objects that the newest list kept without showing their state, because an item was malformed. Their versions may
    /// belong to an earlier history of the server. An entry is removed when the object changes.
    unconfirmed: HashSet<ObjectKey>,
    next_sequence: u64,
    /// Deltas in `items` and `lists`.
    len: usize,
    /// Deltas of `items` that are resyncs.
    syncs: usize,
    closed: bool,
}

/// The batch that has been popped and not yet committed.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Newest delta of each object.
    changes: HashMap<ObjectKey, Sequenced>,
    list: Option<Arc<Replacement>>,
}

#[derive(Debug, Clone)]
struct Sequenced {
    sequence: u64,
    delta: Delta,
    position: Option<Position>,
}

#[derive(Debug)]
enum Filed {
    Key(ObjectKey),
    /// Positions were reached without a change, one for each partition at most.
    Bookmarks(BTreeMap<Partition, ResourceVersion>),
    List(Arc<Replacement>),
    /// The partition may have another history than the store shows.
    Withdrawn(Partition),
    /// The restored state of a partition, with the changes before this entry, is that of the server.
    Confirmed(Position),
}

/// When a restored partition counts as synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SyncedBy {
    /// When it is confirmed.
    Proof,
    /// At once.
    Trust,
}

/// A point in the history of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) partition: Partition,
    pub(crate) version: ResourceVersion,
}

/// A prefix of the sequence.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// In sequence order.
    pub(crate) deltas: Vec<Delta>,
    /// A list, whose deltas are not in `deltas`.
    list: Option<Arc<Replacement>>,
    /// The position each partition reaches with this batch.
    pub(crate) positions: BTreeMap<Partition, ResourceVersion>,
    /// The partition whose list this batch is.
    pub(crate) replaced: Option<Partition>,
    /// Partitions whose position is withdrawn with this batch. Invariant: none of them is in `positions`.
    pub(crate) withdrawn: BTreeSet<Partition>,
    /// Partitions whose restored state is that of the server. Invariant: none of them is in `withdrawn`.
    pub(crate) confirmed: BTreeSet<Partition>,
    /// The list of this batch was restored.
    pub(crate) restored: Option<SyncedBy>,
}

impl Batch {
    /// Number of deltas.
    pub(crate) fn len(&self) -> usize {
        self.deltas.len().saturating_add(self.list.as_ref().map_or(0, |list| list.len()))
    }

    /// All deltas in sequence order. Those of a list are read one by one, because a list may be long.
    pub(crate) fn all(&self) -> impl Iterator<Item = Delta> {
        self.deltas.iter().cloned().chain(self.list.iter().flat_map(|list| list.deltas()))
    }

    /// The objects of a batch that only adds the objects of a list, each key once; `None` for any other batch.
    pub(crate) fn added(&self) -> Option<impl Iterator<Item = &AnyObject>> {
        self.list.as_ref().filter(|_| self.deltas.is_empty())?.added()
    }

    /// Objects that the list of this batch keeps without showing their state.
    pub(crate) fn unconfirmed(&self) -> &[ObjectKey] {
        self.list.as_ref().map_or(&[], |list| list.unconfirmed())
    }

    /// Number of views that had been added when the reflector began to receive the list of this batch.
    pub(crate) fn views(&self) -> Option<u64> {
        self.list.as_ref().and_then(|list| list.views())
    }

    /// Adds the deltas of the list.
    #[cfg(test)]
    pub(crate) fn expanded(mut self) -> Self {
        self.deltas.extend(self.list.take().iter().flat_map(|list| list.deltas()));
        self
    }

    /// A list without a version leaves the position as it was.
    fn reach(&mut self, Position { partition, version }: Position) {
        if !version.is_unset() {
            self.positions.insert(partition, version);
        }
    }

    fn withdraw(&mut self, partition: Partition) {
        self.positions.remove(&partition);
        self.confirmed.remove(&partition);
        self.withdrawn.insert(partition);
    }

    fn confirm(&mut self, position: Position) {
        self.withdrawn.remove(&position.partition);
        self.confirmed.insert(position.partition);
        self.reach(position);
    }
}

impl DeltaFifo {
    pub(crate) fn new(partitions: Partitions) -> Self {
        Self {
            last_replace: vec![0; partitions.len()],
            partitions,
            items: HashMap::new(),
            queue: BTreeMap::new(),
            lists: VecDeque::new(),
            in_flight: InFlight::default(),
            unconfirmed: HashSet::new(),
            next_sequence: 0,
            len: 0,
            syncs: 0,
            closed: false,
        }
    }

    /// Deltas in the queue.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Accepts nothing from here on. What is queued can still be popped.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// The newest state of each queued object, in the order of the queue.
    #[cfg(test)]
    pub(crate) fn list(&self) -> Vec<AnyObject> {
        let mut objects = Vec::new();
        for filed in self.queue.values() {
            match filed {
                Filed::Key(key) => {
                    objects.extend(self.items[key].back().map(|last| last.delta.object().clone()))
                }
                Filed::List(list) => objects.extend(Self::listed(list)),
                Filed::Bookmarks(_) | Filed::Withdrawn(_) | Filed::Confirmed(_) => {}
            }
        }
        objects
    }

    /// Queues a change that a watch reported, if it is news.
    pub(crate) fn offer(&mut self, change: Change, position: Option<Position>, known: &dyn Known) -> Offered {
        if self.closed {
            return Offered::Known;
        }
        let newest = self.newest(change.object().key(), known);
        let (delta, offered) = judge(change, newest);
        match delta {
            Some(delta) => {
                self.unconfirmed.remove(delta.object().key());
                self.append(delta, position);
            }
            None => self.mark(position),
        }
        offered
    }

    /// Returns how a change would be classified if it were offered.
    pub(crate) fn judge(&self, change: &Change, known: &dyn Known) -> Offered {
        let newest = self.newest(change.object().key(), known);
        judge(change.clone(), newest).1
    }

    /// A position was reached without a change.
    pub(crate) fn bookmark(&mut self, position: Position) {
        if !self.closed {
            self.mark(Some(position));
        }
    }

    /// Withdraws the position of a partition, which may have another history: until its next list is applied, the store
    /// claims no version of it.
    pub(crate) fn withdraw(&mut self, partition: Partition) {
        if !self.closed {
            let sequence = self.take_sequence();
            self.queue.insert(sequence, Filed::Withdrawn(partition));
        }
    }

    /// Says that the restored state of a partition is that of the server, once everything queued before is applied.
    pub(crate) fn confirm(&mut self, position: Position) {
        if !self.closed {
            let sequence = self.take_sequence();
            self.queue.insert(sequence, Filed::Confirmed(position));
        }
    }

    /// Whether a listed object is in the newest known state.
    pub(crate) fn is_known(&self, object: &AnyObject, compare: Compare, known: &dyn Known) -> bool {
        match self.newest(object.key(), known) {
            Newest::Present(old) => match compare {
                Compare::Version if !old.resource_version().is_unset() => is_known(&old, object),
                _ => is_equal(&old, object),
            },
            Newest::Unconfirmed(old) => is_equal(&old, object),
            Newest::Gone(_) | Newest::Unknown => false,
        }
    }

    /// Queues stored objects once more as they are, except those that have something queued anyway.
    pub(crate) fn resync(&mut self, keys: &[ObjectKey], known: &dyn Known) {
        if self.closed {
            return;
        }
        for key in keys {
            if self.is_queued(key) {
                continue;
            }
            if let Newest::Present(object) | Newest::Unconfirmed(object) = self.newest(key, known) {
                self.append(Delta::Sync(object), None);
            }
        }
    }

    /// Whether resyncs are queued.
    pub(crate) fn is_resyncing(&self) -> bool {
        self.syncs > 0
    }

    fn is_queued(&self, key: &ObjectKey) -> bool {
        self.items.contains_key(key) || self.lists.iter().any(|(_, list)| list.has(key))
    }

    /// The next batch: at most `max` deltas, or one list. Its objects are in flight until [`commit`](Self::commit).
    pub(crate) fn pop(&mut self, max: usize) -> Option<Batch> {
        debug_assert!(
            self.in_flight.changes.is_empty() && self.in_flight.list.is_none(),
            "one batch at a time"
        );
        let mut batch = Batch::default();
        let mut taken = 0;
        while let Some((_, filed)) = self.queue.first_key_value() {
            if taken > 0 && (taken >= max || matches!(filed, Filed::List(_))) {
                break;
            }
            taken += 1;
            match self.queue.pop_first() {
                Some((_, Filed::Key(key))) => self.take_oldest(key, &mut batch),
                Some((_, Filed::Bookmarks(positions))) => batch.positions.extend(positions),
                Some((_, Filed::Withdrawn(partition))) => batch.withdraw(partition),
                Some((_, Filed::Confirmed(position))) => batch.confirm(position),
                Some((_, Filed::List(list))) => {
                    self.lists.pop_front();
                    self.len -= list.len();
                    batch.replaced = Some(list.position.partition);
                    batch.restored = list.restored;
                    if list.restored.is_none() {
                        batch.reach(list.position.clone());
                    }
                    self.in_flight.list = Some(Arc::clone(&list));
                    batch.list = Some(list);
                    break;
                }
                None => break,
            }
        }
        (taken > 0).then_some(batch)
    }

    /// The batch in flight is in the store and its notifications are queued. Returns the batch, which may take long to drop.
    pub(crate) fn commit(&mut self) -> InFlight {
        // A resync of all objects passes through here; its capacity is not kept.
        shrink(&mut self.items);
        std::mem::take(&mut self.in_flight)
    }

    fn take_oldest(&mut self, key: ObjectKey, batch: &mut Batch) {
        let Some(deltas) = self.items.get_mut(&key) else { return };
        let Some(oldest) = deltas.pop_front() else { return };
        self.len -= 1;
        self.syncs -= usize::from(matches!(oldest.delta, Delta::Sync(_)));
        match deltas.front() {
            Some(next) => {
                self.queue.insert(next.sequence, Filed::Key(key.clone()));
            }
            None => {
                self.items.remove(&key);
            }
        }
        if let Some(position) = oldest.position.clone() {
            batch.reach(position);
        }
        batch.deltas.push(oldest.delta.clone());
        self.in_flight.changes.insert(key, oldest);
    }

    fn append(&mut self, delta: Delta, position: Option<Position>) {
        let sequence = self.take_sequence();
        self.syncs += usize::from(matches!(delta, Delta::Sync(_)));
        let key = delta.object().key().clone();
        let deltas = self.items.entry(key.clone()).or_default();
        if deltas.is_empty() {
            self.queue.insert(sequence, Filed::Key(key));
        }
        deltas.push_back(Sequenced { sequence, delta, position });
        self.len += 1;
    }

    fn mark(&mut self, position: Option<Position>) {
        let Some(Position { partition, version }) = position else { return };
        // Successive bookmarks are one entry: those of a quiet kind do not fill the queue.
        let newest = self.next_sequence.checked_sub(1).and_then(|sequence| self.queue.get_mut(&sequence));
        if let Some(Filed::Bookmarks(positions)) = newest {
            positions.insert(partition, version);
            return;
        }
        let sequence = self.take_sequence();
        self.queue.insert(sequence, Filed::Bookmarks(BTreeMap::from([(partition, version)])));
    }

    fn take_sequence(&mut self) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        sequence
    }

    /// The newest state of an object: queued, in flight, or stored.
    fn newest(&self, key: &ObjectKey, known: &dyn Known) -> Newest {
        let object = match self.newest_delta(key) {
            Some((Delta::Deleted(deleted), sequence)) => {
                return Newest::Gone(self.deleted_at(&deleted, sequence));
            }
            Some((delta, _)) => Some(delta.object().clone()),
            None => known.get(key),
        };
        match object {
            Some(object) if self.unconfirmed.contains(key) => Newest::Unconfirmed(object),
            Some(object) => Newest::Present(object),
            None => Newest::Unknown,
        }
    }

    /// The newest delta of an object that is queued or in flight, and its sequence number.
    fn newest_delta(&self, key: &ObjectKey) -> Option<(Delta, u64)> {
        let changed = self.items.get(key).and_then(|deltas| deltas.back());
        let listed = self.lists.iter().rev().find(|(_, list)| list.has(key));
        match (changed, listed) {
            (Some(change), Some((listed, _))) if change.sequence > *listed => {
                Some((change.delta.clone(), change.sequence))
            }
            (_, Some((sequence, list))) => Some((list.get(key)?, *sequence)),
            (Some(change), None) => Some((change.delta.clone(), change.sequence)),
            (None, None) => self.in_flight.get(key),
        }
    }

    /// The version of a delete if later events can be compared with it, otherwise unset.
    fn deleted_at(&self, deleted: &Deleted<Value>, sequence: u64) -> ResourceVersion {
        let namespace = deleted.key().namespace();
        let replaced = self.partitions.of_namespace(namespace).map(|partition| self.last_replace[partition]);
        match deleted {
            Deleted::Seen(object) if replaced.is_none_or(|replaced| sequence >= replaced) => {
                object.resource_version().clone()
            }
            // A Replace came after the delete, or is it. The version of the delete or of the last known state may
            // belong to another history of the server, in which every version is higher than those that follow.
            Deleted::Seen(_) | Deleted::FinalStateUnknown { .. } => ResourceVersion::unset(),
        }
    }
}

impl InFlight {
    fn get(&self, key: &ObjectKey) -> Option<(Delta, u64)> {
        match self.changes.get(key) {
            Some(change) => Some((change.delta.clone(), change.sequence)),
            // A list has no deletes that were seen, so that its sequence number does not matter.
            None => Some((self.list.as_ref()?.get(key)?, 0)),
        }
    }
}

/// Gives capacity back that is far more than what a map holds.
fn shrink<V>(map: &mut HashMap<ObjectKey, V>) {
    const SMALL: usize = 1024;
    if map.capacity() > SMALL && map.len() < map.capacity() / 8 {
        map.shrink_to(SMALL.max(map.len() * 2));
    }
}

#[cfg(test)]
mod tests;
