//! What a watch yields: changes as one watcher sees them, encoded once for all of them.

use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::error::ReadError;
use crate::storage::{Change, Stored, TypeHead};

/// One item of a watch stream.
#[derive(Debug, Clone)]
pub enum WatchItem {
    /// A change.
    Event(WatchEvent),
    /// Every event up to this revision has been sent.
    Bookmark(Bookmark),
    /// The watch failed; nothing follows.
    Error(ReadError),
}

/// A bookmark: an otherwise empty object of the watched kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bookmark {
    /// Its `metadata.resourceVersion`.
    pub revision: u64,
    /// Whether it carries the annotation `k8s.io/initial-events-end: "true"`.
    pub initial_events_end: bool,
}

/// How an event looks to one watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object is new to this watcher.
    Added,
    /// The object changed.
    Modified,
    /// The object is gone, or no longer selected.
    Deleted,
}

/// An event for one watcher: a type, a version of an object, and the revision to show in it.
#[derive(Debug, Clone)]
pub struct WatchEvent {
    event_type: EventType,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    /// Part of the initial state.
    State(Arc<Stored>),
    /// A change in the window, shared with all watchers.
    Window(Arc<Event>),
}

/// A change in the window, with what was encoded of it.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) change: Arc<Change>,
    /// `None` once the event is no longer among the newest: encodings are kept while a fan-out lasts, not as long as the window.
    encoded: Mutex<Option<Vec<(EventType, Format, Bytes)>>>,
}

/// Names an encoding of events. Equal formats must encode equal events to equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Format(Arc<str>);

impl EventType {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

impl Format {
    /// A format of this name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }
}

impl Bookmark {
    /// The bookmark as a JSON watch frame with its newline.
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
    pub(crate) fn state(stored: Arc<Stored>) -> Self {
        Self { event_type: EventType::Added, source: Source::State(stored) }
    }

    /// `old` and `new` say whether the watcher selects the version before and the version after.
    pub(crate) fn seen(event: &Arc<Event>, old: bool, new: bool) -> Option<Self> {
        let event_type = match (old, new) {
            (false, true) => EventType::Added,
            (true, true) => EventType::Modified,
            (true, false) => EventType::Deleted,
            (false, false) => return None,
        };
        Some(Self { event_type, source: Source::Window(Arc::clone(event)) })
    }

    /// What the watcher is told.
    pub fn event_type(&self) -> EventType {
        self.event_type
    }

    /// The version whose content is shown: for [`EventType::Deleted`] the one before.
    pub fn object(&self) -> &Arc<Stored> {
        match &self.source {
            Source::State(stored) => stored,
            Source::Window(event) if self.event_type == EventType::Deleted => {
                event.change.previous.as_ref().expect("a watcher can only lose what was there")
            }
            Source::Window(event) => event.change.current.as_ref().expect("a selected version exists"),
        }
    }

    /// The resource version to show in the object: for [`EventType::Deleted`] that of the change, not of the content.
    pub fn revision(&self) -> u64 {
        match &self.source {
            Source::State(stored) => stored.revision,
            Source::Window(event) => event.change.revision,
        }
    }

    /// The event as a JSON watch frame with its newline: one allocation for all watchers of a kind.
    pub fn frame(&self, head: &TypeHead) -> Bytes {
        self.encoded(&Format(head.shared()), || self.json_frame(head))
    }

    /// The event in some other encoding, computed by the first who asks and shared with all others.
    ///
    /// `encode` must not ask for another encoding of the same event.
    pub fn encoded(&self, format: &Format, encode: impl FnOnce() -> Bytes) -> Bytes {
        match &self.source {
            Source::State(_) => encode(),
            Source::Window(event) => event.encoded(self.event_type, format, encode),
        }
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

    /// Drops the encodings and keeps none from now on.
    pub(crate) fn retire(&self) {
        *self.lock() = None;
    }

    /// The lock is held while encoding, so that a thousand watchers that wake at once encode once.
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
        self.encoded.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
