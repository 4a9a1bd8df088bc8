//! Storage of objects: the [`Storage`] contract and its backends.
//!
//! The contract consists of keys, revisions and encoded documents. It has no notion of HTTP, kinds or selectors: the code that calls
//! [`guaranteed_update`] decides what is written, and the watch cache decides what is read.

mod document;
#[cfg(feature = "etcd")]
mod etcd;
mod memory;
mod stored;
mod tree;
mod update;

use std::pin::Pin;
use std::sync::{Arc, Weak};

use futures_core::Stream;
use futures_core::future::BoxFuture;

pub use document::Attributes;
pub use document::Document;
pub use document::DocumentError;
pub use document::TypeHead;
#[cfg(feature = "etcd")]
pub use etcd::EtcdError;
#[cfg(feature = "etcd")]
pub use etcd::EtcdOptions;
#[cfg(feature = "etcd")]
pub use etcd::EtcdStorage;
pub use memory::MemoryStorage;
pub use stored::Change;
pub use stored::Stored;
pub(crate) use tree::Tree;
pub(crate) use tree::apply;
pub(crate) use tree::scan;
pub use update::Update;
pub use update::UpdateError;
pub use update::Updated;
pub use update::guaranteed_update;

/// A multi-version store of documents with one global sequence of revisions.
///
/// Guarantees, checked on every backend by the contract tests:
///
/// 1. **One sequence.** Every successful write takes the next revision of one 64-bit sequence shared by all keys. The
///    sequence starts above 1 and never decreases. A failed write takes no revision.
/// 2. **Keys.** A key is a path, `/resource/namespace/name` or `/resource/name`. Keys are ordered by their bytes. A prefix
///    ends in `/`, so that `/pods/a/` never includes `/pods/ab/x`.
/// 3. **Compare and set.** `create` succeeds only if the key is absent; `update` and `delete` succeed only if the stored revision
///    is the expected one. Of two concurrent writes that expect the same revision, exactly one succeeds. The other one fails with the
///    current version.
/// 4. **Current reads are linearizable.** A read without a revision sees every write that completed before the read began, and
///    returns the revision at which it read.
/// 5. **Reads of older revisions are exact.** A read at revision `r` sees the writes up to `r` and no others. It fails with
///    [`StorageError::Compacted`] once `r` is compacted, and with [`StorageError::Future`] if `r` is not reached yet.
/// 6. **Changes.** `watch(prefix, after)` yields every change under the prefix with a revision above `after`, exactly once and in order.
///    It fails if `after` is compacted, and a stream that falls behind compaction ends with the same error. A delete is a change without
///    `current` and has its own revision.
/// 7. **Followers** receive the same changes in the same order, before the write completes: after a write at `r`, every follower has
///    received `r` (backends over a network may rely on `progress` instead).
/// 8. **Compaction** removes versions that are not visible at or after the given revision. The newest version of each key stays.
pub trait Storage: Send + Sync + 'static {
    /// Returns the revision of the newest write.
    fn current_revision(&self) -> BoxFuture<'_, Result<u64, StorageError>>;

    /// Returns the current document, or `None`.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Stored>>, StorageError>>;

    /// Returns a range of documents in key order.
    fn list<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<Page, StorageError>>;

    /// Stores a document under a key that does not exist.
    fn create<'a>(
        &'a self,
        key: &'a str,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>>;

    /// Replaces the document whose revision is `expected`.
    fn update<'a>(
        &'a self,
        key: &'a str,
        expected: u64,
        document: Document,
    ) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>>;

    /// Removes the document whose revision is `expected`. Returns its last content at the revision of the delete.
    fn delete<'a>(&'a self, key: &'a str, expected: u64) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>>;

    /// Returns the changes under `prefix` with a revision above `after`.
    fn watch<'a>(&'a self, prefix: &'a str, after: u64) -> BoxFuture<'a, Result<ChangeStream, StorageError>>;

    /// Notifies `follower` of the state under `prefix` and then of every change, until it is dropped.
    fn follow<'a>(
        &'a self,
        prefix: &'a str,
        follower: Weak<dyn Follower>,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Removes versions that are not visible at or after `revision`.
    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Returns the size of the store in bytes, for metrics.
    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>>;
}

/// A stream of changes in commit order. Ends after the first error.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Result<Arc<Change>, StorageError>> + Send>>;

/// Receives changes from a store, in order, one call at a time.
///
/// The memory backend makes these calls while it commits, so that a write completes only after all followers have received it.
/// Implementations hold locks only briefly, never block and never call the store.
pub trait Follower: Send + Sync {
    /// Called with the whole state under the prefix, in key order, at a revision. It replaces everything received before.
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>);

    /// Called with one change under the prefix.
    fn change(&self, change: &Arc<Change>);

    /// Called when the follower has received every change under the prefix up to this revision.
    fn progress(&self, revision: u64);

    /// Called when everything at or below this revision is compacted.
    fn compacted(&self, revision: u64);

    /// Called when the connection to the store broke. A `reset` follows after it is restored.
    fn lost(&self, cause: &str);
}

/// The range and the revision of a read.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// The prefix of the keys; ends in `/`.
    pub prefix: String,
    /// The first key to return; `None` for the first key of the prefix.
    pub start: Option<String>,
    /// The revision to read at; `None` for the current one.
    pub at: Option<u64>,
    /// The most documents to return; zero for all.
    pub limit: usize,
}

/// The result of a read.
#[derive(Debug, Clone)]
pub struct Page {
    /// The documents, in key order.
    pub items: Vec<Arc<Stored>>,
    /// The number of documents of the range that follow the last item.
    pub remaining: usize,
    /// The revision of the read.
    pub revision: u64,
}

/// The error of a request to a store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// No document has this key.
    #[error("no object is stored under this key")]
    NotFound,
    /// The key of a `create` exists; contains the current document.
    #[error("an object is already stored under this key at revision {}", .0.revision)]
    Exists(Arc<Stored>),
    /// The stored revision is not the expected one; contains the current document.
    #[error("the stored object is at revision {}, not at the expected one: read it again and retry", .0.revision)]
    Conflict(Arc<Stored>),
    /// The revision is compacted.
    #[error("revision is compacted, the oldest readable one is {oldest}: read the current state")]
    Compacted {
        /// The smallest revision that can still be read.
        oldest: u64,
    },
    /// The revision is newer than the newest write.
    #[error("revision is in the future, the current one is {current}: retry later")]
    Future {
        /// The newest revision.
        current: u64,
    },
    /// The backend failed.
    #[error("storage failed: {message}")]
    Internal {
        /// The failure, without its cause.
        message: String,
        /// The cause, if the backend reported one.
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
}

impl StorageError {
    /// Returns an internal error without a cause.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::Internal { message: message.into(), source: None }
    }
}
