//! Splits the body of a LIST response into items while it arrives.

mod json;
mod protobuf;

use crate::{BodyError, Limits, ListPart, Origin};
use bytes::Bytes;
use json::JsonSplitter;
use protobuf::ProtobufSplitter;
use std::{fmt, sync::Arc};

/// Splits the body of a LIST response into its parts.
///
/// 1. Holds at most one item and the current chunk; an item inside one chunk is a slice of it.
/// 2. `metadata`, `items`, `kind` and `apiVersion` may have any order; other fields are skipped. JSON may have any whitespace
///    and escapes.
/// 3. An item that is too large, too deep or has no name is one [`ListPart::Malformed`]; the list continues after it.
/// 4. The parts do not depend on how the body is divided into chunks.
/// 5. Lengths in protobuf are claims of the server: they allocate nothing before the bytes arrive.
/// 6. An object in protobuf with a field that this release does not know ends the list with
///    [`BodyError::UnknownFields`]: such an object could be neither shown nor edited without loss.
/// 7. After an error, every later call returns the same error.
///
/// ```
/// use bytes::Bytes;
/// use kube_informer_wire::{Kind, Limits, ListPart, ListSplitter, Origin};
/// use std::sync::Arc;
///
/// let pods = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
/// let mut list = ListSplitter::new(pods, Limits::default());
/// let mut names = Vec::new();
/// for chunk in [r#"{"kind":"PodList","items":[{"metadata":{"na"#, r#"me":"a"}},{"metadata":{"name":"b"}}]}"#] {
///     list.feed(Bytes::from_static(chunk.as_bytes()));
///     while let Some(part) = list.next_part()? {
///         if let ListPart::Item(pod) = part {
///             names.push(pod.name().to_owned());
///         }
///     }
/// }
/// list.finish()?;
/// assert_eq!(names, ["a", "b"]);
/// # Ok::<(), kube_informer_wire::BodyError>(())
/// ```
pub struct ListSplitter(Splitter);

enum Splitter {
    Json(JsonSplitter),
    Protobuf(ProtobufSplitter),
}

impl ListSplitter {
    /// A splitter for one body in JSON.
    pub fn new(origin: Arc<Origin>, limits: Limits) -> Self {
        Self(Splitter::Json(JsonSplitter::new(origin, limits)))
    }

    /// A splitter for one body in protobuf.
    pub fn protobuf(origin: Arc<Origin>, limits: Limits) -> Self {
        Self(Splitter::Protobuf(ProtobufSplitter::new(origin, limits)))
    }

    /// Adds the next chunk of the body, after [`next_part`](Self::next_part) returned `None`.
    pub fn feed(&mut self, chunk: Bytes) {
        match &mut self.0 {
            Splitter::Json(splitter) => splitter.feed(chunk),
            Splitter::Protobuf(splitter) => splitter.feed(chunk),
        }
    }

    /// Returns the next complete part, or `None` if it needs the next chunk.
    pub fn next_part(&mut self) -> Result<Option<ListPart>, BodyError> {
        match &mut self.0 {
            Splitter::Json(splitter) => splitter.next_part(),
            Splitter::Protobuf(splitter) => splitter.next_part(),
        }
    }

    /// Checks that the list is complete, at the end of the body.
    pub fn finish(self) -> Result<(), BodyError> {
        match self.0 {
            Splitter::Json(splitter) => splitter.finish(),
            Splitter::Protobuf(splitter) => splitter.finish(),
        }
    }
}

/// Prints the position, never the content.
impl fmt::Debug for ListSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Splitter::Json(splitter) => splitter.fmt(f),
            Splitter::Protobuf(splitter) => splitter.fmt(f),
        }
    }
}
