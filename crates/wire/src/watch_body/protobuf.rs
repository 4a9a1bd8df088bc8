//! Splits watches in protobuf.

use crate::{
    BodyError, Bookmark, Limits, Malformed, Object, Origin, Status, WatchEvent,
    object::MessageError,
    protobuf::watch_splitter::{BadFrame, Frame, WatchSplitter},
};
use bytes::Bytes;
use std::{fmt, sync::Arc};

/// Splits the body of a WATCH response in protobuf. The contract is that of [`WatchSplitter`](super::WatchSplitter).
pub(super) struct ProtobufSplitter {
    origin: Arc<Origin>,
    limits: Limits,
    splitter: WatchSplitter,
    failed: Option<BodyError>,
}

impl ProtobufSplitter {
    pub(super) fn new(origin: Arc<Origin>, limits: Limits) -> Self {
        Self { origin, limits, splitter: WatchSplitter::new(limits), failed: None }
    }

    pub(super) fn feed(&mut self, chunk: Bytes) {
        self.splitter.feed(chunk);
    }

    pub(super) fn next_event(&mut self) -> Result<Option<WatchEvent>, BodyError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let event = match self.splitter.next_frame() {
            None => return Ok(None),
            Some(Ok(frame)) => self.event(frame),
            Some(Err(BadFrame::NotAnEvent)) => {
                Ok(WatchEvent::Malformed(Malformed::new("not an event in protobuf")))
            }
            Some(Err(BadFrame::Oversized(object))) => {
                Ok(WatchEvent::Malformed(Malformed::oversized_protobuf(&object, &self.limits)))
            }
        };
        if let Err(error) = &event {
            self.failed = Some(error.clone());
        }
        event.map(Some)
    }

    pub(super) fn finish(self) -> Result<Option<WatchEvent>, BodyError> {
        // An event that is cut off is not an error: the watch resumes before it.
        self.failed.map_or(Ok(None), Err)
    }

    fn event(&self, frame: Frame) -> Result<WatchEvent, BodyError> {
        let variant = match frame.event_type.as_str() {
            "ADDED" => WatchEvent::Added,
            "MODIFIED" => WatchEvent::Modified,
            "DELETED" => WatchEvent::Deleted,
            "BOOKMARK" => {
                let bookmark = Bookmark::parse_protobuf(&frame.object);
                return Ok(bookmark.map_or_else(WatchEvent::Malformed, WatchEvent::Bookmark));
            }
            "ERROR" => {
                let status = Status::of_message(&frame.kind, &frame.object);
                return status.map(WatchEvent::Error).ok_or(BodyError::ErrorWithoutStatus);
            }
            "" => return Ok(self.malformed("an event without a type", &frame)),
            _ => return Ok(self.malformed("an event of an unknown type", &frame)),
        };
        match Object::parse_protobuf(&self.origin, frame.object, &self.limits) {
            Ok(object) => Ok(variant(object)),
            Err(MessageError::Malformed(malformed)) => Ok(WatchEvent::Malformed(malformed)),
            Err(MessageError::UnknownFields) => Err(BodyError::UnknownFields),
        }
    }

    fn malformed(&self, reason: &str, frame: &Frame) -> WatchEvent {
        WatchEvent::Malformed(Malformed::scanned_protobuf(reason, &frame.object, &self.limits))
    }
}

impl fmt::Debug for ProtobufSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtobufSplitter").field("failed", &self.failed).finish_non_exhaustive()
    }
}
