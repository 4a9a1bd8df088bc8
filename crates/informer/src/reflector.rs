//! The reflector: lists and watches a collection and queues its changes.

mod backoff;
mod deadlines;
mod health;
mod list;
mod machine;
mod restore;
mod settings;
mod watch;

pub(crate) use backoff::Backoff;
pub use deadlines::Deadlines;
pub(crate) use restore::{Loaded, Restore};
pub(crate) use settings::Settings;

use crate::{
    delta::AnyObject,
    delta_fifo::{Compare, Position, Staged},
    delta_queue::DeltaQueue,
    fail_point::{FailPoint, FailPoints},
    indexer::Indexer,
    refetch::Refetch,
    scope::Partition,
    status::InformerStatus,
    supervision::{Restarts, panic_message},
    telemetry::{InformerError, RelistReason, Task, Telemetry},
    time,
    transform::Transform,
    views::Views,
};
use futures_util::FutureExt;
use health::Health;
use kube_informer_wire::{
    ListOptions, ListWatch, ListWatchError, ObjectKey, Packer, ResourceVersion, ShardSelector, WatchOptions,
    WatchStream,
};
use list::Items;
use machine::{Command, Delivered, Failure, Input, Machine, starts_at_version};
use settings::Tweaks;
use std::{
    any::Any,
    convert::Infallible,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch::Sender, time::Instant};
use watch::Group;

/// A watch that was opened after failures counts as working when it has lasted this long.
const WATCH_WORKS_AFTER: Duration = Duration::from_secs(1);

/// Waiting for the disk longer than this shows in the status.
const DISK_STALLS_AFTER: Duration = Duration::from_secs(5);

/// Lists and watches one partition and queues its changes.
///
/// 1. It never ends by itself: every failure, a panic included, is reported and followed by a retry.
/// 2. It reads from the server only while the queue has room, and memory for content that is not on disk yet.
/// 3. Dropping the future of [`run`](Self::run) at any point loses nothing but an incomplete list.
///
/// [`Machine`] decides what to do next; this type executes its commands.
pub(crate) struct Reflector {
    pub(crate) source: Arc<dyn ListWatch>,
    pub(crate) partition: Partition,
    pub(crate) namespace: Option<String>,
    pub(crate) queue: Arc<DeltaQueue>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) transform: Arc<Transform>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) views: Arc<Views>,
    pub(crate) refetch: Arc<Refetch>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) status: Sender<InformerStatus>,
    machine: Machine,
    staged: Staged,
    stream: Option<OpenStream>,
    /// Changes that are not queued yet. Invariant: empty while the reflector waits.
    group: Group,
    /// Loads the state that an earlier process saved.
    restore: Option<Restore>,
    /// The version and the age of the restored state.
    restored: Option<(ResourceVersion, Duration)>,
    /// Why the next list is sent; `None` for the initial one.
    reason: Option<RelistReason>,
    health: Health,
    /// How long successive watches were open without proof that the server has reached their version.
    quiet: Duration,
    deadlines: Deadlines,
    tweaks: Tweaks,
    shards: ShardSelector,
    restarts: Restarts,
    fail_points: FailPoints,
}

/// A watch that is being read.
struct OpenStream {
    events: WatchStream,
    url: Arc<str>,
    opened: Instant,
    /// The watch is dead if the server has not ended it by then.
    dead_after: Duration,
    delivered: Delivered,
    /// Whether events arrive in the order of their versions. A watch that was opened without a version first sends the
    /// current objects, in no such order, up to the first event that is not ADDED.
    in_version_order: bool,
    /// Whether the server has shown that it has reached the version of the watch, or was probed for it.
    version_confirmed: bool,
}

impl OpenStream {
    fn new(events: WatchStream, url: Arc<str>, options: &WatchOptions, deadlines: &Deadlines) -> Self {
        let timeout = options.timeout.unwrap_or(deadlines.watch_without_timeout);
        let dead_after = timeout.saturating_add(deadlines.watch_end);
        let (delivered, in_version_order) = (Delivered::Nothing, starts_at_version(options));
        let (opened, version_confirmed) = (Instant::now(), !in_version_order);
        Self { events, url, opened, dead_after, delivered, in_version_order, version_confirmed }
    }
}

/// The connections of a reflector to the pipeline.
pub(crate) struct Wiring {
    pub(crate) source: Arc<dyn ListWatch>,
    pub(crate) partition: Partition,
    pub(crate) namespace: Option<String>,
    pub(crate) queue: Arc<DeltaQueue>,
    pub(crate) indexer: Arc<Indexer>,
    pub(crate) transform: Arc<Transform>,
    pub(crate) packer: Arc<Packer>,
    pub(crate) views: Arc<Views>,
    pub(crate) refetch: Arc<Refetch>,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) status: Sender<InformerStatus>,
    pub(crate) restore: Option<Restore>,
    pub(crate) fail_points: FailPoints,
}

impl Reflector {
    pub(crate) fn new(wiring: Wiring, mut settings: Settings, rng: fastrand::Rng) -> Self {
        let Wiring { source, partition, namespace, queue, indexer, .. } = wiring;
        let Wiring { transform, packer, views, refetch, telemetry, status, restore, fail_points, .. } =
            wiring;
        settings.streaming &= source.supports_streaming_list();
        let (deadlines, tweaks) = (settings.deadlines.clone(), settings.tweaks.clone());
        let shards = settings.shards.clone();
        let restarts = Restarts::new(rng.clone().u64(..));
        let machine = Machine::new(settings, rng);
        Self {
            source,
            partition,
            namespace,
            queue,
            indexer,
            transform,
            packer,
            views,
            refetch,
            telemetry,
            status,
            machine,
            staged: Staged::default(),
            stream: None,
            group: Group::default(),
            restore,
            restored: None,
            reason: None,
            health: Health::default(),
            quiet: Duration::ZERO,
            deadlines,
            tweaks,
            shards,
            restarts,
            fail_points,
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        let mut input = Input::Start;
        loop {
            self.restarts.started();
            let Err(panic) = AssertUnwindSafe(self.drive(input)).catch_unwind().await;
            let next = self.restarts.next();
            // The log, the metrics and the stream that is dropped may panic in turn.
            let _ = catch_unwind(AssertUnwindSafe(|| self.panicked(&*panic, next)));
            time::sleep_until(next).await;
            input = Input::Failed(Failure::panicked());
        }
    }

    async fn drive(&mut self, mut input: Input) -> Infallible {
        if let Some(restore) = self.restore.take() {
            input = self.restore(restore).await;
        }
        let mut command = self.step(input);
        loop {
            self.fail_points.at(FailPoint::ReflectorStep);
            command = self.execute(command).await;
        }
    }

    fn step(&mut self, input: Input) -> Command {
        let (compared, proven) = (self.machine.compare(), self.machine.is_proven());
        let command = self.machine.step(input);
        if compared == Compare::Version && self.machine.compare() == Compare::Content {
            self.queue.withdraw(self.partition);
        }
        if !proven && self.machine.is_proven() {
            self.proven();
        }
        command
    }

    /// Reports a panic. Everything read and not queued is discarded, and read again.
    fn panicked(&mut self, panic: &(dyn Any + Send), next: Option<Instant>) {
        let why = panic_message(panic);
        self.note_panic(&why, next);
        self.telemetry.task_failed(Task::Reflector, why);
        self.staged = Staged::default();
        self.group = Group::default();
        self.stream = None;
    }

    async fn execute(&mut self, command: Command) -> Command {
        let input = match command {
            Command::StreamList(options) => self.stream_list(options).await,
            Command::List(options) => self.list(options).await,
            Command::ListPage(options) => self.list_page(options).await,
            Command::Commit(version) => self.commit(version).await,
            Command::Watch(options) => self.watch(options).await,
            Command::Follow => return self.follow().await,
            Command::Probe(options) => self.probe(options).await,
            Command::Verify(key) => self.verify(key).await,
            Command::Wait(delay) => self.wait(delay).await,
        };
        self.step(input)
    }

    /// Queues the staged list.
    async fn commit(&mut self, version: ResourceVersion) -> Input {
        let position = Position { partition: self.partition, version: version.clone() };
        self.queue.replace(std::mem::take(&mut self.staged), position, &*self.indexer).await;
        self.reason = Some(RelistReason::Failed);
        // A list does not end a failure of the watch, which may fail again after every list.
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
                Input::WatchOpened
            }
            Err(error) => {
                let failure = Failure::of(&error);
                self.note_watch_failure(failure.class, &error);
                self.telemetry.failed(&InformerError::Watch(error));
                Input::Failed(failure)
            }
        }
    }

    async fn open(&mut self, options: WatchOptions) -> Result<OpenStream, ListWatchError> {
        let options = self.tweaks.watch(options);
        let (url, deadline) = (self.source.watch_url(&options), self.deadlines.watch_response);
        match time::timeout(deadline, self.source.watch(options.clone())).await {
            Ok(Ok(events)) => Ok(OpenStream::new(events, url, &options, &self.deadlines)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(silent("response", deadline, &url)),
        }
    }

    /// Requests the version of the server. The watch stays open meanwhile.
    async fn probe(&mut self, options: ListOptions) -> Input {
        let deadline = self.deadlines.probe;
        let options = self.tweaks.list(options);
        let url = self.source.list_url(&options);
        let listed = time::timeout(deadline, self.read_list(options, Items::Skip)).await;
        match listed.unwrap_or_else(|_| Err(silent("response", deadline, &url))) {
            Ok(meta) => Input::Probed(meta.resource_version),
            Err(error) => {
                let failure = Failure::of(&error);
                self.telemetry.failed(&InformerError::List(error));
                Input::Failed(failure)
            }
        }
    }

    async fn wait(&mut self, delay: Duration) -> Input {
        // No connection and no incomplete list is held while waiting.
        self.stream = None;
        self.staged = Staged::default();
        let next = time::after(Instant::now(), delay);
        self.failing(next);
        time::sleep_until(next).await;
        Input::Waited
    }

    /// Packs an object. The fields that indexes need are read before.
    fn pack(&self, object: AnyObject) -> AnyObject {
        let snapshot = self.indexer.snapshot();
        self.packer.keeps(snapshot.len().max(self.staged.len()));
        self.views.keep(&object);
        match snapshot.get(object.key()) {
            Some(before) => self.packer.pack_update(object, before, snapshot.fields()),
            None => self.packer.pack_with(object, snapshot.fields()),
        }
    }

    /// Waits until content that cannot be written to disk leaves room in memory for more. Most waits are short, for a disk that is
    /// slower than the server; a long one shows in the status.
    async fn disk_room(&mut self) {
        let packer = Arc::clone(&self.packer);
        if packer.has_room() || time::timeout(DISK_STALLS_AFTER, packer.room()).await.is_ok() {
            return;
        }
        let before = self.status.borrow().clone();
        let why = "content cannot be written to disk, and memory has no room for more".to_owned();
        self.set_status(InformerStatus::Retrying { since: Instant::now(), why, next: None });
        packer.room().await;
        self.set_status(before);
    }

    /// Whether an object is in the requested namespace.
    fn covers(&self, key: &ObjectKey) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace()
    }
}

/// The error of a request that missed a deadline.
fn silent(what: &'static str, after: Duration, url: &Arc<str>) -> ListWatchError {
    ListWatchError::Silent { what, after, url: Arc::clone(url) }
}
