//! How the body of an answer fails to be what was asked for.

/// A body that is not a list, or not a stream of events. Says where and what, never what stands there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body ended too early.
    #[error("the body ends in the middle, after {bytes} bytes")]
    Truncated {
        /// How much arrived.
        bytes: usize,
    },
    /// The body is not the JSON of a list.
    #[error("expected {expected} at byte {at}")]
    Syntax {
        /// Where.
        at: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A table for people.
    #[error("expected a list, got a Table; a table has no objects to keep")]
    Table,
    /// A `Status` under a code that says success.
    #[error("expected a list, got a Status")]
    Status,
    /// Something without items.
    #[error("expected a list, got an object without items (kind {kind:?})")]
    NotAList {
        /// What it says it is; empty if it does not say.
        kind: String,
    },
    /// An event of type ERROR that does not say which.
    #[error("the server reports an error and does not say which")]
    ErrorWithoutStatus,
}
