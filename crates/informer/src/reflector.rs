//! From the server into the queue: list, watch, and everything that can go wrong with either.

mod backoff;
mod fill;
mod machine;

pub(crate) use backoff::Backoff;
pub(crate) use machine::Settings;

use crate::{
    delta_fifo::{Change, Offered, Position, Staged},
    delta_queue::DeltaQueue,
    indexer::Indexer,
    scope::Partition,
    status::InformerStatus,
    telemetry::{InformerError, RelistReason, Telemetry},
    transform::Transform,
};
use futures_util::StreamExt;
use kube_informer_wire::{
    Bookmark, ListOptions, ListWatch, ListWatchError, Packer, ResourceVersion, Unreadable, WatchEvent,
    WatchOptions, WatchStream,
};
use machine::{Class, Command, Failure, Input, Machine};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// How long a server may take to answer a request with its headers.
const HEADERS: Duration = Duration::from_secs(30);
/// How much longer than asked for a watch may last before it counts as dead.
const GRACE: Duration = Duration::from_secs(15);

/// A watch that has said nothing for this long since it was opened is looked into once: servers send bookmarks
/// every minute, and where one has nothing to say, that may be because it is behind.
const QUIET: Duration = Duration::from_secs(90);

/// Keeps one partition of the queue fed.
///
/// 1. It never ends by itself: every failure is reported and followed by another try.
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
    /// Why the next fill happens.
    reason: RelistReason,
    /// The failure that is being waited out.
    failure: Option<(Class, String)>,
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
        let dead_after = options.timeout.unwrap_or(Duration::from_secs(600)) + GRACE;
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
}

impl Reflector {
    pub(crate) fn new(wiring: Wiring, mut settings: Settings, rng: fastrand::Rng) -> Self {
        let Wiring { source, partition, namespace, queue, indexer, transform, packer, telemetry, status } =
            wiring;
        settings.streaming &= source.supports_streaming_list();
        let machine = Machine::new(settings, rng);
        let (staged, stream) = (Staged::default(), None);
        let (reason, failure) = (RelistReason::First, None);
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
            reason,
            failure,
        }
    }

    /// Runs until dropped.
    pub(crate) async fn run(mut self) {
        let mut command = self.machine.step(Input::Begin);
        loop {
            let input = self.obey(command).await;
            command = self.machine.step(input);
        }
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
        self.reason = RelistReason::Failed;
        self.failure = None;
        self.live(Some(version));
        Input::Committed
    }

    async fn watch(&mut self, options: WatchOptions) -> Input {
        self.telemetry.watching();
        match self.open(options).await {
            Ok(stream) => {
                self.stream = Some(stream);
                self.failure = None;
                self.live(self.machine.position().cloned());
                self.follow().await
            }
            Err(error) => self.watch_failed(error),
        }
    }

    async fn open(&mut self, options: WatchOptions) -> Result<OpenStream, ListWatchError> {
        match tokio::time::timeout(HEADERS, self.source.watch(options.clone())).await {
            Ok(Ok(events)) => Ok(OpenStream::new(events, &options)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(self.silent("answer", HEADERS)),
        }
    }

    /// Reads the open watch until it ends, breaks, or shows something that only a list can settle.
    async fn follow(&mut self) -> Input {
        let Some(mut stream) = self.stream.take() else { return Input::Begin };
        loop {
            self.queue.room().await;
            let patience = if stream.proven { stream.dead_after } else { QUIET.min(stream.dead_after) };
            let left = patience.saturating_sub(stream.opened.elapsed());
            let event = match tokio::time::timeout(left, stream.events.next()).await {
                Err(_) if !stream.proven => {
                    stream.proven = true;
                    self.stream = Some(stream);
                    return Input::Quiet;
                }
                Err(_) => return self.watch_failed(self.silent("end of the watch", stream.dead_after)),
                Ok(None) => {
                    return Input::Ended { lived: stream.opened.elapsed(), progress: stream.progress };
                }
                Ok(Some(Err(error))) => return self.watch_failed(error),
                Ok(Some(Ok(event))) => event,
            };
            self.telemetry.event(&event);
            if let Some(end) = self.take(event, &mut stream) {
                return end;
            }
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

    /// Takes in one event; returns what ends the stream, if it does.
    fn take(&mut self, event: WatchEvent, stream: &mut OpenStream) -> Option<Input> {
        let change = match event {
            WatchEvent::Bookmark(bookmark) => {
                self.take_bookmark(bookmark, stream);
                return None;
            }
            WatchEvent::Error(status) => {
                let failure = Failure::in_stream(&status);
                let error = ListWatchError::api(status, "in the stream");
                self.note_failure(failure.class, &error);
                self.telemetry.failed(&InformerError::Watch(error));
                return Some(Input::Failed(failure));
            }
            WatchEvent::Unreadable(unreadable) => return self.take_unreadable(unreadable, stream),
            WatchEvent::Added(object) => Change::Added(object),
            WatchEvent::Modified(object) => Change::Modified(object),
            WatchEvent::Deleted(object) => Change::Deleted(object),
        };
        stream.positioned |= !matches!(change, Change::Added(_));
        self.take_change(change, stream)
    }

    fn take_change(&mut self, change: Change, stream: &mut OpenStream) -> Option<Input> {
        let version = change.object().resource_version().clone();
        let rewound = stream.positioned
            && self.machine.position().is_some_and(|position| match change {
                // Some servers give a deletion the version of the last change.
                Change::Deleted(_) => version.is_older_than(position),
                _ => version.is_older_than(position) || version.number().is_some() && version == *position,
            });
        if rewound {
            return self.take_rewound(&change);
        }
        let change = self.admit(change);
        let position = (stream.positioned && !version.is_unset()).then_some(version);
        let place = position.clone().map(|version| Position { partition: self.partition, version });
        if self.queue.offer(change, place, &*self.indexer) != Offered::Queued {
            self.telemetry.duplicate();
        }
        self.progressed(position, stream);
        None
    }

    /// An event that is older than what the stream has already shown: a repetition, or another history.
    fn take_rewound(&mut self, change: &Change) -> Option<Input> {
        // The state that is known is a repetition for certain. An older one may be; but it is also how a server
        // looks whose history was replaced.
        let repeated = self.queue.judge(change, &*self.indexer) == Offered::Known;
        if !repeated && self.machine.doubt(None) {
            self.reason = RelistReason::Doubtful;
            return Some(Input::Doubtful);
        }
        self.telemetry.duplicate();
        None
    }

    fn take_bookmark(&mut self, bookmark: Bookmark, stream: &mut OpenStream) {
        stream.positioned = true;
        let version = bookmark.resource_version;
        if self.machine.position().is_some_and(|position| version.is_older_than(position)) {
            // A promise about less than is known; nothing to gain, and a position never goes back by itself.
            return;
        }
        self.queue.bookmark(Position { partition: self.partition, version: version.clone() });
        self.progressed(Some(version), stream);
    }

    fn take_unreadable(&mut self, unreadable: Unreadable, stream: &mut OpenStream) -> Option<Input> {
        let at = unreadable.resource_version.clone();
        if self.machine.doubt(at.clone()) {
            self.telemetry.failed(&InformerError::Unreadable(unreadable));
            self.reason = RelistReason::Doubtful;
            return Some(Input::Doubtful);
        }
        self.telemetry.quarantined(unreadable);
        let position = at.filter(|_| stream.positioned);
        if let Some(version) = &position {
            self.queue.bookmark(Position { partition: self.partition, version: version.clone() });
        }
        self.progressed(position, stream);
        None
    }

    fn progressed(&mut self, position: Option<ResourceVersion>, stream: &mut OpenStream) {
        stream.progress = true;
        stream.proven = true;
        self.machine.progress(position);
        self.live(self.machine.position().cloned());
    }

    /// Every object passes here once on its way in.
    fn admit(&self, change: Change) -> Change {
        let keep = |object| self.transform.apply(object, &self.telemetry).pack(&self.packer);
        match change {
            Change::Added(object) => Change::Added(keep(object)),
            Change::Modified(object) => Change::Modified(keep(object)),
            Change::Deleted(object) => Change::Deleted(keep(object)),
        }
    }

    fn watch_failed(&mut self, error: ListWatchError) -> Input {
        let failure = Failure::of(&error);
        self.note_failure(failure.class, &error);
        self.telemetry.failed(&InformerError::Watch(error));
        Input::Failed(failure)
    }

    fn note_failure(&mut self, class: Class, error: &ListWatchError) {
        self.failure = Some((class, error.to_string()));
        if class == Class::Expired {
            self.reason = RelistReason::Expired;
        }
    }

    async fn wait(&mut self, delay: Duration) -> Input {
        // Nothing of the server is held while waiting: no connection, no half a list.
        self.stream = None;
        self.staged = Staged::default();
        let next = Instant::now() + delay;
        if let Some((class, why)) = self.failure.clone() {
            let since = self.status.borrow().failing_since().unwrap_or_else(Instant::now);
            self.set_status(match class {
                Class::Denied => InformerStatus::Denied { since, why, next },
                Class::Absent => InformerStatus::Absent { since, why, next },
                _ => InformerStatus::Retrying { since, why, next },
            });
        }
        tokio::time::sleep_until(next).await;
        Input::Waited
    }

    fn live(&self, version: Option<ResourceVersion>) {
        self.set_status(InformerStatus::Live { version, heard: Instant::now() });
    }

    /// Told to the log only when the word for it changes.
    fn set_status(&self, status: InformerStatus) {
        let before = self.status.send_replace(status);
        let now = self.status.borrow();
        if before.word() != now.word() {
            self.telemetry.status_changed(self.namespace.as_deref(), &now);
        }
    }

    fn silent(&self, what: &'static str, after: Duration) -> ListWatchError {
        ListWatchError::Silent { what, after, url: self.telemetry.kind().to_string().into() }
    }
}
