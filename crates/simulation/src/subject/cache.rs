//! Checks that a cache is a state that the collection had.

use super::{restored::Restart, settings::Coverage, transform::TransformKind};
use crate::{
    handler_log::show,
    history::{Collection, EpochVersion, History, View, Write, has_identity_of, is_in},
    restarts::Persistence,
    truth::{ClientId, EventLoss, Truth, TruthState},
};
use kube_informer::{CacheSnapshot, Lister, Object, ObjectKey, SharedInformer};
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Compares a cache with the history. It checks these promises:
///
/// 1. Each partition is exactly the selected part of the collection at its resource version. An object whose item in a list was malformed
///    may have an older state, until a watch shows that object.
/// 2. The resource version never goes back, unless the collection was restored.
/// 3. Before its first list a partition is empty, or shows a state that an earlier process saved, then later ones.
/// 4. Saved files are used if they are intact, and otherwise the informer says why not.
pub(crate) struct CacheCheck {
    name: String,
    pub(super) lister: Lister<Value>,
    pub(super) view: View,
    pub(super) partitions: Vec<Option<&'static str>>,
    /// One for each partition.
    clients: Vec<ClientId>,
    pub(super) truth: Arc<Truth>,
    /// The state of each partition at the last check.
    pub(super) last: Mutex<Vec<Option<EpochVersion>>>,
    pub(super) persistence: Option<Persistence>,
    pub(super) restart: Mutex<Restart>,
    /// The number of changes of the cache.
    changes: AtomicU64,
}

/// Checks the cache after each change, forever.
pub(super) async fn observe(informer: SharedInformer<Value>, cache: Arc<CacheCheck>) {
    // Only a key that the informer covers can be waited for.
    let namespace = cache.partitions.first().copied().flatten().unwrap_or("a");
    let missing = ObjectKey::namespaced(namespace, "nothing");
    let forever = Duration::from_secs(1 << 30);
    let changes = informer.wait_until(&missing, forever, |_| {
        cache.changes.fetch_add(1, Ordering::Relaxed);
        cache.check();
        false
    });
    let _ = changes.await;
}

impl CacheCheck {
    pub(super) fn new(
        name: String,
        lister: Lister<Value>,
        coverage: &Coverage,
        clients: Vec<ClientId>,
        truth: Arc<Truth>,
        persistence: Option<Persistence>,
    ) -> Self {
        let partitions = coverage.partitions();
        let last = Mutex::new(vec![None; partitions.len()]);
        let restart = Mutex::new(Restart::new(partitions.len()));
        for (&client, expected) in clients.iter().zip(persistence.iter().flat_map(|saved| &saved.expected)) {
            truth.lock().restarts_from(client, &expected.states);
        }
        Self {
            name,
            lister,
            view: coverage.view(),
            partitions,
            clients,
            truth,
            last,
            persistence,
            restart,
            changes: AtomicU64::new(0),
        }
    }

    /// The number of changes of the cache.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) {
        let snapshot = self.lister.snapshot();
        let mut truth = self.truth.lock();
        let mut last = lock(&self.last);
        self.truth.log.count(|totals| totals.checks += 1);
        let partitions = self.partitions.iter().zip(&self.clients).zip(&mut *last).enumerate();
        for (at, ((partition, &client), last)) in partitions {
            let checked = self.check_partition(at, client, last, &snapshot, &truth);
            if let (Ok(()), Some(state)) = (&checked, *last)
                && self.is_exact(*partition, state, &snapshot, &truth.history)
            {
                truth.cache_equals(client, state);
            }
            let claims =
                |from: u64| version(*partition, &snapshot) >= Some(from) && truth.history.epoch() == 0;
            match (truth.event_loss(client), checked) {
                (EventLoss::None, Ok(())) => {}
                // The cache may lack the change of a malformed event until it lists, unless its resource version
                // claims that it has the change.
                (EventLoss::Unresolved(from), Err(why)) if claims(from) => self.fail(&why),
                (EventLoss::Unresolved(_), _) | (EventLoss::Relisted(_), Err(_)) => {}
                (EventLoss::Relisted(list), Ok(())) => {
                    if last.is_some_and(|last| last >= list) {
                        truth.resolve_event_loss(client);
                    }
                }
                (EventLoss::None, Err(why)) => self.fail(&why),
            }
        }
    }

    fn fail(&self, why: &str) {
        self.truth.log.fail(format_args!("{}: {why}", self.name));
    }

    /// The epoch of the partition with this key at the last check.
    pub(super) fn epoch(&self, key: &ObjectKey) -> u32 {
        let last = lock(&self.last);
        let mut states = self.partitions.iter().zip(&*last).filter(|(partition, _)| is_in(key, **partition));
        states.find_map(|(_, last)| *last).map_or(0, |(epoch, _)| epoch)
    }

    /// Whether a cache that shows `state` may have another state of this key.
    pub(super) fn may_be_stale(&self, key: &ObjectKey, state: EpochVersion, truth: &TruthState) -> bool {
        let mut clients = self.partitions.iter().zip(&self.clients);
        clients.any(|(partition, &client)| is_in(key, *partition) && truth.may_be_stale(client, key, state))
    }

    /// Whether a partition equals a state, without exceptions.
    pub(super) fn is_exact(
        &self,
        partition: Option<&'static str>,
        (epoch, version): EpochVersion,
        snapshot: &CacheSnapshot<Value>,
        history: &History,
    ) -> bool {
        let state = history.at(epoch, version);
        state.is_some_and(|state| {
            self.differs(snapshot, state, history, |key| is_in(key, partition)).is_none()
        })
    }

    fn check_partition(
        &self,
        at: usize,
        client: ClientId,
        last: &mut Option<EpochVersion>,
        snapshot: &CacheSnapshot<Value>,
        truth: &TruthState,
    ) -> Result<(), String> {
        let (history, partition) = (&truth.history, self.partitions[at]);
        let Some(version) = version(partition, snapshot) else {
            if let Some(expected) = self.expected(at).filter(|_| !truth.has_received_list(client)) {
                return self.check_restored(at, expected, last, snapshot, truth);
            }
            return self.check_unclaimed(partition, client, snapshot, truth);
        };
        self.check_start(at, client, truth)?;
        let before = last.unwrap_or((0, 0));
        let epochs = (before.0..=history.epoch()).filter(|&epoch| (epoch, version) >= before);
        let states = epochs.filter_map(|epoch| Some((epoch, history.at(epoch, version)?)));
        let mut difference = None;
        for (epoch, state) in states {
            let exact =
                |key: &ObjectKey| is_in(key, partition) && !truth.may_be_stale(client, key, (epoch, version));
            match self.differs(snapshot, state, history, exact) {
                None => {
                    *last = Some((epoch, version));
                    self.note_proven(at, version, snapshot, truth);
                    return Ok(());
                }
                different => difference = different,
            }
        }
        Err(match difference {
            Some(difference) => format!("{partition:?} is not the collection @{version}: {difference}"),
            None => format!("{partition:?} went back to @{version} from {before:?}"),
        })
    }

    /// Checks a partition that claims no resource version: before its initial list it has no objects. Later it withdraws
    /// its resource version while the server may have another history, and keeps its objects until the next list.
    fn check_unclaimed(
        &self,
        partition: Option<&'static str>,
        client: ClientId,
        snapshot: &CacheSnapshot<Value>,
        truth: &TruthState,
    ) -> Result<(), String> {
        let mut objects = snapshot.iter().filter(|object| is_in(object.key(), partition));
        if !truth.has_received_list(client) {
            return if objects.next().is_none() {
                Ok(())
            } else {
                Err("objects before the initial list".into())
            };
        }
        match objects.find(|object| truth.history.find(object, self.view).is_none()) {
            None => Ok(()),
            Some(object) => Err(format!("{} is in a state that was never written", object.key())),
        }
    }

    /// Checks that the cache is the newest state of the collection, including the content of objects.
    pub(super) fn check_current(&self) -> Result<(), String> {
        let snapshot = self.lister.snapshot();
        let truth = self.truth.lock();
        let history = &truth.history;
        for (&partition, &client) in self.partitions.iter().zip(&self.clients) {
            let now = (history.epoch(), history.version);
            let exact = |key: &ObjectKey| is_in(key, partition) && !truth.may_be_stale(client, key, now);
            if let Some(difference) = self.differs(&snapshot, history.current(), history, exact) {
                return Err(format!("{} {partition:?} is not the newest state: {difference}", self.name));
            }
            for object in snapshot.iter().filter(|object| is_in(object.key(), partition)) {
                self.check_content(object, history)?;
            }
        }
        Ok(())
    }

    fn check_content(&self, object: &Object<Value>, history: &History) -> Result<(), String> {
        let write = history.find(object, self.view).ok_or("a state that was never written")?;
        if self.view.transform.removes_content(write) {
            return Ok(());
        }
        let sent = write.as_watched(self.truth.origin()).map_err(|error| error.to_string())?;
        if self.view.transform == TransformKind::None {
            let same = object.is_same_content(&sent);
            return same
                .then_some(())
                .ok_or_else(|| format!("{} has other bytes than the server sent", write.key));
        }
        if write.tag.is_malformed() {
            return self.check_raw(object, write);
        }
        let mut expected: Value = sent.view().map_err(|error| error.to_string())?;
        self.view.transform.change(&mut expected);
        let content: Value = object.view().map_err(|error| error.to_string())?;
        (content == expected)
            .then_some(())
            .ok_or_else(|| format!("{} is {content}, not {expected}", write.key))
    }

    /// Checks the content of an object that serde cannot decode: fields are dropped from the bytes, and the rest stays.
    fn check_raw(&self, object: &Object<Value>, write: &Write) -> Result<(), String> {
        let json = object.json().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&json);
        let tag = format!("\"tag\":{}", write.tag.json().unwrap_or_default());
        let dropped = match self.view.transform {
            TransformKind::DropManagedFields => "managedFields",
            TransformKind::DropBulk => "bulk",
            _ => "\0",
        };
        (text.contains(&tag) && !text.contains(dropped))
            .then_some(())
            .ok_or_else(|| format!("{} is {text}", write.key))
    }

    /// The difference between a cache and a state, among some keys.
    pub(super) fn differs(
        &self,
        snapshot: &CacheSnapshot<Value>,
        state: &Collection,
        history: &History,
        among: impl Fn(&ObjectKey) -> bool,
    ) -> Option<String> {
        let cached = || snapshot.iter().filter(|object| among(object.key()));
        let selected = |write: &&Arc<Write>| among(&write.key) && self.view.selection.selects(write);
        let expected = || state.values().filter(selected);
        // Versions repeat only in another epoch.
        let unique = history.epoch() == 0;
        let same = |object: &Object<Value>, write: &Arc<Write>| {
            has_identity_of(object, write)
                && (unique || history.candidates(object, self.view).any(|found| found.n == write.n))
        };
        let (mut actual, mut wanted) = (cached(), expected());
        loop {
            match (actual.next(), wanted.next()) {
                (None, None) => return None,
                (Some(object), Some(write)) if same(object, write) => {}
                _ => break,
            }
        }
        let n = |object: &Object<Value>| history.find(object, self.view).map_or(0, |write| write.n);
        let actual: BTreeMap<String, u64> =
            cached().map(|object| (object.key().to_string(), n(object))).collect();
        let wanted: BTreeMap<String, u64> =
            expected().map(|write| (write.key.to_string(), write.n)).collect();
        Some(format!("the cache has {}, the collection had {}", show(&actual), show(&wanted)))
    }
}

/// The resource version of a partition.
pub(super) fn version(partition: Option<&str>, snapshot: &CacheSnapshot<Value>) -> Option<u64> {
    let version = match partition {
        None => snapshot.resource_version(),
        Some(namespace) => snapshot.namespace_version(namespace),
    };
    version.and_then(|version| version.number())
}
