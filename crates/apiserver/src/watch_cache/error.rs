//! The errors of reads. The HTTP layer maps them to statuses.

use crate::storage::StorageError;

/// The error of a GET, LIST or WATCH, or the last item of a failed watch.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The server did not reach the requested resource version in time.
    #[error("Too large resource version: {requested}, current: {current}")]
    TooLarge {
        /// The requested resource version.
        requested: u64,
        /// The newest resource version.
        current: u64,
        /// Seconds to wait before a retry; `None` if the store reported the error.
        retry_after: Option<u32>,
    },
    /// The exact resource version of a list is no longer available.
    #[error("The resourceVersion for the provided list is too old.")]
    ListExpired,
    /// The resource version of a continue token is no longer available. The replacement continues from the same key at the latest
    /// resource version.
    #[error(
        "The provided continue parameter is too old to display a consistent list result. Start a new list without \
         it, or continue with the continue token of this response: the remaining items are then read at the latest \
         resource version, and objects that changed in between may be missing or duplicated."
    )]
    ContinueExpired {
        /// The token to continue with.
        replacement: String,
    },
    /// A watch requested changes that are no longer in the window.
    #[error("too old resource version: {requested} ({oldest})")]
    WatchExpired {
        /// The requested resource version.
        requested: u64,
        /// The oldest resource version that a watch can start from.
        oldest: u64,
    },
    /// A watch of a resource without a cache requested changes that the store has compacted.
    #[error("The resourceVersion for the provided watch is too old.")]
    StorageWatchExpired,
    /// The continue token cannot be decoded.
    #[error("invalid continue token: {0}")]
    InvalidContinue(String),
    /// The request has both a continue token and a resource version.
    #[error("specifying resource version is not allowed when using continue")]
    ContinueWithVersion,
    /// The cache is not initialized.
    #[error("storage is (re)initializing{}", .cause.as_deref().map(|c| format!(": {c}")).unwrap_or_default())]
    NotReady {
        /// Seconds to wait before a retry.
        retry_after: u32,
        /// The reason, if known.
        cause: Option<String>,
    },
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
