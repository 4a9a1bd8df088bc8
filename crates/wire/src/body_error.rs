//! Errors of response bodies.

/// A response body that is not a list, or not a stream of events. Names the place and what was expected there, never
/// the content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body ends too early.
    #[error("the body ends in the middle, after {bytes} bytes")]
    Truncated {
        /// Length of the received part.
        bytes: usize,
    },
    /// The body is not the JSON of a list.
    #[error("expected {expected} at byte {at}")]
    Syntax {
        /// Byte position.
        at: usize,
        /// The expected token or value.
        expected: &'static str,
    },
    /// A `Table`, the representation that kubectl prints.
    #[error("expected a list, got a Table, which has no objects")]
    Table,
    /// A `Status` with a successful HTTP code.
    #[error("expected a list, got a Status")]
    Status,
    /// An object without items.
    #[error("expected a list, got an object without items (kind {kind:?})")]
    NotAList {
        /// Its kind; empty if it has none.
        kind: String,
    },
    /// An object in protobuf has a field that this release does not know: the server is newer.
    #[error("an object has a field that this release does not know; request JSON")]
    UnknownFields,
    /// An event of type ERROR without a `Status`.
    #[error("the server sent an ERROR event without a Status")]
    ErrorWithoutStatus,
}
