//! Log, metrics and error hook, in one place, so that each failure is reported once.

mod names;

use crate::{indexer::Snapshot, scope::Scope, shared_informer::Selection, status::InformerStatus};
use kube_informer_wire::{Kind, ListWatchError, Malformed, ObjectKey, sync::lock};
use metrics::{Counter, Gauge, Histogram, Label};
use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use names::{INFORMERS, Name, Names, bounded};

/// A failure inside an informer. It loses nothing, and the informer recovers without help, unless
/// [`TaskFailed`](Self::TaskFailed) says otherwise.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum InformerError {
    /// The collection could not be listed.
    #[error("list: {0}")]
    List(#[source] ListWatchError),
    /// A watch could not be opened, or broke.
    #[error("watch: {0}")]
    Watch(#[source] ListWatchError),
    /// One object could not be requested, which was to show whether a restored cache can be resumed.
    #[error("get: {0}")]
    Get(#[source] ListWatchError),
    /// An object or event has no identity that can be decoded. It causes one relist, then it is skipped.
    #[error("an object or event was left out, {0}")]
    Malformed(#[source] Malformed),
    /// A transform panicked, left no object, or could not read the object's JSON; the object is kept with its identity
    /// and without its content.
    #[error("the transform failed on {key}; its content is left out of the cache")]
    Transform {
        /// The object.
        key: ObjectKey,
    },
    /// The function of an index, or `Ord` of its values, panicked; the index omits the object.
    #[error("the function of an index panicked on {key}; the index leaves it out")]
    Index {
        /// The object.
        key: ObjectKey,
    },
    /// A handler panicked; the event counts as delivered.
    #[error("handler {handler} panicked on {key}; the event counts as delivered")]
    HandlerPanicked {
        /// The handler.
        handler: Arc<str>,
        /// The object of the event.
        key: ObjectKey,
    },
    /// A task of the informer panicked or was aborted. [`InformerStatus::Failed`] says whether it is restarted.
    #[error("{task}: {why}")]
    TaskFailed {
        /// The task.
        task: Task,
        /// How it failed.
        why: String,
    },
    /// Content cannot be written to disk. It stays in memory, within a bound, and writing is retried. Reported once until a write
    /// succeeds.
    #[error("content cannot be written to disk and stays in memory: {why}")]
    DiskWrite {
        /// The error of the disk.
        why: String,
    },
    /// The content of objects cannot be read from its file, on disk or of a saved cache. They are fetched again from the server;
    /// until then, reading their content is a [`DecodeError`](crate::DecodeError).
    #[error(
        "the content of {objects} objects, {key} among them, cannot be read from its file; they are fetched again"
    )]
    ContentLost {
        /// How many.
        objects: usize,
        /// One of them.
        key: ObjectKey,
    },
    /// The cache could not be saved. That is retried, and affects nothing but the next start.
    #[error("the cache is not saved: {why}")]
    Persist {
        /// The failure.
        why: String,
    },
    /// The cache is not saved, although the informer was built to do so.
    #[error("the cache is not saved: {why}")]
    NotPersisted {
        /// Why, and what to do.
        why: &'static str,
    },
    /// The state that an earlier process saved is not used: the informer starts as usual.
    #[error("the saved state is not used: {why}")]
    NotRestored {
        /// Why.
        why: String,
    },
    /// A handler blocked for long.
    #[error("handler {handler} took {:.1}s for {key}; put keys on a work queue instead of blocking", took.as_secs_f64())]
    HandlerSlow {
        /// The handler.
        handler: Arc<str>,
        /// The object of the event.
        key: ObjectKey,
        /// How long.
        took: Duration,
    },
}

/// A task of an informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Task {
    /// Lists and watches one namespace, or all of them.
    Reflector,
    /// Writes changes to the cache and notifies the handlers.
    Controller,
    /// Calls one handler.
    Handler,
    /// Removes content that no object has any more, and packs the rest better.
    Compaction,
    /// Saves the cache.
    Persister,
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reflector => "reflector",
            Self::Controller => "controller",
            Self::Handler => "handler",
            Self::Compaction => "compaction",
            Self::Persister => "persister",
        })
    }
}

/// Called for every failure.
pub(crate) type ErrorHook = Arc<dyn Fn(&InformerError) + Send + Sync>;

/// Why a collection was listed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelistReason {
    Expired,
    Anomaly,
    ContentLost,
    Failed,
    /// The state of an earlier process could not be resumed.
    Restored,
}

impl RelistReason {
    fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Anomaly => "anomaly",
            Self::ContentLost => "content_lost",
            Self::Failed => "failed",
            Self::Restored => "restored",
        }
    }
}

/// Where one informer reports to.
pub(crate) struct Telemetry {
    kind: Kind,
    labels: Vec<Label>,
    /// Keeps other informers from using the same labels, until this one has stopped.
    name: Mutex<Option<Name>>,
    /// Names of its handlers.
    handlers: Arc<Names>,
    hook: Option<ErrorHook>,
    queued: Gauge,
    latency: Histogram,
    store_version: Gauge,
    objects: Gauge,
    bytes: Gauge,
    disk_bytes: Gauge,
    disk_write_failures: Counter,
    lost_contents: Counter,
    pages: Counter,
    version_queries: Counter,
    streaming_lists: Counter,
    watches: Counter,
    added: Counter,
    modified: Counter,
    deleted: Counter,
    bookmarks: Counter,
    duplicates: Counter,
    quarantined: Counter,
    transform_failures: Counter,
    panics: Counter,
    slow: Counter,
    persist_commits: Counter,
    persist_failures: Counter,
}

/// The metrics of one handler.
pub(crate) struct ListenerMeters {
    /// The name of the handler, which no other handler of the informer has.
    pub(crate) name: Arc<str>,
    /// Keeps other handlers from using the name, until this one has ended.
    taken: Mutex<Option<Name>>,
    /// Coalesced events.
    pub(crate) coalesced: Counter,
    /// For how long the handler has been behind, in seconds.
    pub(crate) lag: Gauge,
}

impl ListenerMeters {
    /// The handler has ended: another one may use its name in metrics.
    pub(crate) fn release_name(&self) {
        let name = lock(&self.taken).take();
        drop(name);
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Telemetry({})", self.kind)
    }
}

impl Telemetry {
    pub(crate) fn new(
        name: &str,
        kind: Kind,
        scope: &Scope,
        selection: &Selection,
        hook: Option<ErrorHook>,
    ) -> Self {
        let mut labels: Vec<Label> = [
            ("group", kind.group.clone()),
            ("version", kind.version.clone()),
            ("resource", kind.plural.clone()),
            ("scope", if scope.is_all() { "*".to_owned() } else { bounded(&scope.to_string()) }),
            ("selector", bounded(&selection.to_string())),
        ]
        .into_iter()
        .map(|(key, value)| Label::new(key, value))
        .collect();
        let taken = INFORMERS.take(name, format!("{labels:?}"));
        labels.insert(0, Label::new("name", taken.shown().to_owned()));
        let event = |kind: &'static str| {
            let mut labels = labels.clone();
            labels.push(Label::new("type", kind));
            metrics::counter!("informer_events_total", labels)
        };
        let list = |mode: &'static str| {
            let mut labels = labels.clone();
            labels.push(Label::new("mode", mode));
            metrics::counter!("informer_lists_total", labels)
        };
        Self {
            queued: metrics::gauge!("informer_queued_items", labels.clone()),
            latency: metrics::histogram!("informer_processing_latency_seconds", labels.clone()),
            store_version: metrics::gauge!("informer_store_resource_version", labels.clone()),
            objects: metrics::gauge!("informer_cached_objects", labels.clone()),
            bytes: metrics::gauge!("informer_cached_bytes", labels.clone()),
            disk_bytes: metrics::gauge!("informer_disk_bytes", labels.clone()),
            disk_write_failures: metrics::counter!("informer_disk_write_failures_total", labels.clone()),
            lost_contents: metrics::counter!("informer_lost_contents_total", labels.clone()),
            pages: list("paged"),
            version_queries: metrics::counter!("informer_version_queries_total", labels.clone()),
            streaming_lists: list("streaming"),
            watches: metrics::counter!("informer_watches_total", labels.clone()),
            added: event("added"),
            modified: event("modified"),
            deleted: event("deleted"),
            bookmarks: event("bookmark"),
            duplicates: metrics::counter!("informer_duplicate_events_total", labels.clone()),
            quarantined: metrics::counter!("informer_quarantined_total", labels.clone()),
            transform_failures: metrics::counter!("informer_transform_failures_total", labels.clone()),
            panics: metrics::counter!("informer_handler_panics_total", labels.clone()),
            slow: metrics::counter!("informer_handler_slow_calls_total", labels.clone()),
            persist_commits: metrics::counter!("informer_persist_commits_total", labels.clone()),
            persist_failures: metrics::counter!("informer_persist_failures_total", labels.clone()),
            labels,
            name: Mutex::new(Some(taken)),
            handlers: Arc::default(),
            kind,
            hook,
        }
    }

    /// The informer has stopped: another one may use its name in metrics.
    pub(crate) fn release_name(&self) {
        let name = lock(&self.name).take();
        drop(name);
    }

    pub(crate) fn listener(&self, handler: &str) -> ListenerMeters {
        let taken = self.handlers.take(handler, String::new());
        let name = taken.shown().to_owned();
        let mut labels = self.labels.clone();
        labels.push(Label::new("handler", name.clone()));
        ListenerMeters {
            name: name.into(),
            taken: Mutex::new(Some(taken)),
            coalesced: metrics::counter!("informer_coalesced_total", labels.clone()),
            lag: metrics::gauge!("informer_handler_lag_seconds", labels),
        }
    }

    /// Calls the hook. Only changes of state are logged.
    fn call_hook(&self, error: &InformerError) {
        let Some(hook) = &self.hook else { return };
        // The hook is code of the user: a panic in it must not end the task that reports.
        if catch_unwind(AssertUnwindSafe(|| hook(error))).is_err() {
            tracing::error!(kind = %self.kind, "the error hook panicked");
        }
    }

    pub(crate) fn failed(&self, error: &InformerError) {
        tracing::debug!(kind = %self.kind, %error, "informer request failed");
        self.call_hook(error);
    }

    pub(crate) fn quarantined(&self, malformed: Malformed) {
        self.quarantined.increment(1);
        tracing::warn!(kind = %self.kind, reason = malformed.reason, "left out an object or event whose identity cannot be read");
        self.call_hook(&InformerError::Malformed(malformed));
    }

    pub(crate) fn transform_failed(&self, key: &ObjectKey) {
        self.transform_failures.increment(1);
        tracing::error!(kind = %self.kind, %key, "the transform failed; the content is left out");
        self.call_hook(&InformerError::Transform { key: key.clone() });
    }

    pub(crate) fn index_panicked(&self, key: &ObjectKey) {
        tracing::error!(kind = %self.kind, %key, "the function of an index panicked; the object is left out of it");
        self.call_hook(&InformerError::Index { key: key.clone() });
    }

    pub(crate) fn handler_panicked(&self, handler: &Arc<str>, key: &ObjectKey) {
        self.panics.increment(1);
        tracing::error!(kind = %self.kind, %handler, %key, "a handler panicked; the event counts as delivered");
        self.call_hook(&InformerError::HandlerPanicked { handler: Arc::clone(handler), key: key.clone() });
    }

    pub(crate) fn task_failed(&self, task: Task, why: String) {
        let mut labels = self.labels.clone();
        labels.push(Label::new("task", task.to_string()));
        metrics::counter!("informer_task_failures_total", labels).increment(1);
        tracing::error!(kind = %self.kind, %task, why, "a task of the informer failed");
        self.call_hook(&InformerError::TaskFailed { task, why });
    }

    /// Writing to disk failed; `first` if it did not fail before.
    pub(crate) fn disk_write_failed(&self, why: String, first: bool) {
        self.disk_write_failures.increment(1);
        if first {
            tracing::error!(kind = %self.kind, why, "content cannot be written to disk and stays in memory");
            self.call_hook(&InformerError::DiskWrite { why });
        }
    }

    pub(crate) fn disk_write_recovered(&self) {
        tracing::info!(kind = %self.kind, "content is written to disk again");
    }

    pub(crate) fn contents_lost(&self, objects: usize, key: ObjectKey) {
        self.lost_contents.increment(objects as u64);
        tracing::error!(kind = %self.kind, objects, %key, "content cannot be read from its file; the objects are fetched again");
        self.call_hook(&InformerError::ContentLost { objects, key });
    }

    pub(crate) fn disk_bytes(&self, bytes: usize) {
        self.disk_bytes.set(bytes as f64);
    }

    pub(crate) fn persisted(&self) {
        self.persist_commits.increment(1);
    }

    pub(crate) fn persist_failed(&self, why: String) {
        self.persist_failures.increment(1);
        tracing::warn!(kind = %self.kind, why, "the cache could not be saved");
        self.call_hook(&InformerError::Persist { why });
    }

    pub(crate) fn not_persisted(&self, why: &'static str) {
        tracing::warn!(kind = %self.kind, why, "the cache is not saved");
        self.call_hook(&InformerError::NotPersisted { why });
    }

    pub(crate) fn not_restored(&self, why: &str) {
        tracing::warn!(kind = %self.kind, why, "the saved state is not used");
        self.call_hook(&InformerError::NotRestored { why: why.to_owned() });
    }

    pub(crate) fn handler_slow(&self, handler: &Arc<str>, key: &ObjectKey, took: Duration) {
        self.slow.increment(1);
        tracing::warn!(kind = %self.kind, %handler, %key, ?took, "a handler blocks; put keys on a work queue instead");
        self.call_hook(&InformerError::HandlerSlow { handler: Arc::clone(handler), key: key.clone(), took });
    }

    /// A status with another word than before: one line.
    pub(crate) fn status_changed(&self, namespace: Option<&str>, status: &InformerStatus) {
        let (kind, namespace) = (&self.kind, namespace.unwrap_or("*"));
        match status {
            InformerStatus::Denied { .. }
            | InformerStatus::Absent { .. }
            | InformerStatus::Failed { .. }
            | InformerStatus::Retrying { .. } => {
                tracing::warn!(%kind, namespace, "informer is {status}");
            }
            _ => tracing::info!(%kind, namespace, "informer is {status}"),
        }
    }

    /// Why the collection is absent, and what to check.
    pub(crate) fn unserved(&self) -> String {
        let Kind { group, version, .. } = &self.kind;
        // Groups of custom resources are domain names.
        let hint = if group.contains('.') { "; is its CRD installed, with this version?" } else { "" };
        format!("the server does not serve {}/{version}{hint}", self.kind)
    }

    /// A page, or a whole list, is requested.
    pub(crate) fn listing(&self) {
        self.pages.increment(1);
    }

    /// The version of the server is requested.
    pub(crate) fn querying_version(&self) {
        self.version_queries.increment(1);
    }

    /// A streaming list is requested.
    pub(crate) fn streaming(&self) {
        self.streaming_lists.increment(1);
        self.watches.increment(1);
    }

    /// The collection is listed again.
    pub(crate) fn relisting(&self, reason: RelistReason) {
        let mut labels = self.labels.clone();
        labels.push(Label::new("reason", reason.word()));
        metrics::counter!("informer_relists_total", labels).increment(1);
    }

    pub(crate) fn watching(&self) {
        self.watches.increment(1);
    }

    pub(crate) fn event(&self, event: &kube_informer_wire::WatchEvent) {
        use kube_informer_wire::WatchEvent;
        match event {
            WatchEvent::Added(_) => self.added.increment(1),
            WatchEvent::Modified(_) => self.modified.increment(1),
            WatchEvent::Deleted(_) => self.deleted.increment(1),
            WatchEvent::Bookmark(_) => self.bookmarks.increment(1),
            WatchEvent::Error(_) | WatchEvent::Malformed(_) => {}
        }
    }

    pub(crate) fn duplicate(&self) {
        self.duplicates.increment(1);
    }

    /// A batch was processed; `bytes` is the size of the cached objects.
    pub(crate) fn processed(&self, took: Duration, queued: usize, snapshot: &Snapshot, bytes: usize) {
        self.latency.record(took);
        self.queued.set(queued as f64);
        self.objects.set(snapshot.len() as f64);
        self.bytes.set(bytes as f64);
        if let Some(version) = snapshot.position(0).and_then(|version| version.number()) {
            // A float holds 15 decimal digits: the last ones are those that move.
            self.store_version.set((version % 1_000_000_000_000_000) as f64);
        }
    }
}
