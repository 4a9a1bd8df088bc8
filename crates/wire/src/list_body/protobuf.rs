//! Splits lists in protobuf.

use crate::{
    BodyError, Limits, ListPart, Malformed, Object, Origin,
    object::MessageError,
    protobuf::list_splitter::{ListSplitter, Part},
};
use bytes::Bytes;
use std::{fmt, sync::Arc};

/// Splits the body of a LIST response in protobuf. The contract is that of [`ListSplitter`](super::ListSplitter).
pub(super) struct ProtobufSplitter {
    origin: Arc<Origin>,
    limits: Limits,
    splitter: ListSplitter,
    /// Whether an object with unknown fields ended the list.
    failed: bool,
}

impl ProtobufSplitter {
    pub(super) fn new(origin: Arc<Origin>, limits: Limits) -> Self {
        Self { origin, limits, splitter: ListSplitter::new(limits), failed: false }
    }

    pub(super) fn feed(&mut self, chunk: Bytes) {
        self.splitter.feed(chunk);
    }

    pub(super) fn next_part(&mut self) -> Result<Option<ListPart>, BodyError> {
        if self.failed {
            return Err(BodyError::UnknownFields);
        }
        let Some(part) = self.splitter.next_part()? else { return Ok(None) };
        Ok(Some(match part {
            Part::Meta(meta) => ListPart::Meta(meta),
            Part::Oversized(beginning) => {
                ListPart::Malformed(Malformed::oversized_protobuf(&beginning, &self.limits))
            }
            Part::Item(message) => match Object::parse_protobuf(&self.origin, message, &self.limits) {
                Ok(object) => ListPart::Item(object),
                Err(MessageError::Malformed(malformed)) => ListPart::Malformed(malformed),
                Err(MessageError::UnknownFields) => {
                    self.failed = true;
                    return Err(BodyError::UnknownFields);
                }
            },
        }))
    }

    pub(super) fn finish(self) -> Result<(), BodyError> {
        if self.failed { Err(BodyError::UnknownFields) } else { self.splitter.finish() }
    }
}

impl fmt::Debug for ProtobufSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtobufSplitter").field("failed", &self.failed).finish_non_exhaustive()
    }
}
