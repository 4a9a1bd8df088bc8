//! Builder of an informer.

mod parts;

use super::{Core, Selection, SharedInformer, tasks::Tasks};
use crate::{
    fail_point::{FailPoint, FailPoints},
    persist::{PersistError, PersistOptions, PersistStatus, Persistence, Setup, Subject},
    processor::Processor,
    reflector::{Deadlines, Reflector, Settings},
    scope::Scope,
    status::InformerStatus,
    supervision::Supervision,
    telemetry::{ErrorHook, InformerError},
    transform::Transform,
};
use kube_informer_wire::{
    FieldSelector, LabelSelector, ListOptions, ListWatch, Origin, Packing, ShardSelector, Storage,
    WatchOptions,
};
use parts::Parts;
use std::{fmt, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Builds an informer over any source of objects.
///
/// Most programs get their informers from an [`InformerFactory`](crate::InformerFactory) instead.
#[must_use = "an informer exists only once it is built"]
#[derive(Clone)]
pub struct InformerBuilder {
    origin: Arc<Origin>,
    name: String,
    scope: Scope,
    selection: Selection,
    transform: Transform,
    packing: Packing,
    storage: Storage,
    resync: Duration,
    queue_bound: usize,
    handler_bound: usize,
    settings: Settings,
    hook: Option<ErrorHook>,
    seed: Option<u64>,
    linger: bool,
    fail_points: FailPoints,
    persistence: Option<Persistence>,
    /// Whether the source has the metadata of objects only.
    metadata_only: bool,
}

impl InformerBuilder {
    /// An informer for objects of one origin, covering everything.
    pub fn new(origin: Arc<Origin>) -> Self {
        Self {
            name: origin.kind().to_string(),
            origin,
            scope: Scope::all(),
            selection: Selection::default(),
            transform: Transform::new(),
            packing: Packing::default(),
            storage: Storage::default(),
            resync: Duration::ZERO,
            queue_bound: 4096,
            handler_bound: 1024,
            settings: Settings::default(),
            hook: None,
            seed: None,
            linger: false,
            fail_points: FailPoints::default(),
            persistence: None,
            metadata_only: false,
        }
    }

    /// A name for metrics; the resource by default. Informers whose name, resource, scope and selectors are equal are numbered:
    /// `pods`, `pods#2`.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The namespaces to cover; all by default.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// The label selector that the source uses, for metrics and for [`reached`](SharedInformer::reached). This does not
    /// select anything: the source does.
    pub fn label_selector(mut self, selector: LabelSelector) -> Self {
        self.selection.labels = selector;
        self
    }

    /// The field selector that the source uses, for metrics and for [`reached`](SharedInformer::reached). This does not
    /// select anything: the source does.
    pub fn field_selector(mut self, selector: FieldSelector) -> Self {
        self.selection.fields = selector;
        self
    }

    /// The shards to cover; all by default. Objects of other shards are dropped when they arrive, because a server may ignore
    /// the selector of the source.
    pub fn shard_selector(mut self, selector: ShardSelector) -> Self {
        self.settings.shards = selector.clone();
        self.selection.shards = selector;
        self
    }

    /// The transform of every object before it is stored.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = transform;
        self
    }

    /// How the content of objects is kept; packed by default.
    pub fn packing(mut self, packing: Packing) -> Self {
        self.packing = packing;
        self
    }

    /// Where the content of objects is kept; in memory by default. See [`Storage`] for when to keep it on disk.
    ///
    /// On disk, writing happens in the background. While the disk is full, slow or failing, content stays in memory up to
    /// [`DiskOptions::buffer_bytes`](crate::DiskOptions::buffer_bytes); beyond that the informer stops reading from the server,
    /// its status is [`InformerStatus::Retrying`], and it goes on when there is room. The first failure is reported as
    /// [`InformerError::DiskWrite`]. Content that cannot be read from its file is a [`DecodeError`](crate::DecodeError) for the
    /// reader, is reported as [`InformerError::ContentLost`], and is fetched again by a relist, at most one a minute: handlers
    /// are then called with an update to the same version.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Period of resyncs, which update every object although nothing changed, for handlers without a period of their own; zero, the
    /// default, and `Duration::MAX` are never.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = period;
        self
    }

    /// Changes between reflector and store beyond which the reflector stops reading; 4096 by default.
    pub fn queue_bound(mut self, deltas: usize) -> Self {
        self.queue_bound = deltas;
        self
    }

    /// Events waiting for one handler beyond which it gets net effects; 1024 by default.
    pub fn handler_bound(mut self, events: usize) -> Self {
        self.handler_bound = events;
        self
    }

    /// Page size of lists; by default 500, or none where the server responds from its cache.
    pub fn page_size(mut self, objects: u32) -> Self {
        self.settings.page_size = Some(objects);
        self
    }

    /// Whether to fill the cache by a streaming list where the server can; on by default.
    pub fn streaming_list(mut self, streaming: bool) -> Self {
        self.settings.streaming = streaming;
        self
    }

    /// Watches are asked to last between this and twice this; five minutes by default and at least, a day at most.
    pub fn min_watch_timeout(mut self, timeout: Duration) -> Self {
        self.settings.min_watch = timeout.clamp(Duration::from_secs(300), Duration::from_secs(86_400));
        self
    }

    /// Changes the deadlines of requests; see [`Deadlines`] for them and their defaults.
    pub fn deadlines(mut self, change: impl FnOnce(&mut Deadlines)) -> Self {
        change(&mut self.settings.deadlines);
        self
    }

    /// Sets [`Deadlines::probe_after`].
    pub fn probe_after(self, silence: Duration) -> Self {
        self.deadlines(|deadlines| deadlines.probe_after = silence)
    }

    /// Changes the options of each LIST before it is sent.
    pub fn tweak_list(mut self, tweak: impl Fn(&mut ListOptions) + Send + Sync + 'static) -> Self {
        self.settings.tweaks.set_list(tweak);
        self
    }

    /// Changes the options of each WATCH, and of each streaming list, before it is sent. The deadline of the watch
    /// follows from the timeout that is set here.
    pub fn tweak_watch(mut self, tweak: impl Fn(&mut WatchOptions) + Send + Sync + 'static) -> Self {
        self.settings.tweaks.set_watch(tweak);
        self
    }

    /// The first and the longest wait after failures; 0.8 s and 30 s by default and a millisecond at least, each with up to as
    /// much again.
    pub fn backoff(mut self, start: Duration, cap: Duration) -> Self {
        self.settings.backoff = self.settings.backoff.range(start, cap);
        self
    }

    /// The longest `Retry-After` of a server that is honoured, with up to a tenth on top; ten minutes by default. A
    /// longer one counts as this. `Duration::MAX` honours any, even one that never ends.
    pub fn max_retry_after(mut self, limit: Duration) -> Self {
        self.settings.backoff = self.settings.backoff.max_retry_after(limit);
        self
    }

    /// Saves the cache in a directory, so that the next process starts with it. The options must name the cluster. Opens the
    /// directory, which no other process may use.
    pub fn persist(self, options: impl Into<PersistOptions>) -> Result<Self, PersistError> {
        let persistence = options.into().open(None)?;
        Ok(self.persist_in(persistence))
    }

    pub(crate) fn persist_in(mut self, persistence: Persistence) -> Self {
        self.persistence = Some(persistence);
        self
    }

    pub(crate) fn metadata_only(mut self, metadata_only: bool) -> Self {
        self.metadata_only = metadata_only;
        self
    }

    /// Called for every failure, wherever it happens. Must not block.
    pub fn on_error(mut self, hook: impl Fn(&InformerError) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Where random times come from, for runs that can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// For simulations: changes take a random time from the queue into the store, as on a machine whose threads
    /// are slow.
    #[doc(hidden)]
    pub fn linger(mut self, linger: bool) -> Self {
        self.linger = linger;
        self
    }

    /// For tests: called at places in the tasks of the informer, which it makes panic by panicking.
    #[doc(hidden)]
    pub fn fail_points(mut self, hook: impl Fn(FailPoint) + Send + Sync + 'static) -> Self {
        self.fail_points = FailPoints::new(hook);
        self
    }

    /// The informer, reading from the source that `source` gives for each namespace (`None` for all of them).
    pub fn build<T: 'static>(
        self,
        mut source: impl FnMut(Option<&str>) -> Arc<dyn ListWatch>,
    ) -> SharedInformer<T> {
        let parts = Parts::new(&self);
        let persist_status = watch::Sender::default();
        let mut saving = self.saving(&parts, &persist_status);
        let mut rng = self.seed.map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed);
        let (mut reflectors, mut statuses) = (Vec::new(), Vec::new());
        let empty = (parts.partitions.len() == 0).then(|| watch::Sender::new(InformerStatus::Starting));
        statuses.extend(empty.iter().map(watch::Sender::subscribe));
        for partition in parts.partitions.all() {
            let (status, seen) = watch::channel(InformerStatus::Starting);
            let namespace = parts.partitions.namespace(partition);
            let source = source(namespace);
            let restore = saving.as_mut().map(|saving| saving.load(partition, namespace));
            let wiring = parts.wiring(partition, source, status, restore);
            reflectors.push(Reflector::new(wiring, self.settings.clone(), rng.fork()));
            statuses.push(seen);
        }
        let mut controller = parts.controller(Processor::new(self.resync));
        if self.linger {
            controller = controller.lingering(rng.fork());
        }
        let controller = Arc::new(controller);
        let persisted = persist_status.subscribe();
        let persister = saving.map(|saving| {
            let (controller, fail_points) = (Arc::clone(&controller), self.fail_points.clone());
            saving.persister(controller, persist_status, rng.fork(), fail_points)
        });
        let supervision = Arc::new(Supervision::new(Arc::clone(&parts.telemetry)));
        let tasks = Tasks::new(reflectors, parts.upkeep(), persister, supervision, self.fail_points);
        SharedInformer::from_core(Arc::new(Core {
            origin: self.origin,
            partitions: parts.partitions,
            selection: self.selection,
            controller,
            transform: parts.transform,
            packer: parts.packer,
            views: parts.views,
            statuses,
            persisted,
            empty,
            handler_bound: self.handler_bound,
            resync: self.resync,
            tasks,
        }))
    }
}

impl InformerBuilder {
    /// How the cache is saved, if it is. Otherwise says why not.
    fn saving(&self, parts: &Parts, status: &watch::Sender<PersistStatus>) -> Option<Setup> {
        let subject = Subject {
            kind: self.origin.kind(),
            scope: &self.scope,
            selection: &self.selection,
            transform: &self.transform,
            metadata_only: self.metadata_only,
        };
        match Setup::new(self.persistence.clone()?, &subject, &parts.partitions, parts.saved()) {
            Ok(setup) => Some(setup),
            Err(why) => {
                status.send_replace(PersistStatus::Refused { why: why.to_owned() });
                parts.telemetry.not_persisted(why);
                None
            }
        }
    }
}

impl fmt::Debug for InformerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InformerBuilder({}, {})", self.origin.kind(), self.scope)
    }
}
