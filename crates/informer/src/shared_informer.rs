//! One pipeline, shared by all users of the same objects.

mod builder;
mod events;
mod indexes;
mod selection;
mod statuses;
mod tasks;
mod waiting;
mod weak;

pub use builder::InformerBuilder;
pub use events::EventStream;
pub use indexes::IndexError;
pub use tasks::Stop;
pub use waiting::NotReady;
pub use waiting::SyncError;
pub use waiting::UnsyncedCache;
pub use waiting::WaitError;
pub use weak::WeakInformer;

use crate::{
    controller::Controller,
    handler::{EventHandler, deliver},
    listener::Listener,
    lister::Lister,
    memory::MemoryUsage,
    persist::PersistStatus,
    registration::{HandlerInfo, Registration},
    scope::Partitions,
    status::InformerStatus,
    transform::Transform,
    views::{KeptView, Views},
};
use kube_informer_wire::{
    FieldSelector, Kind, LabelSelector, Origin, PackStats, Packer, ShardSelector, View,
};
pub(crate) use selection::Selection;
use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};
use tasks::Tasks;
use tokio::{sync::watch, time::Instant};

/// A local, indexed, always-current copy of the objects of one kind, and a call for every change.
///
/// Promises:
///
/// 1. The states of an object that the cache shows are states it really had, in order; some may be skipped.
///    Within one history of the server the cache never goes back.
/// 2. Store and indexes show a change before any handler receives it. A list is applied whole.
/// 3. Each handler is called for one event after another, in order. Handlers do not wait for each other, and the cache
///    does not wait for them.
/// 4. A handler that is added later receives all cached objects, then every change: nothing is missed, doubled or
///    reordered.
/// 5. An object whose deletion was missed is reported as [`Deleted::FinalStateUnknown`](crate::Deleted); one that was
///    recreated with a new uid is a delete and an add, never an update.
/// 6. Every failure is retried and shown in [`status`](Self::status). A failure affects nothing else.
///
/// Not promised: that every intermediate state is seen, that two informers agree at one moment, or that the cache shows your own
/// write immediately (see [`reached`](Self::reached)).
///
/// `T` is how objects are read. Handles with different types may share one pipeline. Cloning is a reference
/// count. The pipeline stops with [`stop`](Self::stop), or when the last handle (and the factory that made it)
/// is dropped.
pub struct SharedInformer<T> {
    pub(crate) core: Arc<Core>,
    of: PhantomData<fn() -> T>,
}

/// The state that all handles of one informer share. Owns the tasks; no task owns it.
pub(crate) struct Core {
    pub(crate) origin: Arc<Origin>,
    pub(crate) partitions: Partitions,
    selection: Selection,
    pub(crate) controller: Arc<Controller>,
    transform: Arc<Transform>,
    packer: Arc<Packer>,
    views: Arc<Views>,
    /// One for each partition, or one if there is none.
    statuses: Vec<watch::Receiver<InformerStatus>>,
    persisted: watch::Receiver<PersistStatus>,
    /// The status of an informer that covers nothing, and so has no reflector to report it.
    empty: Option<watch::Sender<InformerStatus>>,
    handler_bound: usize,
    resync: Duration,
    tasks: Tasks,
}

/// How a handler is called.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct HandlerOptions {
    /// A name for logs and metrics. Handlers of one informer with equal names are numbered: `sync`, `sync#2`.
    pub name: Option<String>,
    /// Period of resyncs, which update every object although nothing changed; `None` is the informer's default, zero and
    /// `Duration::MAX` are never. As in client-go, an informer that was built without a period never resyncs, and one that
    /// runs already does not check more often than before.
    pub resync: Option<Duration>,
}

impl HandlerOptions {
    /// Options of which none is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name for logs and metrics.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the resync period.
    #[must_use]
    pub fn resync(mut self, period: impl Into<Option<Duration>>) -> Self {
        self.resync = period.into();
        self
    }
}

impl<T: 'static> SharedInformer<T> {
    pub(crate) fn from_core(core: Arc<Core>) -> Self {
        Self { core, of: PhantomData }
    }

    /// The same informer, its objects read as another type.
    pub fn cast<U: 'static>(&self) -> SharedInformer<U> {
        SharedInformer::from_core(Arc::clone(&self.core))
    }

    /// The kind of its objects.
    pub fn kind(&self) -> &Kind {
        self.core.origin.kind()
    }

    /// Whether both are handles of one informer, however they read its objects.
    pub fn is_same<U>(&self, other: &SharedInformer<U>) -> bool {
        Arc::ptr_eq(&self.core, &other.core)
    }

    /// The label selector of its source.
    pub fn label_selector(&self) -> &LabelSelector {
        &self.core.selection.labels
    }

    /// The field selector of its source.
    pub fn field_selector(&self) -> &FieldSelector {
        &self.core.selection.fields
    }

    /// The shards that it covers.
    pub fn shard_selector(&self) -> &ShardSelector {
        &self.core.selection.shards
    }

    /// Reads the cache.
    pub fn lister(&self) -> Lister<T> {
        Lister::new(Arc::clone(&self.core.controller.indexer))
    }

    /// Adds a handler. It gets everything the cache holds as initial adds, then every change.
    ///
    /// If a handler falls behind by more events than the informer's bound, further events are coalesced: it does not receive an
    /// object that it never saw and that is deleted, and one that it knows is updated from the state it saw to the current one. So a
    /// slow handler costs bounded memory and still ends up with the current state. Code that reads the cache may have seen an object
    /// that the handler never received, and is then not notified of its delete: if that matters, set a larger
    /// [`handler_bound`](InformerBuilder::handler_bound), or a resync period.
    ///
    /// The informer owns its handlers. A handler that owns its informer is a reference cycle, which keeps both for ever unless
    /// [`stop`](Self::stop) is called: give it a [`Lister`], or a [`WeakInformer`] ([`downgrade`](Self::downgrade)).
    pub fn add_handler(&self, handler: impl EventHandler<T>) -> Registration {
        self.add_handler_with(handler, HandlerOptions::default())
    }

    /// Adds a handler with a name or a resync period of its own.
    pub fn add_handler_with(&self, handler: impl EventHandler<T>, options: HandlerOptions) -> Registration {
        let name = options.name.unwrap_or_else(|| short_type_name(std::any::type_name_of_val(&handler)));
        let resync = options.resync.unwrap_or(self.core.resync);
        let (registration, ()) = self.core.join(name, resync, |listener, core| {
            core.tasks.deliver(listener, deliver(handler));
        });
        registration
    }

    /// Starts the pipeline; a second call does nothing.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&self) {
        self.core.start();
    }

    /// Stops the pipeline for good. When this resolves no handler is running, nor will be; the cache can still
    /// be read.
    pub async fn stop(&self, stop: Stop) {
        self.core.stop(stop).await;
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.core.tasks.is_stopped()
    }

    /// Whether the cache has reached, in everything it covers, a version that the server called current after this process
    /// started: the initial list is in the cache, or a restored state is proven.
    pub fn is_synced(&self) -> bool {
        self.core.controller.indexer.snapshot().is_listed()
    }

    /// Its handlers and streams, in the order in which they were added.
    pub fn handlers(&self) -> Vec<HandlerInfo> {
        let processor = self.core.controller.between_batches();
        processor.listeners().map(|listener| HandlerInfo::of(listener)).collect()
    }

    /// Keeps a view of every object: its fields are decoded once, when the object arrives (after the transform), and reading
    /// them is a pointer. Keep what a program reads of many objects or very often; for everything else,
    /// [`Object::view`](crate::Object::view) and [`Object::decode`](crate::Object::decode) read packed content and cost no
    /// memory.
    ///
    /// May be called before and after the start. Objects that are in the cache get the view in the background; until then
    /// it is decoded by the first one who reads it.
    ///
    /// ```
    /// # use kube_informer::{HeapSize, Kind, testing::FakeSource};
    /// #[derive(serde::Deserialize, HeapSize)]
    /// struct PodView { spec: Spec, status: Status }
    /// #[derive(serde::Deserialize, HeapSize)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Spec { node_name: Option<String> }
    /// #[derive(serde::Deserialize, HeapSize)]
    /// struct Status { phase: String }
    ///
    /// # let source = FakeSource::new(Kind::namespaced("", "v1", "Pod", "pods"));
    /// # let pods = source.informer::<serde_json::Value>(|builder| builder);
    /// let views = pods.keep_view::<PodView>();
    /// let mut running = 0;
    /// for pod in &pods.lister().list() {
    ///     running += usize::from(views.of(pod)?.status.phase == "Running");
    /// }
    /// # assert_eq!(running, 0);
    /// # Ok::<(), kube_informer::DecodeError>(())
    /// ```
    pub fn keep_view<V: View>(&self) -> KeptView<V> {
        let view = self.core.views.add();
        self.core.packer.wake();
        view
    }

    /// Stops keeping a view. Objects that have it keep it until they change.
    pub fn remove_view<V>(&self, view: KeptView<V>) {
        self.core.views.remove(&view);
    }

    /// How well the content of its objects is packed.
    pub fn pack_stats(&self) -> PackStats {
        self.core.packer.stats()
    }

    /// Bytes the cached objects occupy in memory, without the search trees over them.
    pub fn cached_bytes(&self) -> usize {
        self.core.controller.cached_bytes(&self.core.controller.indexer.snapshot())
    }

    /// The memory of the cache, and its disk space, by category. Walks all objects: for reports, not for every request.
    pub fn memory(&self) -> MemoryUsage {
        self.core.controller.indexer.snapshot().memory(&self.core.packer.usage())
    }
}

impl Core {
    /// A listener joins between two batches; `begin` starts its task, or lets a stream read it.
    fn join<R>(
        &self,
        name: String,
        resync: Duration,
        begin: impl FnOnce(Arc<Listener>, &Self) -> R,
    ) -> (Registration, R) {
        let meters = self.tasks.supervision().telemetry().listener(&name);
        let listener = Arc::new(Listener::new(self.handler_bound, meters));
        let id = {
            let mut processor = self.controller.between_batches();
            let snapshot = self.controller.indexer.snapshot();
            processor.join(Arc::clone(&listener), resync, &snapshot, Instant::now())
        };
        let begun = begin(Arc::clone(&listener), self);
        if *listener.has_ended().borrow() {
            // The informer has stopped, or its runtime is shut down: nothing would ever remove it.
            self.controller.between_batches().leave(id);
        }
        (Registration { controller: Arc::clone(&self.controller), listener, id }, begun)
    }

    pub(crate) fn start(&self) {
        self.controller.between_batches().start();
        self.tasks.start(&self.controller);
        if let Some(status) = &self.empty {
            status.send_if_modified(|status| {
                let starts = *status == InformerStatus::Starting;
                if starts {
                    *status = InformerStatus::Live { version: None, last_contact: Instant::now() };
                }
                starts
            });
        }
    }

    /// Stops an informer that was never started.
    pub(crate) fn refuse(&self) {
        self.tasks.refuse();
    }

    pub(crate) async fn stop(&self, stop: Stop) {
        self.tasks.stop(stop, &self.controller).await;
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.tasks.is_stopped()
    }

    pub(crate) fn status(&self) -> InformerStatus {
        let all = (0..self.statuses.len()).map(|partition| self.partition_status(partition));
        InformerStatus::of_all(all).unwrap_or(InformerStatus::Starting)
    }

    fn partition_status(&self, partition: usize) -> InformerStatus {
        if self.tasks.is_stopped() {
            return InformerStatus::Stopped;
        }
        let own = self.statuses.get(partition).map(|status| status.borrow().clone());
        self.tasks.supervision().status().or(own).unwrap_or(InformerStatus::Starting)
    }
}

/// The last handle is dropped, so that the informer can no longer be stopped by a call. After a stop that drains, streams may
/// still take the rest of their events.
impl Drop for Core {
    fn drop(&mut self) {
        if !self.tasks.is_stopped() {
            tasks::close_listeners(&self.controller, Stop::Drop);
        }
    }
}

/// `Printer<Pod>` from `my_crate::ui::Printer<k8s_openapi::…::Pod>`.
fn short_type_name(full: &str) -> String {
    let mut short = String::new();
    let mut word_start = 0;
    for (i, c) in full.char_indices() {
        if matches!(c, '<' | '>' | ',' | ' ' | '(' | ')' | '&' | '[' | ']') {
            short.push_str(last_segment(&full[word_start..i]));
            short.push(c);
            word_start = i + c.len_utf8();
        }
    }
    short + last_segment(&full[word_start..])
}

fn last_segment(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}

impl<T> Clone for SharedInformer<T> {
    fn clone(&self) -> Self {
        Self { core: Arc::clone(&self.core), of: PhantomData }
    }
}

impl<T> fmt::Debug for SharedInformer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedInformer({}, {})", self.core.origin.kind(), self.core.status())
    }
}
