//! Tasks that make random writes and sometimes wait until an informer's cache has the write.

use crate::{
    cluster::{
        COLORS, DirectClient, RequestError, collection, config_maps, content_field, object, pods, widgets,
    },
    report::{Fault, Report, lock},
    subject::AwaitedInformer,
};
use harness::NAMESPACES;
use kube_informer::{Kind, ObjectKey, ResourceVersion, WaitError};
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::watch, task::JoinHandle, time::Instant};

/// Timeout that a writer passes to a wait.
const WAIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Delay after the limit, allowed on a busy machine, after which a wait counts as hanging.
const WAIT_SLACK: Duration = Duration::from_secs(20);
/// Object names that each writer uses in each namespace.
const NAMES: u32 = 6;

/// Starts and pauses the writers, and shares the state of the run with them.
pub(crate) struct WriterControl {
    pub(crate) report: Arc<Report>,
    /// The epoch of the server. Incremented when the server has lost its data, before it restarts.
    pub(crate) epoch: AtomicU64,
    /// The informers in which writers wait for their writes.
    pub(crate) informers: Mutex<Vec<AwaitedInformer>>,
    writing: watch::Sender<bool>,
    busy_writers: AtomicUsize,
}

impl WriterControl {
    pub(crate) fn new(report: Arc<Report>) -> Arc<Self> {
        Arc::new(Self {
            report,
            epoch: AtomicU64::new(1),
            informers: Mutex::default(),
            writing: watch::Sender::new(false),
            busy_writers: AtomicUsize::new(0),
        })
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Starts the writers, or pauses them after their current write.
    pub(crate) fn set_writing(&self, writing: bool) {
        self.writing.send_replace(writing);
    }

    /// Returns whether no write is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.busy_writers.load(Ordering::SeqCst) == 0
    }
}

/// A writer. No other writer writes its objects.
pub(crate) struct Writer {
    number: usize,
    control: Arc<WriterControl>,
    direct: DirectClient,
    rng: fastrand::Rng,
    /// Objects that exist, as far as the writer knows.
    present: HashSet<(Kind, ObjectKey)>,
    /// Objects for which a request of unknown outcome may still be in flight, and its epoch.
    uncertain: HashMap<(Kind, ObjectKey), u64>,
    writes: u64,
}

/// The result of a write.
enum WriteResult {
    /// The object is at this version, with this color.
    Stored {
        version: u64,
        color: String,
    },
    Deleted,
}

impl WriteResult {
    /// Returns whether an informer that selects this color, or all, receives the write.
    fn is_selected(&self, color: Option<&str>) -> bool {
        match self {
            Self::Stored { color: written, .. } => color.is_none_or(|wanted| wanted == written),
            Self::Deleted => true,
        }
    }
}

impl Writer {
    pub(crate) fn spawn(
        number: usize,
        control: Arc<WriterControl>,
        direct: DirectClient,
        rng: fastrand::Rng,
    ) -> JoinHandle<()> {
        let (present, uncertain) = (HashSet::new(), HashMap::new());
        let writer = Self { number, control, direct, rng, present, uncertain, writes: 0 };
        tokio::spawn(writer.run())
    }

    async fn run(mut self) {
        let control = Arc::clone(&self.control);
        let mut writing = control.writing.subscribe();
        while writing.wait_for(|writing| *writing).await.is_ok() {
            control.busy_writers.fetch_add(1, Ordering::SeqCst);
            if *control.writing.borrow() {
                self.write().await;
            }
            control.busy_writers.fetch_sub(1, Ordering::SeqCst);
        }
    }

    async fn write(&mut self) {
        let kind = match self.rng.u8(0..10) {
            0..5 => config_maps(),
            5..9 => widgets(),
            _ => pods(),
        };
        let namespace = NAMESPACES[self.rng.usize(..NAMESPACES.len())];
        let key: ObjectKey = (namespace, &*format!("w{}-{}", self.number, self.rng.u32(..NAMES))).into();
        let at = (kind, key);
        let epoch = self.control.epoch();
        let done = self.change(&at).await;
        match done {
            Ok(done) => {
                self.control.report.writes.fetch_add(1, Ordering::Relaxed);
                let uncertain = self.uncertain.get(&at).is_some_and(|since| *since == epoch);
                if self.rng.u8(0..4) == 0 && !uncertain {
                    self.await_write(&at, epoch, &done).await;
                }
            }
            // `present` was wrong, because a request had an unknown outcome or the server lost its data.
            Err(RequestError::Status(404)) => drop(self.present.remove(&at)),
            Err(RequestError::Status(409)) => drop(self.present.insert(at)),
            Err(_) => {
                self.control.report.record_fault(Fault::WriteFailed);
                self.uncertain.insert(at, self.control.epoch());
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
        }
    }

    async fn change(&mut self, at: &(Kind, ObjectKey)) -> Result<WriteResult, RequestError> {
        let (kind, key) = at;
        let all = collection(kind, key.namespace());
        let one = format!("{all}/{}", key.name());
        let color = COLORS[self.rng.usize(..COLORS.len())];
        self.writes += 1;
        let n = self.writes;
        if !self.present.contains(at) {
            let epoch = self.control.epoch();
            let created = self.direct.request("POST", &all, Some(&object(kind, key, color, n, None))).await?;
            self.present.insert(at.clone());
            if self.control.epoch() == epoch {
                self.record_creation(&created, epoch);
            }
            return Ok(stored(&created));
        }
        if self.rng.u8(0..4) == 0 {
            self.direct.request("DELETE", &one, None).await?;
            self.present.remove(at);
            return Ok(WriteResult::Deleted);
        }
        let mut patch = json!({"metadata": {"labels": {"color": color}}});
        if kind.plural == "pods" {
            patch["metadata"]["annotations"] = json!({"n": n.to_string()});
        } else {
            patch[content_field(kind)] = json!({"n": n.to_string(), "color": color});
        }
        Ok(stored(&self.direct.request("PATCH", &one, Some(&patch)).await?))
    }

    fn record_creation(&self, created: &Value, epoch: u64) {
        if let Some(uid) = created["metadata"]["uid"].as_str() {
            self.control.report.record_creation(uid.into(), epoch);
        }
    }

    /// Waits for a write in a random informer, and checks that its cache then has the write.
    async fn await_write(&mut self, (kind, key): &(Kind, ObjectKey), epoch: u64, done: &WriteResult) {
        let namespace = key.namespace().unwrap_or_default();
        // An informer that does not select the object reaches the version with the next bookmark only. Such a wait often
        // times out, so there are few of them.
        let bookmarks = self.rng.u8(0..8) == 0;
        let candidates: Vec<_> = {
            let informers = lock(&self.control.informers);
            let fits = |awaited: &&AwaitedInformer| {
                awaited.settings.kind == *kind
                    && awaited.settings.covers_namespace(namespace)
                    && (bookmarks || done.is_selected(awaited.settings.color))
                    // Versions of different epochs cannot be compared.
                    && awaited.epoch(namespace) == Some(epoch)
            };
            informers.iter().filter(fits).cloned().collect()
        };
        let Some(awaited) = self.rng.choice(candidates) else { return };
        self.control.report.awaited.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let waiting = async {
            match done {
                WriteResult::Stored { version, .. } => {
                    let version = ResourceVersion::from(*version);
                    awaited.informer.reached_version(key, &version, WAIT_TIMEOUT).await
                }
                WriteResult::Deleted => {
                    awaited.informer.wait_until(key, WAIT_TIMEOUT, |object| object.is_none()).await
                }
            }
        };
        let result = tokio::time::timeout(WAIT_TIMEOUT + WAIT_SLACK, waiting).await;
        let same_epoch = || self.control.epoch() == epoch && awaited.epoch(namespace) == Some(epoch);
        let failure = match result {
            Err(_) => Some("the wait hangs"),
            Ok(Ok(())) if same_epoch() => {
                self.check_cache(&awaited, key, done);
                None
            }
            Ok(Err(WaitError::Timeout { .. })) if began.elapsed() < WAIT_TIMEOUT => {
                Some("the wait timed out early")
            }
            Ok(Err(WaitError::Stopped { .. })) if !awaited.informer.is_stopped() => {
                Some("the wait reports a stopped informer, but it runs")
            }
            Ok(Err(WaitError::OutOfScope { .. })) => {
                Some("the wait reports a key out of scope, but it is in scope")
            }
            Ok(Err(WaitError::Failed { .. })) => Some("the wait reports a failed informer"),
            Ok(_) => None,
        };
        if let Some(failure) = failure {
            self.fail_wait(&awaited, key, failure);
        }
    }

    /// Checks that the cache has exactly the last write, because no other writer writes this object.
    fn check_cache(&self, awaited: &AwaitedInformer, key: &ObjectKey, done: &WriteResult) {
        let cached = awaited.informer.lister().get(key).and_then(|object| object.resource_version().number());
        let expected = match done {
            WriteResult::Stored { version, .. } => {
                done.is_selected(awaited.settings.color).then_some(*version)
            }
            WriteResult::Deleted => None,
        };
        if cached != expected {
            let failure = format!("expected version {expected:?}, the cache has {cached:?}");
            self.fail_wait(awaited, key, &failure);
        }
    }

    fn fail_wait(&self, awaited: &AwaitedInformer, key: &ObjectKey, failure: &str) {
        self.control.report.fail(format_args!("{}: waiting for {key}: {failure}", awaited.settings.name));
    }
}

fn stored(object: &Value) -> WriteResult {
    let metadata = &object["metadata"];
    let version = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default();
    WriteResult::Stored {
        version,
        color: metadata["labels"]["color"].as_str().unwrap_or_default().to_owned(),
    }
}
