//! From the server into the queue: list, watch, and everything that can go wrong with either.

mod backoff;
mod fill;
mod follow;
mod health;
mod machine;

pub(crate) use backoff::Backoff;
pub(crate) use machine::Settings;

use crate::{
    delta::AnyObject,
    delta_fifo::{Position, Staged},
    delta_queue::DeltaQueue,
    fail_point::{FailPoint, FailPoints},
    indexer::Indexer,
    scope::Partition,
    status::InformerStatus,
    supervision::{Restarts, panic_message},
    telemetry::{InformerError, RelistReason, Task, Telemetry},
    time,
    transform::Transform,
};
use follow::Doubts;
use futures_util::FutureExt;
use health::Health;
use kube_informer_wire::{
    ListOptions, ListWatch, ListWatchError, ObjectKey, Packer, ResourceVersion, WatchOptions, WatchStream,
};
use machine::{Class, Command, Failure, Input, Machine};
use std::{
    any::Any,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// How long a server may take to answer a request with its headers.
const HEADERS: Duration = Duration::from_secs(30);
/// How much longer than asked for a watch may last before it counts as dead.
const GRACE: Duration = Duration::from_secs(15);

/// A watch that was opened after failures counts as working when it has lasted this long.
const SETTLED: Duration = Duration::from_secs(1);

/// Keeps one partition of the queue fed.
///
/// 1. It never ends by itself: every failure, a panic included, is reported and followed by another try.
/// 2. It reads from the server only while the queue has room.
/// 3. Dropping the future of [`run`](Self::run) at any point loses nothing but an unfinished list.
///
/// What to do next is decided by [`Machine`]; this type only obeys.
pub(crate) struct Reflector {
    pub(crate) source: Arc<dyn ListWatch>,
    pub(crate) partition: Partition,
    pub(crate) namespace: Option<String>,
    pub(crate) queue: Arc<DeltaQueue>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) transform: Arc<Transform>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) status: watch::Sender<InformerStatus>,
    machine: Machine,
    staged: Staged,
    stream: Option<OpenStream>,
    /// Why the next fill happens; `None` for the first one.
    reason: Option<RelistReason>,
    health: Health,
    doubts: Doubts,
    /// How long watches were open, one after the other, without showing that the server is as far as they presume.
    quiet: Duration,
    /// How long that may be before the server is asked.
    probe_after: Duration,
    restarts: Restarts,
    fail_points: FailPoints,
}

/// A watch that is being read.
struct OpenStream {
    events: WatchStream,
    opened: Instant,
    /// The server ends it by then, if it is alive.
    dead_after: Duration,
    progress: bool,
    /// Whether versions of events say how far the stream is. A stream opened without a version starts with the
    /// state of the collection, in which they do not; the first other event ends that.
    positioned: bool,
    /// Whether the server has shown, or been asked, that it is as far as the watch presumes.
    proven: bool,
}

impl OpenStream {
    fn new(events: WatchStream, options: &WatchOptions) -> Self {
        let dead_after = options.timeout.unwrap_or(Duration::from_secs(600)).saturating_add(GRACE);
        let positioned = options.resource_version.as_deref().is_some_and(|version| version != "0")
            && options.send_initial_events.is_none();
        let proven = !positioned;
        Self { events, opened: Instant::now(), dead_after, progress: false, positioned, proven }
    }
}

/// What identifies a reflector and where it delivers to.
pub(crate) struct Wiring {
    pub(crate) source: Arc<dyn ListWatch>,
    pub(crate) partition: Partition,
    pub(crate) namespace: Option<String>,
    pub(crate) queue: Arc<DeltaQueue>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) transform: Arc<Transform>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) status: watch::Sender<InformerStatus>,
    pub(crate) fail_points: FailPoints,
}

impl Reflector {
    pub(crate) fn new(wiring: Wiring, mut settings: Settings, rng: fastrand::Rng) -> Self {
        let Wiring { source, partition, namespace, queue, indexer, .. } = wiring;
        let Wiring { transform, packer, telemetry, status, fail_points, .. } = wiring;
        settings.streaming &= source.supports_streaming_list();
        let (probe_after, quiet) = (settings.probe_after, Duration::ZERO);
        let restarts = Restarts::new(rng.clone().u64(..));
        let machine = Machine::new(settings, rng);
        let (staged, stream) = (Staged::default(), None);
        let (health, doubts) = (Health::default(), Doubts::default());
        Self {
            source,
            partition,
            namespace,
            queue,
            indexer,
            transform,
            packer,
            telemetry,
            status,
            machine,
            staged,
            stream,
            reason: None,
            health,
            doubts,
            quiet,
            probe_after,
            restarts,
            fail_points,
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        let mut input = Input::Begin;
        loop {
            self.restarts.started();
            let Err(panic) = AssertUnwindSafe(self.drive(input)).catch_unwind().await;
            let next = self.restarts.next();
            // The log, the metrics and the stream that is dropped may panic in turn.
            let _ = catch_unwind(AssertUnwindSafe(|| self.panicked(&*panic, next)));
            time::sleep_until(next).await;
            input = Input::Failed(Failure { class: Class::Panicked, retry_after: None });
        }
    }

    async fn drive(&mut self, mut input: Input) -> Infallible {
        loop {
            self.fail_points.at(FailPoint::ReflectorStep);
            let command = self.machine.step(input);
            input = self.obey(command).await;
        }
    }

    /// Reports a panic. Nothing of the server is kept: what was read and not queued is read again.
    fn panicked(&mut self, panic: &(dyn Any + Send), next: Option<Instant>) {
        let why = panic_message(panic);
        self.note_panic(&why, next);
        self.telemetry.task_failed(Task::Reflector, why);
        self.staged = Staged::default();
        self.stream = None;
    }

    async fn obey(&mut self, command: Command) -> Input {
        match command {
            Command::Stream(options) => self.stream_list(options).await,
            Command::List { options, fresh } => self.list_page(options, fresh).await,
            Command::Commit(version) => self.commit(version),
            Command::Watch(options) => self.watch(options).await,
            Command::Follow => self.follow().await,
            Command::Probe(options) => self.probe(options).await,
            Command::Wait(delay) => self.wait(delay).await,
        }
    }

    /// Hands the staged list over as the new truth about this partition.
    fn commit(&mut self, version: ResourceVersion) -> Input {
        let position = Position { partition: self.partition, version: version.clone() };
        self.queue.replace(std::mem::take(&mut self.staged), position, &*self.indexer);
        self.reason = Some(RelistReason::Failed);
        self.doubts.settled();
        // A watch that fails after every list is no better for the list.
        if self.stream.is_some() || !self.health.is_watch_failing() {
            self.recovered((!version.is_unset()).then_some(version));
        }
        Input::Committed
    }

    async fn watch(&mut self, options: WatchOptions) -> Input {
        self.telemetry.watching();
        match self.open(options).await {
            Ok(stream) => {
                self.stream = Some(stream);
                if !self.health.is_failing() {
                    self.recovered(self.machine.position().cloned());
                }
                self.follow().await
            }
            Err(error) => self.watch_failed(error),
        }
    }

    async fn open(&mut self, options: WatchOptions) -> Result<OpenStream, ListWatchError> {
        match time::timeout(HEADERS, self.source.watch(options.clone())).await {
            Ok(Ok(events)) => Ok(OpenStream::new(events, &options)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.silent("answer", HEADERS)),
        }
    }

    /// Asks how far the server is. The watch stays open meanwhile.
    async fn probe(&mut self, options: ListOptions) -> Input {
        match self.list_meta(options).await {
            Ok(meta) => Input::Probed(meta.resource_version),
            Err(error) => {
                let failure = Failure::of(&error);
                self.telemetry.failed(&InformerError::List(error));
                Input::Failed(failure)
            }
        }
    }

    async fn wait(&mut self, delay: Duration) -> Input {
        // Nothing of the server is held while waiting: no connection, no half a list.
        self.stream = None;
        self.staged = Staged::default();
        let next = time::after(Instant::now(), delay);
        self.failing(next);
        time::sleep_until(next).await;
        Input::Waited
    }

    /// The object as it is kept. What indexes want of it is read before it is packed.
    fn pack(&self, object: AnyObject) -> AnyObject {
        let snapshot = self.indexer.snapshot();
        self.packer.keeps(snapshot.len().max(self.staged.len()));
        self.packer.pack_with(object, snapshot.fields())
    }

    /// Whether an object is in the namespace that was asked for.
    fn is_ours(&self, key: &ObjectKey) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace()
    }

    fn silent(&self, what: &'static str, after: Duration) -> ListWatchError {
        ListWatchError::Silent { what, after, url: self.telemetry.kind().to_string().into() }
    }
}
