//! Splits the body of a WATCH response into events while it arrives.

mod json;
mod protobuf;

use crate::{BodyError, Limits, Origin, WatchEvent};
use bytes::Bytes;
use json::JsonSplitter;
use protobuf::ProtobufSplitter;
use std::{fmt, sync::Arc};

/// Splits the body of a WATCH response into events: one JSON object on each line, or one protobuf message after each
/// length.
///
/// 1. Holds at most one event and the current chunk; an object inside one chunk is a slice of it.
/// 2. An event that is too long, is not an event, has an unknown type or an object without a name is one
///    [`WatchEvent::Malformed`]; the stream continues with the next one.
/// 3. An event that is cut off at the end of the body is not delivered: the server sends that event again when the watch
///    resumes. A last line that only lacks its newline is delivered.
/// 4. The events do not depend on how the body is divided into chunks.
/// 5. Lengths in protobuf are claims of the server: they allocate nothing before the bytes arrive.
/// 6. An object in protobuf with a field that this release does not know ends the watch with
///    [`BodyError::UnknownFields`]: such an object could be neither shown nor edited without loss.
/// 7. An ERROR event without a valid `Status` is an error. Every later call repeats an error.
pub struct WatchSplitter(Splitter);

enum Splitter {
    Json(JsonSplitter),
    Protobuf(ProtobufSplitter),
}

impl WatchSplitter {
    /// A splitter for one body in JSON.
    pub fn new(origin: Arc<Origin>, limits: Limits) -> Self {
        Self(Splitter::Json(JsonSplitter::new(origin, limits)))
    }

    /// A splitter for one body in protobuf.
    pub fn protobuf(origin: Arc<Origin>, limits: Limits) -> Self {
        Self(Splitter::Protobuf(ProtobufSplitter::new(origin, limits)))
    }

    /// Adds the next chunk of the body, after [`next_event`](Self::next_event) returned `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        match &mut self.0 {
            Splitter::Json(splitter) => splitter.feed(chunk),
            Splitter::Protobuf(splitter) => splitter.feed(chunk),
        }
    }

    /// Returns the next complete event, or `None` if it needs the next chunk.
    pub fn next_event(&mut self) -> Result<Option<WatchEvent>, BodyError> {
        match &mut self.0 {
            Splitter::Json(splitter) => splitter.next_event(),
            Splitter::Protobuf(splitter) => splitter.next_event(),
        }
    }

    /// Returns the event of a last line that only lacks its newline, at the clean end of the body.
    pub fn finish(self) -> Result<Option<WatchEvent>, BodyError> {
        match self.0 {
            Splitter::Json(splitter) => splitter.finish(),
            Splitter::Protobuf(splitter) => splitter.finish(),
        }
    }
}

/// How far the stream has been read; nothing of its content.
impl fmt::Debug for WatchSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Splitter::Json(splitter) => splitter.fmt(f),
            Splitter::Protobuf(splitter) => splitter.fmt(f),
        }
    }
}
