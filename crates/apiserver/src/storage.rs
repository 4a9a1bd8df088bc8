//! Where objects live: the contract every backend keeps, and what travels through it.
//!
//! The contract knows keys, revisions and encoded documents. It knows nothing of HTTP, kinds or selectors; what may be
//! written is decided above it ([`guaranteed_update`]), what is shown is decided by the watch cache.

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
/// Laws, checked on every backend by the contract suite:
///
/// 1. **One sequence.** Every successful write takes the next revision of one 64-bit sequence shared by all keys; the
///    sequence starts above 1 and never goes back. A write that fails takes none.
/// 2. **Keys.** A key is a path, `/resource/namespace/name` or `/resource/name`; order is the order of its bytes. A prefix
///    ends in `/`, so that `/pods/a/` never covers `/pods/ab/x`.
/// 3. **Compare and set.** `create` succeeds only if the key is absent; `update` and `delete` only if the stored revision
///    is the expected one. Of two racing writes that expect the same revision exactly one succeeds. The loser is told the
///    current version.
/// 4. **Current reads are linearizable.** A read without a revision sees every write that was answered before it began, and
///    says at which revision it read.
/// 5. **Past reads are exact.** A read at revision `r` sees the writes up to `r` and no others, until `r` is compacted; then it
///    is [`StorageError::Compacted`]. A revision not yet reached is [`StorageError::Future`].
/// 6. **Changes.** `watch(prefix, after)` gives every change under the prefix with a revision above `after`, once, in order, none left out; if
///    `after` is compacted it is refused, and a stream that falls behind compaction ends with that error. A
///    delete is a change whose `current` is absent and which has a revision of its own.
/// 7. **Followers** are told the same changes in the same order, and never later than the write is answered: who wrote at `r`
///    finds a follower at `r` or beyond (backends over a network may keep this by progress instead).
/// 8. **Compaction** forgets versions that are not visible at or after the given revision; the newest version of each live key stays.
pub trait Storage: Send + Sync + 'static {
    /// The newest revision given to a write.
    fn current_revision(&self) -> BoxFuture<'_, Result<u64, StorageError>>;

    /// One document as it is now, or `None`.
    fn get<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Arc<Stored>>, StorageError>>;

    /// A range of documents in key order.
    fn list<'a>(&'a self, range: &'a Range) -> BoxFuture<'a, Result<Page, StorageError>>;

    /// Stores a document under a key that is not taken.
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

    /// Removes the document whose revision is `expected`; the answer has its last content at the revision of the removal.
    fn delete<'a>(&'a self, key: &'a str, expected: u64) -> BoxFuture<'a, Result<Arc<Stored>, StorageError>>;

    /// Changes under `prefix` with a revision above `after`.
    fn watch<'a>(&'a self, prefix: &'a str, after: u64) -> BoxFuture<'a, Result<ChangeStream, StorageError>>;

    /// Tells `follower` the state under `prefix` and then every change, until it is dropped.
    fn follow<'a>(
        &'a self,
        prefix: &'a str,
        follower: Weak<dyn Follower>,
    ) -> BoxFuture<'a, Result<(), StorageError>>;

    /// Forgets what is not visible at or after `revision`.
    fn compact(&self, revision: u64) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Bytes it takes to keep everything, for those who look after the server.
    fn size(&self) -> BoxFuture<'_, Result<u64, StorageError>>;
}

/// Changes as they are committed. Ends after the first error.
pub type ChangeStream = Pin<Box<dyn Stream<Item = Result<Arc<Change>, StorageError>> + Send>>;

/// Who is told of changes by the store itself, in order, one call at a time.
///
/// The memory backend calls these while it commits, so that a write is answered only after everybody knows of it:
/// implementations take short locks, never block and never call the store.
pub trait Follower: Send + Sync {
    /// The whole state under the prefix, in key order, at a revision. Whatever was known before is void.
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>);

    /// One change under the prefix.
    fn change(&self, change: &Arc<Change>);

    /// Nothing under the prefix has changed up to this revision beyond what was told.
    fn progress(&self, revision: u64);

    /// Everything at or below this revision is compacted.
    fn compacted(&self, revision: u64);

    /// The connection to the store broke; a `reset` follows when it is back.
    fn lost(&self, cause: &str);
}

/// What to read: a prefix, from where, as of when, how much.
#[derive(Debug, Clone, Default)]
pub struct Range {
    /// Keys that start with this; ends in `/`.
    pub prefix: String,
    /// The first key to return, if not the first of the prefix.
    pub start: Option<String>,
    /// The revision to read at; `None` is now.
    pub at: Option<u64>,
    /// At most this many documents; zero is all.
    pub limit: usize,
}

/// What was read.
#[derive(Debug, Clone)]
pub struct Page {
    /// The documents, in key order.
    pub items: Vec<Arc<Stored>>,
    /// How many more documents of the range follow the last item.
    pub remaining: usize,
    /// The revision the read shows.
    pub revision: u64,
}

/// Why the store did not do it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StorageError {
    /// No document has this key.
    #[error("no object is stored under this key")]
    NotFound,
    /// `create` found a document; here it is.
    #[error("an object is already stored under this key at revision {}", .0.revision)]
    Exists(Arc<Stored>),
    /// The stored revision is not the expected one; here is the current document.
    #[error("the stored object is at revision {}, not at the expected one: read it again and retry", .0.revision)]
    Conflict(Arc<Stored>),
    /// The revision is no longer kept.
    #[error("revision is compacted, the oldest readable one is {oldest}: read the current state")]
    Compacted {
        /// The smallest revision that can still be read.
        oldest: u64,
    },
    /// The revision is not reached yet.
    #[error("revision is in the future, the current one is {current}: retry later")]
    Future {
        /// The newest revision.
        current: u64,
    },
    /// The backend failed.
    #[error("storage failed: {0}")]
    Internal(String),
}
