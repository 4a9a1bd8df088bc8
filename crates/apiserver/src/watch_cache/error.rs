//! Why a read was not answered. HTTP knows these only at the edge.

use crate::storage::StorageError;

/// Why a GET, LIST or WATCH was not answered, or why a watch ended with an error in its stream.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// The version asked for was not reached in time.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLarge {
        /// The version asked for.
        requested: u64,
        /// The newest version there is.
        current: u64,
        /// Seconds to wait before another try; the store itself gives none.
        retry_after: Option<u32>,
    },
    /// The exact version of a list is no longer kept.
    #[error("The resourceVersion for the provided list is too old.")]
    ListExpired,
    /// The version of a continue token is no longer kept. The replacement goes on from the same key at the latest version.
    #[error(
        "The provided continue parameter is too old to display a consistent list result. Start a new list without \
         it, or go on with the continue token of this answer: the rest is then read at the latest version, and \
         what changed in between may be missing or be there twice."
    )]
    ContinueExpired {
        /// The token to go on with.
        replacement: String,
    },
    /// A watch asked for changes that are no longer in the window.
    #[error("too old resource version: {requested} ({oldest})")]
    WatchExpired {
        /// The version asked for.
        requested: u64,
        /// The oldest version a watch can start from.
        oldest: u64,
    },
    /// The same, from the store of a resource without a cache.
    #[error("The resourceVersion for the provided watch is too old.")]
    StorageWatchExpired,
    /// The continue token cannot be read.
    #[error("invalid continue token: {0}")]
    InvalidContinue(String),
    /// A continue token came together with a version.
    #[error("specifying resource version is not allowed when using continue")]
    ContinueWithVersion,
    /// The cache is being filled.
    #[error("storage is (re)initializing{}", .cause.as_deref().map(|c| format!(": {c}")).unwrap_or_default())]
    NotReady {
        /// Seconds to wait before another try.
        retry_after: u32,
        /// Why, if known.
        cause: Option<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
