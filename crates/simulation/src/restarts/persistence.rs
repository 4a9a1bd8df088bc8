//! How an informer of a world saves its cache.

use super::Expected;
use crate::{
    history::EpochVersion,
    log::Log,
    subject::{CacheCheck, Settings},
    totals::Fault,
};
use crash_disk::RecordingDisk;
use kube_informer::{FailPoint, InformerBuilder, InformerError, PersistOptions};
use kube_informer_wire::sync::lock;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};
use tokio::time::Instant;

/// The files of a directory.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The name of the cluster of a world.
pub(super) const CLUSTER: &str = "this";
/// The key of caches that are encrypted.
pub(super) const KEY: [u8; 32] = [7; 32];
/// How many older copies of a directory are kept.
const COPIES: usize = 4;

/// The wall clock of a world.
#[derive(Debug, Clone)]
pub(crate) struct WallClock {
    start: Instant,
    /// Seconds that it was set forward, or back.
    offset: Arc<Mutex<i64>>,
}

impl WallClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), offset: Arc::default() }
    }

    pub(crate) fn now(&self) -> SystemTime {
        let elapsed = self.start.elapsed() + Duration::from_secs(1_000_000_000);
        let now = SystemTime::UNIX_EPOCH + elapsed;
        match *lock(&self.offset) {
            offset @ 0.. => now + Duration::from_secs(offset.unsigned_abs()),
            offset => now - Duration::from_secs(offset.unsigned_abs()),
        }
    }

    pub(super) fn set_forward(&self, seconds: i64) {
        *lock(&self.offset) += seconds;
    }
}

/// How one informer saves its cache. The informer of the next process gets the same, with another disk.
#[derive(Clone)]
pub(crate) struct Persistence {
    pub(super) disk: RecordingDisk,
    /// The number of operations of the disk before the process started.
    pub(super) first_operation: usize,
    pub(super) cluster: &'static str,
    clock: WallClock,
    pub(super) resume_within: Duration,
    pub(crate) trusts_restored: bool,
    pub(super) is_encrypted: bool,
    /// Copies of the directory, as it was when earlier processes ended.
    pub(super) copies: Arc<Mutex<Vec<Files>>>,
    saved: Arc<Mutex<SavedStates>>,
    /// The state in the files when the process starts, for each partition.
    pub(crate) expected: Vec<Expected>,
    /// The check of the cache, which knows the state that is about to be saved.
    cache: Arc<OnceLock<Weak<CacheCheck>>>,
    not_restored: Arc<AtomicU64>,
}

/// The epochs of saved states, by partition and version. There are several only if a restore of the server has repeated
/// the version.
type SavedStates = BTreeMap<(Option<&'static str>, u64), BTreeSet<u32>>;

impl fmt::Debug for Persistence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Persistence")
            .field("cluster", &self.cluster)
            .field("resume_within", &self.resume_within)
            .field("trusts_restored", &self.trusts_restored)
            .field("is_encrypted", &self.is_encrypted)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

impl Persistence {
    /// An empty directory.
    pub(super) fn random(rng: &mut fastrand::Rng, clock: &WallClock) -> Self {
        let seconds = rng.choice([600, 600, 600, 60, 0]).unwrap_or(600);
        Self {
            disk: RecordingDisk::with_files(Files::new(), rng.u64(..)),
            first_operation: 0,
            cluster: CLUSTER,
            clock: clock.clone(),
            resume_within: Duration::from_secs(seconds),
            trusts_restored: rng.u8(0..8) == 0,
            is_encrypted: rng.u8(0..4) == 0,
            copies: Arc::default(),
            saved: Arc::default(),
            expected: Vec::new(),
            cache: Arc::default(),
            not_restored: Arc::default(),
        }
    }

    /// The same directory in the next process.
    pub(super) fn restarted(&self, files: Files, seed: u64, expected: Vec<Expected>) -> Self {
        let disk = RecordingDisk::with_files(files, seed);
        let first_operation = disk.operations().len();
        let (cache, not_restored) = (Arc::default(), Arc::default());
        Self { disk, first_operation, expected, cache, not_restored, ..self.clone() }
    }

    pub(super) fn options(&self) -> PersistOptions {
        let clock = self.clock.clone();
        let mut options = PersistOptions::on(self.disk.clone())
            .cluster_id(self.cluster)
            .resume_within(self.resume_within)
            .clock(move || clock.now())
            .inline();
        if self.trusts_restored {
            options = options.trust_restored();
        }
        if self.is_encrypted {
            options = options.key(KEY);
        }
        options
    }

    pub(crate) fn apply(&self, builder: InformerBuilder) -> InformerBuilder {
        builder.persist(self.options()).expect("no other process has the directory")
    }

    /// Sets the check of the cache that is saved.
    pub(crate) fn set_cache(&self, cache: &Arc<CacheCheck>) {
        let _ = self.cache.set(Arc::downgrade(cache));
    }

    /// To be called at each fail point, with what may panic there. A restored state is published before anything else could
    /// wait for it, and a state that is about to be saved is known only then.
    pub(crate) fn at(&self, point: FailPoint, may_panic: impl FnOnce()) {
        let cache = self.cache.get().and_then(Weak::upgrade);
        if let Some(cache) = cache.as_ref().filter(|_| point == FailPoint::BatchPublished) {
            cache.check();
        }
        may_panic();
        if let Some(cache) = cache.as_ref().filter(|_| point == FailPoint::Saving) {
            cache.check();
            let mut saved = lock(&self.saved);
            for (partition, (epoch, version)) in cache.claimed() {
                saved.entry((partition, version)).or_default().insert(epoch);
            }
        }
    }

    /// The states that a saved version of a partition may be.
    pub(super) fn states(&self, partition: Option<&'static str>, version: u64) -> Vec<EpochVersion> {
        let saved = lock(&self.saved);
        let epochs = saved.get(&(partition, version)).into_iter().flatten();
        epochs.map(|&epoch| (epoch, version)).collect()
    }

    /// To be called by the error hook.
    pub(crate) fn report(&self, error: &InformerError, log: &Log) {
        if let InformerError::NotRestored { why } = error {
            self.not_restored.fetch_add(1, Ordering::Relaxed);
            log.record_fault(Fault::CacheDiscarded);
            log.note(format_args!("not restored: {why}"));
        }
    }

    /// Whether the informer has reported that it does not use a saved state.
    pub(crate) fn has_reported(&self) -> bool {
        self.not_restored.load(Ordering::Relaxed) > 0
    }

    /// Whether a content of the saved states may have been lost.
    pub(crate) fn may_lose_content(&self) -> bool {
        self.disk_failures() > 0 || self.expected.iter().any(|expected| expected.may_lose_content)
    }

    /// How many operations of the disk have failed.
    pub(crate) fn disk_failures(&self) -> u64 {
        self.disk.failures()
    }

    /// Keeps a copy of the directory.
    pub(super) fn keep_copy(&self, files: &Files) {
        let mut copies = lock(&self.copies);
        if copies.len() == COPIES {
            copies.remove(0);
        }
        copies.push(files.clone());
    }

    pub(super) fn is_recent(&self, saved_at: SystemTime) -> bool {
        self.clock.now().duration_since(saved_at).is_ok_and(|age| age <= self.resume_within)
    }
}

impl Settings {
    /// The settings of an informer that saves its cache.
    pub(super) fn saving(mut self, rng: &mut fastrand::Rng, clock: &WallClock) -> Self {
        self.by_factory = false;
        self.persistence = Some(Persistence::random(rng, clock));
        self
    }
}
