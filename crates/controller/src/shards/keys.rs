//! Which keys of a controller this replica may reconcile.
//!
//! All replicas cache all objects. So a replica knows which uid a key had before, unless the change between the two is hidden in a
//! gap: a list, or events that were coalesced.

use super::{
    lease::KeyProgress,
    table::{Table, Tenure},
};
use crate::leadership::Leadership;
use kube_informer::{
    CacheSnapshot, Deleted, EventHandler, Lister, Object, ObjectKey, Priority, ResourceVersion,
    ScopedRegistration, SharedInformer, Uid, WorkQueue,
};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
};
use tokio::sync::watch;

/// Number of keys in the progress at most. Beyond it, other replicas wait until there are fewer.
const MAX_BUSY: usize = 64;
/// Number of keys that are added to the queue at once.
const BATCH: usize = 256;

/// The keys of a controller in a replica that holds some shards.
///
/// A key is admitted to be reconciled if
///
/// 1. this replica holds the shard of its object, and the shard is ready;
/// 2. no other replica reconciles, or will reconcile, an earlier object of the key.
///
/// A deleted object is reconciled once by the holder of its shard, unless the key exists again.
pub(crate) struct ShardKeys {
    controller: Arc<str>,
    lister: Lister<Value>,
    /// The namespaces that have versions of their own; `None` is all of them.
    namespaces: Vec<Option<String>>,
    queue: WorkQueue<ObjectKey>,
    table: Arc<Table>,
    /// Whether deleted objects are reconciled.
    by_key: bool,
    /// Held for one lookup or change. Taken before the lock of the table.
    state: Mutex<KeyState>,
    /// Changes when a reconcile has ended.
    ended: watch::Sender<()>,
    /// That of the handler; `None` before it is added and after it is removed.
    registration: Mutex<Option<ScopedRegistration>>,
}

#[derive(Default)]
struct KeyState {
    /// The objects of which the handler knows, by shard.
    known: HashMap<u32, HashMap<ObjectKey, Known>>,
    /// Deleted objects that other replicas may be reconciling, or this one has to. Ordered, because keys are added to the queue in
    /// this order. Invariant: no list is empty.
    departed: BTreeMap<ObjectKey, Vec<Departed>>,
    in_flight: HashMap<ObjectKey, Flight>,
    /// Keys that wait for other replicas.
    parked: BTreeSet<ObjectKey>,
    /// Number of gaps up to which no replica reconciles an object that was deleted in one of them, except for `departed`.
    checked_gaps: u64,
    /// The newest version of an object when there was this number of gaps.
    newest: Option<(u64, ResourceVersion)>,
    /// The versions of the server when shards were gained.
    gained: HashMap<u32, Option<ResourceVersion>>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    uid: Uid,
    /// Number of gaps when the object was added. Its key may have had another uid in the last one.
    gaps: u64,
}

struct Departed {
    shard: u32,
    /// `None` if another replica reported that it is busy with it.
    known: Option<Known>,
    /// The version of the deletion, or a later one.
    version: ResourceVersion,
    /// Whether this replica has to reconcile that it does not exist any more.
    pending: bool,
}

struct Flight {
    shard: u32,
    uid: Uid,
}

/// A key that is admitted to be reconciled, until this is dropped.
pub(crate) struct Admission {
    keys: Arc<ShardKeys>,
    key: ObjectKey,
    pub(crate) subject: Subject,
    tenure: Tenure,
}

/// The object that a key is admitted for.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    uid: Uid,
    /// Whether the object exists.
    exists: bool,
    pub(crate) leadership: Leadership,
}

impl Subject {
    /// Whether a key whose object is this one may be reconciled.
    pub(crate) fn is<T>(&self, object: Option<&Object<T>>) -> bool {
        match object {
            Some(object) => self.exists && object.uid() == self.uid,
            None => !self.exists,
        }
    }
}

enum Decision {
    Admit {
        uid: Uid,
        exists: bool,
        shard: u32,
        tenure: Tenure,
    },
    /// Another event, or a gained shard, adds the key again.
    Skip,
    /// The key is added again when other replicas have made progress.
    Park,
}

impl ShardKeys {
    pub(crate) fn new(
        controller: Arc<str>,
        primary: &SharedInformer<Value>,
        queue: WorkQueue<ObjectKey>,
        table: Arc<Table>,
        by_key: bool,
    ) -> Arc<Self> {
        let namespaces = primary.namespace_statuses().into_iter().map(|(namespace, _)| namespace).collect();
        let (state, ended, registration) = (Mutex::default(), watch::Sender::new(()), Mutex::default());
        let lister = primary.lister();
        let keys = Self { controller, lister, namespaces, queue, table, by_key, state, ended, registration };
        let keys = Arc::new(keys);
        let registration = primary.add_handler(Recorder(Arc::clone(&keys))).scoped();
        *lock(&keys.registration) = Some(registration);
        keys
    }

    /// Removes the handler.
    pub(super) fn close(&self) {
        let registration = lock(&self.registration).take();
        drop(registration);
    }

    /// Events that the handler did not receive one by one.
    fn coalesced(&self) -> u64 {
        lock(&self.registration).as_ref().map_or(0, |registration| registration.load().coalesced)
    }

    /// Admits a key to be reconciled, if this replica may reconcile it now. Otherwise the key is added to the queue again when that
    /// may have changed.
    pub(crate) fn enter(self: &Arc<Self>, key: &ObjectKey) -> Option<Admission> {
        // Read under the lock: `progress` reads the cache before it takes the lock. So it finds the key in flight, or the object was
        // read later than its version.
        let (decision, _snapshot) = {
            let mut state = lock(&self.state);
            // Before the state of the cache is read, so that it shows all objects with fewer gaps.
            let coalesced = self.coalesced();
            let snapshot = self.lister.snapshot();
            let gaps = count_gaps(snapshot.lists(), coalesced);
            let decision = match snapshot.get(key) {
                Some(object) => self.decide(&mut state, &snapshot, gaps, &object),
                None => self.decide_deleted(&mut state, &snapshot, gaps, key),
            };
            match &decision {
                Decision::Admit { uid, shard, .. } => {
                    state.in_flight.insert(key.clone(), Flight { shard: *shard, uid: *uid });
                }
                Decision::Park => _ = state.parked.insert(key.clone()),
                Decision::Skip => {}
            }
            (decision, snapshot)
        };
        let Decision::Admit { uid, exists, tenure, .. } = decision else { return None };
        let subject = Subject { uid, exists, leadership: tenure.leadership.clone() };
        Some(Admission { keys: Arc::clone(self), key: key.clone(), subject, tenure })
    }

    fn decide(
        &self,
        state: &mut KeyState,
        snapshot: &CacheSnapshot<Value>,
        gaps: u64,
        object: &Object<Value>,
    ) -> Decision {
        let (key, uid) = (object.key(), object.uid());
        // The key exists again, so there is no need to reconcile that it did not.
        if let Some(departed) = state.departed.get_mut(key) {
            departed.iter_mut().for_each(|departed| departed.pending = false);
        }
        let shard = self.table.shard_of(uid);
        let Some(tenure) = self.table.ready(shard) else { return Decision::Skip };
        // The store shows an object before the handler knows of it, and of the one before it.
        let known = state.known.get(&shard).and_then(|known| known.get(key)).copied();
        let Some(known) = known.filter(|known| known.uid == uid) else { return Decision::Skip };
        if !self.is_released(state, snapshot, gaps, key, known) {
            return Decision::Park;
        }
        state.departed.remove(key);
        Decision::Admit { uid, exists: true, shard, tenure }
    }

    fn decide_deleted(
        &self,
        state: &mut KeyState,
        snapshot: &CacheSnapshot<Value>,
        gaps: u64,
        key: &ObjectKey,
    ) -> Decision {
        let departed = state.departed.get(key).into_iter().flatten().filter(|departed| departed.pending);
        let mut ready = departed.filter_map(|departed| {
            Some((departed.known?, departed.shard, self.table.ready(departed.shard)?))
        });
        let Some((known, shard, tenure)) = ready.next() else { return Decision::Skip };
        if !self.is_released(state, snapshot, gaps, key, known) {
            return Decision::Park;
        }
        Decision::Admit { uid: known.uid, exists: false, shard, tenure }
    }

    /// Whether no other replica reconciles, or will reconcile, another object of a key.
    fn is_released(
        &self,
        state: &mut KeyState,
        snapshot: &CacheSnapshot<Value>,
        gaps: u64,
        key: &ObjectKey,
        known: Known,
    ) -> bool {
        if known.gaps > state.checked_gaps && !self.check_gaps(state, snapshot, gaps) {
            return false;
        }
        let released = |departed: &Departed| {
            departed.is(known.uid)
                || self.table.is_released(departed.shard, &self.controller, key, &departed.version)
        };
        state.departed.get(key).is_none_or(|departed| departed.iter().all(released))
    }

    /// Whether no other replica reconciles an object that was deleted in a gap, except for those that are noted here.
    ///
    /// A gap is a list, or events that were coalesced for the handler: a key may have had an object in between that this replica never
    /// knew. Its deletion is older than the object that it has now.
    fn check_gaps(&self, state: &mut KeyState, snapshot: &CacheSnapshot<Value>, gaps: u64) -> bool {
        if state.newest.as_ref().is_none_or(|(of, _)| *of != gaps) {
            let objects = snapshot.iter().map(|object| object.resource_version());
            let departed = state.departed.values().flatten().map(|departed| &departed.version);
            let newest = objects.chain(departed).reduce(|a, b| if a.is_older_than(b) { b } else { a });
            state.newest = newest.map(|newest| (gaps, newest.clone()));
        }
        let Some((_, newest)) = state.newest.clone() else { return false };
        let Some(busy) = self.table.busy_since(&self.controller, &newest) else { return false };
        for (shard, key) in busy {
            let departed = Departed { shard, known: None, version: newest.clone(), pending: false };
            state.departed.entry(key).or_default().push(departed);
        }
        state.checked_gaps = gaps;
        true
    }

    /// The progress of the reconciles in a shard that this replica holds; `None` if it is not known.
    pub(super) fn progress(&self, shard: u32) -> Option<KeyProgress> {
        let snapshot = self.lister.snapshot();
        let version = self.version(&snapshot)?;
        let state = lock(&self.state);
        let replaced = |key: &ObjectKey, uid: Uid| snapshot.get(key).is_none_or(|now| now.uid() != uid);
        let mut busy = BTreeSet::new();
        let in_flight = state.in_flight.iter().filter(|(_, flight)| flight.shard == shard);
        busy.extend(
            in_flight.filter(|(key, flight)| replaced(key, flight.uid)).map(|(key, _)| key.to_string()),
        );
        if self.by_key {
            // Deletions that have to be reconciled, also those of which the handler does not know yet.
            let pending = |departed: &Departed| departed.pending && departed.shard == shard;
            let departed = state.departed.iter().filter(|(_, all)| all.iter().any(pending));
            busy.extend(departed.map(|(key, _)| key.to_string()));
            let known = state.known.get(&shard).into_iter().flatten();
            busy.extend(
                known.filter(|(key, known)| replaced(key, known.uid)).map(|(key, _)| key.to_string()),
            );
        }
        drop(state);
        (busy.len() <= MAX_BUSY).then(|| KeyProgress { version: version.to_string(), busy })
    }

    /// The version up to which the cache shows every change.
    fn version(&self, snapshot: &CacheSnapshot<Value>) -> Option<ResourceVersion> {
        let versions = self.namespaces.iter().map(|namespace| match namespace {
            Some(namespace) => snapshot.namespace_version(namespace),
            None => snapshot.resource_version(),
        });
        let versions = versions.collect::<Option<Vec<_>>>()?;
        versions.into_iter().reduce(|a, b| if b.is_older_than(&a) { b } else { a })
    }

    /// A shard becomes ready: the caches show the state of the server at `version`. The previous holder has reconciled deletions until
    /// then.
    pub(super) fn gained(&self, shard: u32, version: Option<ResourceVersion>) {
        lock(&self.state).gained.insert(shard, version);
    }

    /// This replica does not hold a shard any more.
    pub(super) fn lost(&self, shard: u32) {
        let mut state = lock(&self.state);
        state.gained.remove(&shard);
        for departed in state.departed.values_mut().flatten().filter(|departed| departed.shard == shard) {
            departed.pending = false;
        }
    }

    /// Adds all keys of a shard that is ready to the queue.
    pub(super) async fn enqueue(&self, shard: u32) {
        let pending: Vec<_> = {
            let state = lock(&self.state);
            let pending = |all: &[Departed]| all.iter().any(|departed| departed.pending);
            state.departed.iter().filter(|(_, all)| pending(all)).map(|(key, _)| key.clone()).collect()
        };
        pending.into_iter().for_each(|key| self.queue.add(key));
        for (index, object) in self.lister.snapshot().iter().enumerate() {
            if self.table.shard_of(object.uid()) == shard {
                self.queue.add_with(object.key().clone(), Priority::LOW);
            }
            if index % BATCH == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Adds the keys that wait for other replicas to the queue, and forgets deleted objects that all replicas have finished with.
    pub(super) fn others_progressed(&self) {
        let parked = {
            let mut state = lock(&self.state);
            state.departed.retain(|key, all| {
                all.retain(|departed| {
                    let Departed { shard, version, pending, .. } = departed;
                    *pending || !self.table.is_released(*shard, &self.controller, key, version)
                });
                !all.is_empty()
            });
            std::mem::take(&mut state.parked)
        };
        parked.into_iter().for_each(|key| self.queue.add(key));
    }

    /// Resolves when no reconcile in a shard is in flight.
    pub(super) async fn ended(&self, shard: u32) {
        let mut ended = self.ended.subscribe();
        while lock(&self.state).in_flight.values().any(|flight| flight.shard == shard) {
            // The sender is in `self`.
            let _ = ended.changed().await;
        }
    }

    fn added(&self, object: &Object<Value>) {
        let (shard, known) = (self.table.shard_of(object.uid()), self.known_now(object.uid()));
        lock(&self.state).known.entry(shard).or_default().insert(object.key().clone(), known);
    }

    fn known_now(&self, uid: Uid) -> Known {
        Known { uid, gaps: count_gaps(self.lister.snapshot().lists(), self.coalesced()) }
    }

    fn deleted(&self, deleted: &Deleted<Value>) {
        let (key, object) = (deleted.key(), deleted.object());
        let (shard, now) = (self.table.shard_of(object.uid()), self.known_now(object.uid()));
        // The version of a deletion that is hidden in a list is not known, but not newer than the list.
        let unknown = deleted.is_final_state_unknown().then(|| self.version(&self.lister.snapshot()));
        let version = unknown.flatten().unwrap_or_else(|| object.resource_version().clone());
        let mut state = lock(&self.state);
        let known = state.known.get_mut(&shard).and_then(|known| known.remove(key)).unwrap_or(now);
        let is_later = |gained: &Option<ResourceVersion>| {
            gained.as_ref().is_none_or(|gained| gained.is_older_than(&version))
        };
        let pending = self.by_key && state.gained.get(&shard).is_some_and(is_later);
        let departed = Departed { shard, known: Some(known), version, pending };
        state.departed.entry(key.clone()).or_default().push(departed);
    }
}

impl Departed {
    fn is(&self, uid: Uid) -> bool {
        self.known.is_some_and(|known| known.uid == uid)
    }
}

/// Keeps track of the uids of keys.
struct Recorder(Arc<ShardKeys>);

impl EventHandler<Value> for Recorder {
    fn on_add(&mut self, object: &Object<Value>, initial: bool) {
        self.0.added(object);
        // It may have been skipped, because this handler did not know of it.
        let priority = if initial { Priority::LOW } else { Priority::NORMAL };
        self.0.queue.add_with(object.key().clone(), priority);
    }

    fn on_update(&mut self, _: &Object<Value>, _: &Object<Value>) {}

    fn on_delete(&mut self, deleted: &Deleted<Value>) {
        self.0.deleted(deleted);
        self.0.queue.add(deleted.key().clone());
    }
}

impl Admission {
    /// Resolves when the Lease of the shard was lost.
    pub(crate) async fn lost(&self) {
        self.tenure.lost.cancelled().await;
    }

    /// The reconcile is done.
    pub(crate) fn settle(&self) {
        let mut state = lock(&self.keys.state);
        if let Some(departed) = state.departed.get_mut(&self.key) {
            for departed in departed.iter_mut().filter(|departed| departed.is(self.subject.uid)) {
                departed.pending = false;
            }
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        lock(&self.keys.state).in_flight.remove(&self.key);
        self.keys.ended.send_replace(());
    }
}

/// Number of gaps in what the handler knows. The time before it was added is one: a restored cache has objects without a list.
fn count_gaps(lists: u64, coalesced: u64) -> u64 {
    lists.saturating_add(coalesced).saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_of_a_restored_object_is_not_known() {
        let checked = KeyState::default().checked_gaps;
        assert!(
            count_gaps(0, 0) > checked,
            "other replicas have to show that they have finished with earlier objects"
        );
        assert!(count_gaps(1, 0) > count_gaps(0, 0) && count_gaps(0, 1) > count_gaps(0, 0));
    }
}
