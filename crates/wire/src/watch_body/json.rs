//! Splits watches in JSON.

use crate::{
    BodyError, Bookmark, Limits, Malformed, Object, Origin, Status, WatchEvent,
    json::{Cursor, SpanFinder, Step, Syntax, is_space},
};
use bytes::Bytes;
use serde_json::Value;
use std::{fmt, mem, ops::Range, sync::Arc};

/// Splits the body of a WATCH response in JSON, one object on each line. The contract is that of
/// [`WatchSplitter`](super::WatchSplitter).
pub(super) struct JsonSplitter {
    origin: Arc<Origin>,
    limits: Limits,
    chunk: Bytes,
    /// Read bytes of `chunk`.
    at: usize,
    /// The part of a line in earlier chunks.
    line: Vec<u8>,
    /// Length of the last line that spanned chunks, as an estimate for the next one.
    expected_length: usize,
    /// Whether the rest of a line that is too long is skipped.
    skipping: bool,
    failed: Option<BodyError>,
}

/// Maximum length of a line without its object.
const ENVELOPE: usize = 1 << 10;

/// Maximum memory that is reserved in advance.
const MAX_RESERVED: usize = 64 << 10;

impl JsonSplitter {
    /// A splitter for one body.
    pub(super) fn new(origin: Arc<Origin>, limits: Limits) -> Self {
        Self {
            origin,
            limits,
            chunk: Bytes::new(),
            at: 0,
            line: Vec::new(),
            expected_length: 0,
            skipping: false,
            failed: None,
        }
    }

    /// Adds the next chunk of the body, after [`next_event`](Self::next_event) returned `None`.
    pub(super) fn feed(&mut self, chunk: Bytes) {
        debug_assert!(self.at == self.chunk.len() || self.failed.is_some(), "chunk not read");
        self.chunk = chunk;
        self.at = 0;
    }

    /// Returns the next complete event, or `None` if it needs the next chunk.
    pub(super) fn next_event(&mut self) -> Result<Option<WatchEvent>, BodyError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        while self.at < self.chunk.len() {
            let newline = memchr::memchr(b'\n', &self.chunk[self.at..]).map(|found| self.at + found);
            let end = newline.unwrap_or(self.chunk.len());
            let piece = self.chunk.slice(self.at..end);
            self.at = newline.map_or(end, |newline| newline + 1);
            let event = match (mem::take(&mut self.skipping), newline) {
                (true, Some(_)) => None,
                (true, None) => {
                    self.skipping = true;
                    None
                }
                (false, Some(_)) => self.line(piece)?,
                (false, None) => self.keep(&piece),
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        // A quiet watch does not keep the buffer of its last event.
        (self.chunk, self.at) = (Bytes::new(), 0);
        Ok(None)
    }

    /// Returns the event of a last line that only lacks its newline, at the clean end of the body.
    pub(super) fn finish(mut self) -> Result<Option<WatchEvent>, BodyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let line = mem::take(&mut self.line);
        if is_complete(&line) { self.event(line.into()) } else { Ok(None) }
    }

    fn bound(&self) -> usize {
        self.limits.object_bytes.saturating_add(ENVELOPE)
    }

    /// Stores a part of a line, unless the line is too long.
    fn keep(&mut self, piece: &[u8]) -> Option<WatchEvent> {
        if self.line.len() + piece.len() <= self.bound() {
            if self.line.is_empty() {
                self.line.reserve_exact(self.expected_length.max(piece.len()));
            }
            self.line.extend_from_slice(piece);
            return None;
        }
        self.skipping = true;
        Some(self.oversized(piece))
    }

    fn oversized(&mut self, piece: &[u8]) -> WatchEvent {
        let mut line = mem::take(&mut self.line);
        let room = self.bound().saturating_sub(line.len()).min(piece.len());
        line.extend_from_slice(&piece[..room]);
        let envelope = Envelope::read(&line, &self.limits).unwrap_or_else(|(envelope, _)| envelope);
        let beginning = envelope.beginning(&line);
        WatchEvent::Malformed(Malformed::oversized(beginning, &self.limits))
    }

    /// Handles a line that is complete with `last`.
    fn line(&mut self, last: Bytes) -> Result<Option<WatchEvent>, BodyError> {
        if self.line.len() + last.len() > self.bound() {
            return Ok(Some(self.oversized(&last)));
        }
        let line = if self.line.is_empty() {
            last
        } else {
            self.line.extend_from_slice(&last);
            self.expected_length = self.line.len().min(MAX_RESERVED);
            mem::take(&mut self.line).into()
        };
        let event = self.event(line);
        if let Err(error) = &event {
            self.failed = Some(error.clone());
        }
        event
    }

    /// The event of a line; `None` for an empty line.
    fn event(&self, line: Bytes) -> Result<Option<WatchEvent>, BodyError> {
        if line.iter().all(|byte| is_space(*byte)) {
            return Ok(None);
        }
        if let Some(event) = self.canonical(&line) {
            return Ok(Some(event));
        }
        let envelope = match Envelope::read(&line, &self.limits) {
            Ok(envelope) => envelope,
            Err((envelope, Syntax { at, expected })) => {
                let reason =
                    format!("not an event in JSON (expected {expected} at byte {at} of {})", line.len());
                return Ok(Some(self.malformed(reason, envelope.beginning(&line))));
            }
        };
        let Some(object) = envelope.object.clone() else {
            return Ok(Some(WatchEvent::Malformed(Malformed::new("an event without an object"))));
        };
        self.typed(envelope.kind, line.slice(object)).map(Some)
    }

    /// The event of a line in the form of kube-apiserver: type, object, nothing else. The object must end where the line
    /// ends, which reading its identity verifies, so that its end need not be searched. `None` for any other line.
    fn canonical(&self, line: &Bytes) -> Option<WatchEvent> {
        let rest = line.strip_prefix(br#"{"type":""#)?;
        let (variant, rest): (fn(Object<Value>) -> WatchEvent, _) = match rest.first()? {
            b'A' => (WatchEvent::Added, rest.strip_prefix(b"ADDED")?),
            b'M' => (WatchEvent::Modified, rest.strip_prefix(b"MODIFIED")?),
            b'D' => (WatchEvent::Deleted, rest.strip_prefix(b"DELETED")?),
            _ => return None,
        };
        let json = rest.strip_prefix(br#"","object":"#)?.strip_suffix(b"}")?;
        Object::parse(&self.origin, line.slice_ref(json), &self.limits).ok().map(variant)
    }

    fn typed(&self, kind: EventType, json: Bytes) -> Result<WatchEvent, BodyError> {
        let variant = match kind {
            EventType::Added => WatchEvent::Added,
            EventType::Modified => WatchEvent::Modified,
            EventType::Deleted => WatchEvent::Deleted,
            EventType::Bookmark => {
                return Ok(Bookmark::parse(&json).map_or_else(WatchEvent::Malformed, WatchEvent::Bookmark));
            }
            EventType::Error => {
                return Status::parse(&json).map(WatchEvent::Error).ok_or(BodyError::ErrorWithoutStatus);
            }
            EventType::Missing => return Ok(self.malformed("an event without a type".into(), &json)),
            EventType::Unknown => return Ok(self.malformed("an event of an unknown type".into(), &json)),
        };
        Ok(Object::parse(&self.origin, json, &self.limits).map_or_else(WatchEvent::Malformed, variant))
    }

    fn malformed(&self, reason: String, json: &[u8]) -> WatchEvent {
        WatchEvent::Malformed(Malformed::scanned(reason, json, &self.limits))
    }
}

/// Whether a line without a newline is one whole value. A value that is cut off has an open bracket or quote.
fn is_complete(line: &[u8]) -> bool {
    let start = line.iter().take_while(|byte| is_space(**byte)).count();
    match SpanFinder::new(usize::MAX).advance(line, start) {
        Step::End(end) => line[end..].iter().all(|byte| is_space(*byte)),
        Step::More => false,
    }
}

/// How far the stream has been read; nothing of its content.
impl fmt::Debug for JsonSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.line.len() + self.chunk.len() - self.at;
        f.debug_struct("JsonSplitter").field("held", &held).finish_non_exhaustive()
    }
}

/// The `type` of an event.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
    Unknown,
    #[default]
    Missing,
}

/// The outer object of a line.
#[derive(Debug, Default)]
struct Envelope {
    kind: EventType,
    /// Start of the object, once it is known.
    start: Option<usize>,
    /// Range of the object.
    object: Option<Range<usize>>,
}

impl Envelope {
    /// Reads a line. The error has the fields before the syntax error.
    fn read(line: &[u8], limits: &Limits) -> Result<Self, (Self, Syntax)> {
        let mut envelope = Self::default();
        // One level more than the object: the envelope itself.
        let mut cursor = Cursor::new(line, limits.object_depth() + 1);
        let end = envelope.fields(&mut cursor).and_then(|()| cursor.end());
        match end {
            Ok(()) => Ok(envelope),
            Err(syntax) => Err((envelope, syntax)),
        }
    }

    fn fields(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Syntax> {
        cursor.object(|cursor, key| match &*key {
            b"type" => cursor.span().map(|json| self.kind = EventType::named(json)),
            b"object" => {
                cursor.peek_type()?;
                let start = cursor.position();
                self.start = Some(start);
                // Reading the identity checks that it is JSON.
                cursor.skip_unchecked()?;
                self.object = Some(start..cursor.position());
                Ok(())
            }
            _ => cursor.skip(),
        })
    }

    /// The object as far as it was received.
    fn beginning<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        self.start.map_or(&[], |start| &line[start..])
    }
}

impl EventType {
    fn named(json: &[u8]) -> Self {
        match serde_json::from_slice::<std::borrow::Cow<'_, str>>(json).as_deref() {
            Ok("ADDED") => Self::Added,
            Ok("MODIFIED") => Self::Modified,
            Ok("DELETED") => Self::Deleted,
            Ok("BOOKMARK") => Self::Bookmark,
            Ok("ERROR") => Self::Error,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
