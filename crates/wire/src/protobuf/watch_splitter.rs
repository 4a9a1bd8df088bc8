//! Splits the body of a WATCH response into events while it arrives.

use super::framing::{Capture, MAGIC, open_field};
use crate::Limits;
use bytes::{Buf, Bytes};
use kube_informer_types::protobuf::Fields;

/// Splits the body of a WATCH response in protobuf into events: each is a length of four bytes and a message.
///
/// 1. Holds at most one event and the current chunk; an event inside one chunk is a slice of it.
/// 2. An event that is too long or has no object is one `Err` with the reason; the stream continues with the next one.
/// 3. An event that is cut off at the end of the body is not delivered: the server sends it again when the watch
///    resumes.
/// 4. The events do not depend on how the body is divided into chunks.
/// 5. Lengths are claims of the server: they allocate nothing before the bytes arrive.
pub(crate) struct WatchSplitter {
    limits: Limits,
    chunk: Bytes,
    /// Read bytes of `chunk`.
    at: usize,
    /// The bytes of the length that have arrived.
    length: Vec<u8>,
    /// Whether the event after the length is being read.
    in_event: bool,
    capture: Capture,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Such as `ADDED`.
    pub(crate) event_type: String,
    /// The kind of the object: that of the collection, or `Status`.
    pub(crate) kind: String,
    /// The encoded object.
    pub(crate) object: Bytes,
}

/// An event that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BadFrame {
    NotAnEvent,
    /// It is too long. Has the beginning of its object, as far as that is found.
    Oversized(Bytes),
}

/// Maximum length of an event without its object.
const ENVELOPE: usize = 1 << 10;

/// Length of the length of an event.
const LENGTH: usize = 4;

impl WatchSplitter {
    /// A splitter for one body.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            chunk: Bytes::new(),
            at: 0,
            length: Vec::new(),
            in_event: false,
            capture: Capture::default(),
        }
    }

    /// Adds the next chunk of the body, after [`next_frame`](Self::next_frame) returned `None`.
    pub(crate) fn feed(&mut self, chunk: Bytes) {
        self.chunk = chunk;
        self.at = 0;
    }

    /// Returns the next complete event, or `None` if it needs the next chunk.
    pub(crate) fn next_frame(&mut self) -> Option<Result<Frame, BadFrame>> {
        let frame = self.advance();
        if frame.is_none() {
            // A quiet watch does not keep the buffer of its last event.
            (self.chunk, self.at) = (Bytes::new(), 0);
        }
        frame
    }

    fn advance(&mut self) -> Option<Result<Frame, BadFrame>> {
        loop {
            if self.in_event {
                let event = self.capture.advance(&self.chunk, &mut self.at)?;
                self.in_event = false;
                return Some(match event {
                    Ok(event) => frame(&event).ok_or(BadFrame::NotAnEvent),
                    Err(beginning) => Err(BadFrame::Oversized(partial_object(&beginning))),
                });
            }
            let wanted = LENGTH.saturating_sub(self.length.len());
            let available = &self.chunk[self.at..];
            let taken = wanted.min(available.len());
            self.length.extend_from_slice(&available[..taken]);
            self.at = self.at.saturating_add(taken);
            if self.length.len() < LENGTH {
                return None;
            }
            let length = self.length.as_slice().get_u32();
            self.length.clear();
            self.capture.begin(length.into(), self.limits.object_bytes.saturating_add(ENVELOPE));
            self.in_event = true;
        }
    }
}

/// The parts of an event; `None` if there is no object.
fn frame(event: &Bytes) -> Option<Frame> {
    let (mut event_type, mut object) = (String::new(), None);
    for field in Fields::new(event) {
        match field.ok()? {
            (1, wire) => event_type = wire.text().ok()?.to_owned(),
            (2, wire) => object = Some(wire.bytes().ok()?),
            _ => {}
        }
    }
    let raw = Fields::new(object?).filter_map(Result::ok).find(|(number, _)| *number == 1)?.1.bytes().ok()?;
    let envelope = raw.strip_prefix(MAGIC)?;
    let (mut kind, mut message) = (String::new(), &[][..]);
    for field in Fields::new(envelope) {
        match field.ok()? {
            (1, wire) => {
                for part in Fields::new(wire.bytes().ok()?) {
                    if let (2, wire) = part.ok()? {
                        kind = wire.text().ok()?.to_owned();
                    }
                }
            }
            (2, wire) => message = wire.bytes().ok()?,
            // An encoding of its own, which no server uses.
            (3, wire) if !wire.bytes().ok()?.is_empty() => return None,
            _ => {}
        }
    }
    Some(Frame { event_type, kind, object: event.slice_ref(message) })
}

/// The object in the beginning of an event, as far as it was received; empty if it does not get that far.
fn partial_object(beginning: &Bytes) -> Bytes {
    // The event, the extension, the envelope: each in a field whose length goes beyond the end.
    let object = open_field(beginning, 2)
        .and_then(|extension| open_field(extension, 1))
        .and_then(|raw| open_field(raw.strip_prefix(MAGIC)?, 2));
    object.map_or_else(Bytes::new, |object| beginning.slice_ref(object))
}

#[cfg(test)]
mod tests;
