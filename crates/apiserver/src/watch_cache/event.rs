//! The items of a watch: changes as one watcher sees them, each encoded once for all watchers.

use kube_informer_wire::sync::lock;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::encodings::Encodings;
use super::error::ReadError;
use crate::storage::{Change, Stored, TypeHead};

/// One item of a watch stream.
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// A change.
    Event(WatchEvent),
    /// Every event up to this revision has been sent.
    Bookmark(Bookmark),
    /// The watch failed; this is the last item.
    Error(ReadError),
}

/// A bookmark: an object of the watched kind with nothing but a resource version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bookmark {
    /// Its `metadata.resourceVersion`.
    pub revision: u64,
    /// Whether it carries the annotation `k8s.io/initial-events-end: "true"`.
    pub initial_events_end: bool,
}

/// The type of an event, as one watcher sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object is new to this watcher.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted, or is no longer selected.
    Deleted,
}

/// An event for one watcher: a type, a version of an object, and the resource version to write into it.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    event_type: EventType,
    source: Source,
    /// Shares encodings between watches.
    encodings: Arc<Encodings>,
}

#[derive(Debug, Clone)]
enum Source {
    /// Part of the initial state.
    State(Arc<Stored>),
    /// A change in the window, shared with all watchers.
    Window(Arc<Event>),
}

/// A change in the window, with its encodings.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) change: Arc<Change>,
    /// `None` once the event is no longer among the newest: encodings are cached during the fan-out, not as long as the event is in the
    /// window.
    encoded: Mutex<Option<Vec<(EventType, Format, Bytes)>>>,
}

/// Names an encoding of events. Equal formats must encode equal events to equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Format(Arc<str>);

impl EventType {
    /// Returns the type as it is written in a watch frame.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Format {
    /// Returns the format with this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

impl Bookmark {
    /// Encodes the bookmark as a JSON watch frame with its newline.
    pub fn frame(&self, head: &TypeHead) -> Bytes {
        let annotation = match self.initial_events_end {
            true => r#","annotations":{"k8s.io/initial-events-end":"true"}"#,
            false => "",
        };
        let (head, revision) = (head.as_str(), self.revision);
        let metadata = format!(r#""metadata":{{"resourceVersion":"{revision}"{annotation}}}"#);
        format!("{{\"type\":\"BOOKMARK\",\"object\":{head}{metadata}}}}}\n").into()
    }
}

impl WatchEvent {
    /// Returns the event for an object of the initial state.
    pub(crate) fn initial(stored: Arc<Stored>, encodings: &Arc<Encodings>) -> Self {
        let source = Source::State(stored);
        Self { event_type: EventType::Added, source, encodings: Arc::clone(encodings) }
    }

    /// Returns the event as one watcher sees it, or `None` if the watcher selects neither the previous nor the current version.
    pub(crate) fn new(
        event: &Arc<Event>,
        selects_previous: bool,
        selects_current: bool,
        encodings: &Arc<Encodings>,
    ) -> Option<Self> {
        let event_type = match (selects_previous, selects_current) {
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
            (false, false) => return None,
        };
        let source = Source::Window(Arc::clone(event));
        Some(Self { event_type, source, encodings: Arc::clone(encodings) })
    }

    /// Returns the type of the event.
    pub fn event_type(&self) -> EventType {
        self.event_type
    }

    /// Returns the version whose content the event carries: for [`EventType::Deleted`] the previous one.
    pub fn object(&self) -> &Arc<Stored> {
        match &self.source {
            Source::State(stored) => stored,
            Source::Window(event) if self.event_type == EventType::Deleted => {
                event.change.previous.as_ref().expect("a deleted object has a previous version")
            }
            Source::Window(event) => event.change.current.as_ref().expect("a selected version exists"),
        }
    }

    /// Returns the resource version to write into the object: for [`EventType::Deleted`] that of the change, not of the content.
    pub fn revision(&self) -> u64 {
        match &self.source {
            Source::State(stored) => stored.revision,
            Source::Window(event) => event.change.revision,
        }
    }

    /// Encodes the event as a JSON watch frame with its newline. All watchers of a kind share one allocation.
    pub fn frame(&self, head: &TypeHead) -> Bytes {
        self.encoded(&Format(head.shared()), || self.json_frame(head))
    }

    /// Returns the event in another encoding. The first caller computes it, and later callers share it.
    ///
    /// `encode` must not request another encoding of the same event.
    pub fn encoded(&self, format: &Format, encode: impl FnOnce() -> Bytes) -> Bytes {
        let shared = || self.encodings.get(self.object(), self.event_type, self.revision(), format, encode);
        match &self.source {
            Source::State(_) => shared(),
            Source::Window(event) => event.encoded(self.event_type, format, shared),
        }
    }

    /// Encodes the event as a JSON watch frame without its last two bytes, `}` and a newline. The second part shares the stored bytes.
    pub(crate) fn shared_frame(&self, head: &TypeHead) -> (Bytes, Bytes) {
        let mut start = Vec::with_capacity(1024);
        start.extend_from_slice(b"{\"type\":\"");
        start.extend_from_slice(self.event_type.as_str().as_bytes());
        start.extend_from_slice(b"\",\"object\":");
        let rest = self.object().document.write_shared(Some(head), self.revision(), &mut start);
        (start.into(), rest)
    }

    fn json_frame(&self, head: &TypeHead) -> Bytes {
        let document = &self.object().document;
        let mut out = Vec::with_capacity(48 + head.as_str().len() + document.encoded_len());
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(self.event_type.as_str().as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        document.write(Some(head), self.revision(), &mut out);
        out.extend_from_slice(b"}\n");
        out.into()
    }
}

impl Event {
    pub(crate) fn new(change: Arc<Change>) -> Self {
        Self { change, encoded: Mutex::new(Some(Vec::new())) }
    }

    /// Drops the encodings and stops caching new ones.
    pub(crate) fn drop_encodings(&self) {
        *self.lock() = None;
    }

    /// Holds the lock while encoding, so that a thousand watchers that wake at the same time encode once.
    fn encoded(&self, event_type: EventType, format: &Format, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut slot = self.lock();
        let Some(known) = slot.as_mut() else {
            drop(slot);
            return encode();
        };
        if let Some((_, _, bytes)) = known.iter().find(|(t, f, _)| *t == event_type && f == format) {
            return bytes.clone();
        }
        let bytes = encode();
        known.push((event_type, format.clone(), bytes.clone()));
        bytes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Vec<(EventType, Format, Bytes)>>> {
        lock(&self.encoded)
    }
}
