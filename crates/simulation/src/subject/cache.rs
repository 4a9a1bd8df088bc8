//! Whether a cache is a state that the collection really had.

use super::settings::{Settings, TransformKind};
use crate::{
    history::{Collection, History, Written, is_in, shows},
    tape::show,
    truth::{Blur, ClientId, Known, Truth},
};
use kube_informer::{CacheSnapshot, Lister, Object, ObjectKey, SharedInformer};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Compares a cache with the model.
///
/// 1. Each partition is the collection at the version it shows: all of it, nothing else. Of what could not be read in a
///    list it may show an older state, until a watch shows that object.
/// 2. That version never goes back, unless the collection itself did.
/// 3. Before its first list a partition is empty.
pub(crate) struct CacheCheck {
    name: String,
    lister: Lister<Value>,
    pub(super) transform: TransformKind,
    partitions: Vec<Option<&'static str>>,
    /// One for each partition.
    clients: Vec<ClientId>,
    truth: Arc<Truth>,
    /// Where each partition was when it was looked at last: an epoch and a version.
    last: Mutex<Vec<Option<(u32, u64)>>>,
    /// How often it was seen to change.
    looks: AtomicU64,
}

/// Looks at the cache after each change of it, for ever.
pub(super) async fn observe(informer: SharedInformer<Value>, cache: Arc<CacheCheck>) {
    let nothing = ObjectKey::namespaced("a", "nothing");
    let forever = Duration::from_secs(1 << 30);
    let look = informer.wait_until(&nothing, forever, |_| {
        cache.looks.fetch_add(1, Ordering::Relaxed);
        cache.check();
        false
    });
    let _ = look.await;
}

impl CacheCheck {
    pub(super) fn new(
        name: String,
        lister: Lister<Value>,
        settings: &Settings,
        clients: Vec<ClientId>,
        truth: Arc<Truth>,
    ) -> Self {
        let partitions = settings.partitions();
        let last = Mutex::new(vec![None; partitions.len()]);
        Self {
            name,
            lister,
            transform: settings.transform,
            partitions,
            clients,
            truth,
            last,
            looks: AtomicU64::new(0),
        }
    }

    /// How often the cache was seen to change.
    pub(super) fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    pub(super) fn check(&self) {
        let snapshot = self.lister.snapshot();
        let mut known = self.truth.lock();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        self.truth.log.count(|totals| totals.checks += 1);
        for ((partition, &client), last) in self.partitions.iter().zip(&self.clients).zip(&mut *last) {
            let checked = self.check_partition(*partition, client, last, &snapshot, &known);
            if let (Ok(()), Some(shown)) = (&checked, *last)
                && self.is_exact(*partition, shown, &snapshot, &known.history)
            {
                known.shows(client, shown);
            }
            let claims =
                |from: u64| version(*partition, &snapshot) >= Some(from) && known.history.epoch() == 0;
            match (known.blur(client), checked) {
                (Blur::None, Ok(())) => {}
                // What a garbled change hides is made good by a list. Until then the cache may lack it, if it
                // does not claim to show it.
                (Blur::Open(from), Err(why)) if claims(from) => self.wrong(&why),
                (Blur::Open(_), _) | (Blur::Until(..), Err(_)) => {}
                (Blur::Until(epoch, version), Ok(())) => {
                    if last.is_some_and(|last| last >= (epoch, version)) {
                        known.focus(client);
                    }
                }
                (Blur::None, Err(why)) => self.wrong(&why),
            }
        }
    }

    fn wrong(&self, why: &str) {
        self.truth.log.fail(format_args!("{}: {why}", self.name));
    }

    /// The epoch that the part of the cache with this key showed last.
    pub(super) fn epoch(&self, key: &ObjectKey) -> u32 {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let mut shown = self.partitions.iter().zip(&*last).filter(|(partition, _)| is_in(key, **partition));
        shown.find_map(|(_, last)| *last).map_or(0, |(epoch, _)| epoch)
    }

    /// Whether this key is among those that could not be read, in a cache that shows a state.
    pub(super) fn is_veiled(&self, key: &ObjectKey, state: (u32, u64), known: &Known) -> bool {
        let mut clients = self.partitions.iter().zip(&self.clients);
        clients.any(|(partition, &client)| is_in(key, *partition) && known.is_veiled(client, key, state))
    }

    /// Whether a partition is what it was, no key left out.
    fn is_exact(
        &self,
        partition: Option<&'static str>,
        (epoch, version): (u32, u64),
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
        partition: Option<&'static str>,
        client: ClientId,
        last: &mut Option<(u32, u64)>,
        snapshot: &CacheSnapshot<Value>,
        known: &Known,
    ) -> Result<(), String> {
        let history = &known.history;
        let Some(version) = version(partition, snapshot) else {
            let empty = !snapshot.iter().any(|object| is_in(object.key(), partition));
            return if empty { Ok(()) } else { Err("objects before the first list".into()) };
        };
        let before = last.unwrap_or((0, 0));
        let epochs = (before.0..=history.epoch()).filter(|&epoch| (epoch, version) >= before);
        let states = epochs.filter_map(|epoch| Some((epoch, history.at(epoch, version)?)));
        let mut difference = None;
        for (epoch, state) in states {
            let readable =
                |key: &ObjectKey| is_in(key, partition) && !known.is_veiled(client, key, (epoch, version));
            match self.differs(snapshot, state, history, readable) {
                None => {
                    *last = Some((epoch, version));
                    return Ok(());
                }
                different => difference = different,
            }
        }
        Err(match difference {
            Some(difference) => format!("{partition:?} is not what it was @{version}: {difference}"),
            None => format!("{partition:?} went back to @{version} from {before:?}"),
        })
    }

    /// The cache is the collection as it is now, content included.
    pub(super) fn check_current(&self) -> Result<(), String> {
        let snapshot = self.lister.snapshot();
        let known = self.truth.lock();
        let history = &known.history;
        for (&partition, &client) in self.partitions.iter().zip(&self.clients) {
            let now = (history.epoch(), history.version);
            let readable = |key: &ObjectKey| is_in(key, partition) && !known.is_veiled(client, key, now);
            if let Some(difference) = self.differs(&snapshot, history.current(), history, readable) {
                return Err(format!("{} {partition:?} is not what it is now: {difference}", self.name));
            }
            for object in snapshot.iter().filter(|object| is_in(object.key(), partition)) {
                self.check_content(object, history)?;
            }
        }
        Ok(())
    }

    fn check_content(&self, object: &Object<Value>, history: &History) -> Result<(), String> {
        let write = history.find(object, self.transform).ok_or("a state that never was")?;
        if self.transform.loses(write.stamp) {
            return Ok(());
        }
        let sent = write.as_watched(self.truth.origin()).map_err(|error| error.to_string())?;
        if self.transform == TransformKind::None {
            let same = object.is_same_content(&sent);
            return same.then_some(()).ok_or_else(|| format!("{} has other bytes than were sent", write.key));
        }
        let mut expected: Value = sent.view().map_err(|error| error.to_string())?;
        self.transform.change(&mut expected);
        let content: Value = object.view().map_err(|error| error.to_string())?;
        (content == expected)
            .then_some(())
            .ok_or_else(|| format!("{} is {content}, not {expected}", write.key))
    }

    /// How a cache differs from a state, if it does, in these keys.
    fn differs(
        &self,
        snapshot: &CacheSnapshot<Value>,
        state: &Collection,
        history: &History,
        among: impl Fn(&ObjectKey) -> bool,
    ) -> Option<String> {
        let cached = || snapshot.iter().filter(|object| among(object.key()));
        let expected = || state.values().filter(|write| among(&write.key));
        // Versions repeat only in another epoch.
        let unique = history.epoch() == 0;
        let same = |object: &Object<Value>, write: &Arc<Written>| {
            shows(object, write)
                && (unique || history.candidates(object, self.transform).any(|found| found.n == write.n))
        };
        let (mut is, mut was) = (cached(), expected());
        loop {
            match (is.next(), was.next()) {
                (None, None) => return None,
                (Some(object), Some(write)) if same(object, write) => {}
                _ => break,
            }
        }
        let n = |object: &Object<Value>| history.find(object, self.transform).map_or(0, |write| write.n);
        let is: BTreeMap<String, u64> =
            cached().map(|object| (object.key().to_string(), n(object))).collect();
        let was: BTreeMap<String, u64> = expected().map(|write| (write.key.to_string(), write.n)).collect();
        Some(format!("it is {} and was {}", show(&is), show(&was)))
    }
}

/// The version that a partition shows.
fn version(partition: Option<&str>, snapshot: &CacheSnapshot<Value>) -> Option<u64> {
    let version = match partition {
        None => snapshot.resource_version(),
        Some(namespace) => snapshot.namespace_version(namespace),
    };
    version.and_then(|version| version.number())
}
