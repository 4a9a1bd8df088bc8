//! The queue between reflectors and the store.

mod staged;

pub(crate) use staged::Staged;

use crate::{
    delta::{AnyObject, Deleted, Delta},
    scope::{Partition, Partitions},
};
use hashbrown::{HashMap, HashSet};
use kube_informer_wire::{ObjectKey, ResourceVersion};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What is already known of objects when something new arrives: the store, read-only.
pub(crate) trait Known {
    /// The stored state of an object.
    fn get(&self, key: &ObjectKey) -> Option<AnyObject>;
    /// Calls `visit` with each stored object in key order.
    fn each(&self, visit: &mut dyn FnMut(&AnyObject));
}

/// Keyed deltas in the order in which they happened.
///
/// 1. Every delta has a sequence number. `items` holds the deltas of each object, `queue` says which comes
///    next: each queued key is filed under its oldest sequence number.
/// 2. [`pop`](Self::pop) gives a batch that is a prefix of the sequence. A `Replace` is a batch of its own and
///    is never split, so that a list is applied whole.
/// 3. A popped batch stays *in flight* until [`commit`](Self::commit). What is newest about an object is asked
///    of the queue, then of the batch in flight, then of the store. Otherwise an object that was popped and not
///    yet stored would be invisible: a list without it would leave a ghost behind, and a resync would bring
///    back the state before it.
/// 4. A delete of an unknown object, or a second delete in a row, queues nothing. A resync skips queued
///    objects.
/// 5. Stream positions travel through the queue: each batch says which position of which partition is reached
///    once it has been applied, whether or not an object changed.
#[derive(Debug)]
pub(crate) struct DeltaFifo {
    partitions: Partitions,
    /// Deltas not yet popped, oldest first. Invariant: never an empty list.
    items: HashMap<ObjectKey, VecDeque<Sequenced>>,
    /// What comes next. Invariant: a key is here exactly once if and only if it is in `items`.
    queue: BTreeMap<u64, Filed>,
    /// Newest delta of each object in the batch that has been popped and not yet committed.
    in_flight: HashMap<ObjectKey, Sequenced>,
    /// First and last sequence number of each queued Replace, in order.
    replaces: VecDeque<(u64, u64)>,
    /// First sequence number of the newest Replace of each partition, queued or already popped. A delete before
    /// it says nothing about an event after it: the list has decided, perhaps in another history of the server.
    last_replace: Vec<u64>,
    /// Objects that the newest Replace kept without showing their state, because an item was malformed. Their
    /// versions may belong to an earlier history of the server. An entry is removed when the object changes.
    unconfirmed: HashSet<ObjectKey>,
    next_sequence: u64,
    /// Deltas in `items`.
    len: usize,
    closed: bool,
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
    /// The end of a Replace.
    Replaced(Position),
    /// The partition may have another history than the store shows.
    Withdrawn(Partition),
}

/// A point in the history of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) partition: Partition,
    pub(crate) version: ResourceVersion,
}

/// A change reported by a watch.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    Added(AnyObject),
    Modified(AnyObject),
    Deleted(AnyObject),
}

impl Change {
    pub(crate) fn object(&self) -> &AnyObject {
        match self {
            Self::Added(object) | Self::Modified(object) | Self::Deleted(object) => object,
        }
    }
}

/// What became of a change that was offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// It is queued.
    Queued,
    /// It was known already, or concerns an object nobody has heard of: nothing to tell anybody.
    Known,
    /// A newer state of the object is known; this one is late.
    Stale,
}

/// How a listed object is compared with what is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    /// Same uid and version means same object: true within one history of the server.
    Version,
    /// Byte for byte: after the server's history was replaced by another one, versions repeat.
    Content,
}

/// A prefix of the sequence, on its way into the store.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// In sequence order.
    pub(crate) deltas: Vec<Delta>,
    /// The position each partition reaches with this batch.
    pub(crate) positions: BTreeMap<Partition, ResourceVersion>,
    /// The partition whose list this batch is.
    pub(crate) replaced: Option<Partition>,
    /// Partitions whose position is withdrawn with this batch. Invariant: none of them is in `positions`.
    pub(crate) withdrawn: BTreeSet<Partition>,
}

impl Batch {
    /// A list that says no version leaves the position open.
    fn reach(&mut self, Position { partition, version }: Position) {
        if !version.is_unset() {
            self.positions.insert(partition, version);
        }
    }

    fn withdraw(&mut self, partition: Partition) {
        self.positions.remove(&partition);
        self.withdrawn.insert(partition);
    }
}

impl DeltaFifo {
    pub(crate) fn new(partitions: Partitions) -> Self {
        Self {
            last_replace: vec![0; partitions.len()],
            partitions,
            items: HashMap::new(),
            queue: BTreeMap::new(),
            in_flight: HashMap::new(),
            replaces: VecDeque::new(),
            unconfirmed: HashSet::new(),
            next_sequence: 0,
            len: 0,
            closed: false,
        }
    }

    /// Deltas waiting.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing more comes in. What is queued can still be popped.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// The newest state of each queued object, in the order of the queue.
    #[cfg(test)]
    pub(crate) fn list(&self) -> Vec<AnyObject> {
        let keys = self.queue.values().filter_map(|filed| match filed {
            Filed::Key(key) => Some(key),
            Filed::Bookmarks(_) | Filed::Replaced(_) | Filed::Withdrawn(_) => None,
        });
        keys.filter_map(|key| Some(self.items.get(key)?.back()?.delta.object().clone())).collect()
    }

    /// Queues a change that a watch reported, unless it is no news.
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

    /// What would become of a change, were it offered.
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

    /// Whether a listed object is no news.
    pub(crate) fn is_known(&self, object: &AnyObject, compare: Compare, known: &dyn Known) -> bool {
        match self.newest(object.key(), known) {
            Newest::Present(old) => match compare {
                Compare::Version if !old.resource_version().is_unset() => old.is_same_version(object),
                _ => is_equal(&old, object),
            },
            Newest::Unconfirmed(old) => is_equal(&old, object),
            Newest::Gone(_) | Newest::Unknown => false,
        }
    }

    /// Queues a complete list: first the end of every object that it no longer has, then its news in order.
    pub(crate) fn replace(&mut self, staged: Staged, position: Position, known: &dyn Known) {
        if self.closed {
            return;
        }
        let first = self.next_sequence;
        for key in self.known_keys(position.partition, known) {
            if staged.shows(&key) {
                self.unconfirmed.remove(&key);
            } else if let Newest::Present(last_known) | Newest::Unconfirmed(last_known) =
                self.newest(&key, known)
            {
                if staged.lacks(&key) {
                    self.unconfirmed.remove(&key);
                    self.append(Delta::Deleted(Deleted::unknown(last_known)), None);
                } else {
                    self.unconfirmed.insert(key);
                }
            }
        }
        self.last_replace[position.partition] = first;
        for object in staged.into_changed() {
            self.append(Delta::Replaced(object), None);
        }
        let last = self.take_sequence();
        self.queue.insert(last, Filed::Replaced(position));
        self.replaces.push_back((first, last));
    }

    /// Queues every known object once more, as it is, except those that have something queued anyway.
    pub(crate) fn resync(&mut self, known: &dyn Known) {
        if self.closed {
            return;
        }
        let mut due = Vec::new();
        for partition in self.partitions.all() {
            for key in self.known_keys(partition, known) {
                if self.items.contains_key(&key) {
                    continue;
                }
                if let Newest::Present(object) | Newest::Unconfirmed(object) = self.newest(&key, known) {
                    due.push(object);
                }
            }
        }
        for object in due {
            self.append(Delta::Sync(object), None);
        }
    }

    /// The next batch: at most `max` deltas, or one whole Replace. Its objects are in flight until
    /// [`commit`](Self::commit).
    pub(crate) fn pop(&mut self, max: usize) -> Option<Batch> {
        debug_assert!(self.in_flight.is_empty(), "one batch at a time");
        let mut batch = Batch::default();
        let mut taken = 0;
        while let Some((&sequence, _)) = self.queue.first_key_value() {
            let replace = self.replaces.front().copied().filter(|&(first, _)| first <= sequence);
            if taken > 0
                && (taken >= max && replace.is_none() || replace.is_some_and(|(first, _)| first == sequence))
            {
                break;
            }
            taken += 1;
            match self.queue.pop_first() {
                Some((_, Filed::Key(key))) => self.take_oldest(key, &mut batch),
                Some((_, Filed::Bookmarks(positions))) => batch.positions.extend(positions),
                Some((_, Filed::Withdrawn(partition))) => batch.withdraw(partition),
                Some((_, Filed::Replaced(position))) => {
                    self.replaces.pop_front();
                    batch.replaced = Some(position.partition);
                    batch.reach(position);
                    break;
                }
                None => break,
            }
        }
        (taken > 0).then_some(batch)
    }

    /// The batch in flight is in the store and its notifications are queued.
    pub(crate) fn commit(&mut self) {
        self.in_flight.clear();
        // A list of the whole collection passes through here once; its capacity is not kept.
        shrink(&mut self.in_flight);
        shrink(&mut self.items);
    }

    fn take_oldest(&mut self, key: ObjectKey, batch: &mut Batch) {
        let Some(deltas) = self.items.get_mut(&key) else { return };
        let Some(oldest) = deltas.pop_front() else { return };
        self.len -= 1;
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
        self.in_flight.insert(key, oldest);
    }

    fn append(&mut self, delta: Delta, position: Option<Position>) {
        let sequence = self.take_sequence();
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
        // One mark after another says no more than the last of them: a quiet kind does not fill the queue.
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

    /// What is newest about an object: queued, in flight, or stored.
    fn newest(&self, key: &ObjectKey, known: &dyn Known) -> Newest {
        let queued = self.items.get(key).and_then(|deltas| deltas.back());
        let object = match queued.or_else(|| self.in_flight.get(key)) {
            Some(Sequenced { delta: Delta::Deleted(deleted), sequence, .. }) => {
                return Newest::Gone(self.deleted_at(deleted, *sequence));
            }
            Some(Sequenced { delta, .. }) => Some(delta.object().clone()),
            None => known.get(key),
        };
        match object {
            Some(object) if self.unconfirmed.contains(key) => Newest::Unconfirmed(object),
            Some(object) => Newest::Present(object),
            None => Newest::Unknown,
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

    /// Every key of a partition that is stored, in flight or queued, in order.
    fn known_keys(&self, partition: Partition, known: &dyn Known) -> BTreeSet<ObjectKey> {
        let mut keys = BTreeSet::new();
        known.each(&mut |object| {
            if self.partitions.contains(partition, object.key()) {
                keys.insert(object.key().clone());
            }
        });
        let moving = self.in_flight.keys().chain(self.items.keys());
        keys.extend(moving.filter(|key| self.partitions.contains(partition, key)).cloned());
        keys
    }
}

/// The newest state of an object, wherever it is.
enum Newest {
    Present(AnyObject),
    /// Present, in a state that the newest list did not show: its version cannot be compared with later ones.
    Unconfirmed(AnyObject),
    /// Deleted, at this version if it is known.
    Gone(ResourceVersion),
    Unknown,
}

/// Whether a change is news, given what is known.
fn judge(change: Change, newest: Newest) -> (Option<Delta>, Offered) {
    let queued = |delta| (Some(delta), Offered::Queued);
    let version = change.object().resource_version();
    let late = match &newest {
        Newest::Present(old) => version.is_older_than(old.resource_version()),
        Newest::Gone(at) => version.is_older_than(at),
        Newest::Unconfirmed(_) | Newest::Unknown => false,
    };
    if late {
        return (None, Offered::Stale);
    }
    match (change, newest) {
        (Change::Added(object) | Change::Modified(object), Newest::Present(old))
            if old.is_same_version(&object) =>
        {
            (None, Offered::Known)
        }
        (Change::Added(object) | Change::Modified(object), Newest::Unconfirmed(old))
            if is_equal(&old, &object) =>
        {
            (None, Offered::Known)
        }
        (Change::Added(object), _) => queued(Delta::Added(object)),
        (Change::Modified(object), _) => queued(Delta::Updated(object)),
        // Another object of that name: ours must have gone before it, unseen.
        (Change::Deleted(object), Newest::Present(old) | Newest::Unconfirmed(old))
            if !old.is_same(&object) =>
        {
            queued(Delta::Deleted(Deleted::unknown(old)))
        }
        (Change::Deleted(object), Newest::Present(_) | Newest::Unconfirmed(_)) => {
            queued(Delta::Deleted(Deleted::Seen(object)))
        }
        (Change::Deleted(_), Newest::Gone(_) | Newest::Unknown) => (None, Offered::Known),
    }
}

/// Whether two states are equal in identity and content, whatever history of the server they come from.
fn is_equal(old: &AnyObject, new: &AnyObject) -> bool {
    old.is_same(new) && old.resource_version() == new.resource_version() && old.is_same_content(new)
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
