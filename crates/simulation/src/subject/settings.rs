//! Random settings of informers.

use crate::{history::Write, log::Log, totals::Fault};
use kube_informer::{FailPoint, InformerBuilder, InformerOptions, Packing, Scope, Transform};
use kube_informer_wire::sync::lock;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    panic::resume_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

/// The namespaces of a world. The name of one is a prefix of another.
pub(crate) const NAMESPACES: [&str; 4] = ["a", "a-b", "b", "c"];

/// How content is stored. `Packed` is rare, because training a dictionary takes a tenth of the time of a world.
const PACKING: [Packing; 4] = [Packing::Raw, Packing::Raw, Packing::Decoded, Packing::Packed];

/// Settings of one informer.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// `None` is all namespaces.
    pub(crate) namespaces: Option<BTreeSet<&'static str>>,
    pub(crate) transform: TransformKind,
    pub(crate) resync: Duration,
    streaming: bool,
    page_size: Option<u32>,
    queue_bound: usize,
    handler_bound: usize,
    /// Short backoff.
    quick: bool,
    linger: bool,
    packing: Packing,
    /// Whether a factory creates the informer.
    pub(crate) by_factory: bool,
    /// The remaining number of panics of its tasks.
    panics: Arc<AtomicU32>,
    seed: u64,
}

/// The transform of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransformKind {
    None,
    DropManagedFields,
    /// Drops `data.bulk`.
    DropBulk,
    /// Drops `data`. Only for controllers, which have no index on it.
    DropData,
    Function,
    /// Panics on some objects, which are cached without their content.
    Panicking,
}

/// Whether the panicking transform panics on an object.
fn panics_on(stamp: u64) -> bool {
    stamp % 11 == 1
}

/// The number in the content of an object.
fn stamp(object: &Value) -> u64 {
    object["data"]["n"].as_str().and_then(|n| n.parse().ok()).unwrap_or(0)
}

impl Settings {
    pub(crate) fn random(rng: &mut fastrand::Rng) -> Self {
        let several = || -> BTreeSet<&'static str> { NAMESPACES.into_iter().collect() };
        let namespaces = match rng.u8(0..4) {
            0 | 1 => None,
            2 => rng.choice(NAMESPACES).map(|one| BTreeSet::from([one])),
            _ => {
                let mut some = several();
                if let Some(left_out) = rng.choice(NAMESPACES) {
                    some.remove(left_out);
                }
                Some(some)
            }
        };
        let transforms = [
            TransformKind::None,
            TransformKind::None,
            TransformKind::DropManagedFields,
            TransformKind::DropBulk,
            TransformKind::Function,
            TransformKind::Panicking,
        ];
        Self {
            namespaces,
            transform: rng.choice(transforms).unwrap_or(TransformKind::None),
            resync: Duration::from_secs(rng.choice([0, 0, 10, 60, 300]).unwrap_or(0)),
            streaming: rng.bool(),
            page_size: rng.choice([None, Some(2), Some(3), Some(5), Some(7), Some(50)]).flatten(),
            queue_bound: rng.choice([1, 2, 4, 4096]).unwrap_or(1),
            handler_bound: rng.choice([1, 2, 4, 1024]).unwrap_or(1),
            quick: rng.bool(),
            linger: rng.u8(0..3) == 0,
            packing: rng.choice(PACKING).unwrap_or_default(),
            by_factory: rng.u8(0..3) == 0,
            panics: panics(rng.choice([0, 0, 0, 3, 12]).unwrap_or(0)),
            seed: rng.u64(..),
        }
    }

    /// Settings for a controller: all namespaces, sometimes without data, and with resync. A restored store may undo a
    /// write of the controller and show its cache the same state again, which is no event; only a resync is.
    pub(crate) fn for_controller(mut self, rng: &mut fastrand::Rng) -> Self {
        self.namespaces = None;
        if rng.u8(0..3) == 0 {
            self.transform = TransformKind::DropData;
        }
        self.resync = Duration::from_secs(60);
        self
    }

    /// The same settings for another informer.
    pub(crate) fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self.panics = panics(self.panics.load(Relaxed));
        self
    }

    /// Stops panics of tasks. A drain does not wait for a task that panicked.
    pub(crate) fn stop_panics(&self) {
        self.panics.store(0, Relaxed);
    }

    /// The partitions: each is listed and watched on its own.
    pub(crate) fn partitions(&self) -> Vec<Option<&'static str>> {
        match &self.namespaces {
            None => vec![None],
            Some(names) => names.iter().map(|&name| Some(name)).collect(),
        }
    }

    pub(crate) fn handler_resync(&self, seed: u64) -> Option<Duration> {
        [None, None, Some(Duration::ZERO), Some(Duration::from_secs(15))][seed as usize % 4]
    }

    /// The settings that a factory takes as options and not through the builder.
    pub(crate) fn options(&self, options: InformerOptions, log: &Arc<Log>) -> InformerOptions {
        let scope = match &self.namespaces {
            Some(names) => Scope::namespaces(names.iter().copied()).expect("valid names"),
            None => Scope::all(),
        };
        options.scope(scope).transform(self.transform.make(log))
    }

    pub(crate) fn apply(&self, mut builder: InformerBuilder, log: &Arc<Log>) -> InformerBuilder {
        builder = builder
            .resync(self.resync)
            .streaming_list(self.streaming)
            .queue_bound(self.queue_bound)
            .handler_bound(self.handler_bound)
            .transform(self.transform.make(log))
            .linger(self.linger)
            .packing(self.packing)
            .seed(self.seed);
        if let Some(names) = &self.namespaces {
            builder = builder.scope(Scope::namespaces(names.iter().copied()).expect("valid names"));
        }
        if let Some(size) = self.page_size {
            builder = builder.page_size(size);
        }
        if self.panics.load(Relaxed) > 0 {
            builder = builder.fail_points(panicking(Arc::clone(&self.panics), self.seed, Arc::clone(log)));
        }
        if self.quick {
            builder = builder.backoff(Duration::from_millis(20), Duration::from_secs(1));
        }
        builder
    }
}

fn panics(times: u32) -> Arc<AtomicU32> {
    Arc::new(AtomicU32::new(times))
}

/// Makes tasks panic at random fail points.
fn panicking(left: Arc<AtomicU32>, seed: u64, log: Arc<Log>) -> impl Fn(FailPoint) + Send + Sync {
    let rng = Mutex::new(fastrand::Rng::with_seed(seed));
    move |point| {
        let chosen = lock(&rng).u8(0..40) == 0;
        if chosen && left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
            log.note(format_args!("a task panics at {point:?}"));
            log.record_fault(Fault::TaskPanic);
            resume_unwind(Box::new("simulated"));
        }
    }
}

impl TransformKind {
    fn make(self, log: &Arc<Log>) -> Transform {
        let log = Arc::clone(log);
        match self {
            Self::None => Transform::new(),
            Self::DropManagedFields => Transform::drop_managed_fields(),
            Self::DropBulk => dropping("data.bulk"),
            Self::DropData => dropping("data"),
            Self::Function => Transform::new().function(|object| Self::Function.change(object)),
            Self::Panicking => Transform::new().function(move |object| {
                if panics_on(stamp(object)) {
                    log.record_fault(Fault::TransformPanic);
                    resume_unwind(Box::new("simulated"));
                }
            }),
        }
    }

    /// Changes an object in the same way as the transform.
    pub(crate) fn change(self, object: &mut Value) {
        match self {
            Self::None | Self::Panicking => {}
            Self::DropManagedFields => {
                object["metadata"].as_object_mut().map(|fields| fields.remove("managedFields"));
            }
            Self::DropBulk => {
                object["data"].as_object_mut().map(|fields| fields.remove("bulk"));
            }
            Self::DropData => {
                object.as_object_mut().map(|fields| fields.remove("data"));
            }
            Self::Function => {
                object["data"]["bulk"] = Value::Null;
                object["data"]["stamp"] = json!(stamp(object) * 7);
            }
        }
    }

    /// Whether an object does not show which write it is: it has no labels, and its content is removed.
    pub(crate) fn hides(self, write: &Write) -> bool {
        write.invalid && self.removes_content(write.stamp)
    }

    /// Whether it removes the part of the content that shows which write an object is.
    pub(crate) fn removes_content(self, stamp: u64) -> bool {
        self == Self::DropData || self == Self::Panicking && panics_on(stamp)
    }
}

fn dropping(path: &str) -> Transform {
    Transform::new().drop_field(path).expect("a valid field path")
}
