//! An API server with true LIST and WATCH semantics that starts in milliseconds inside a test.

mod http;
mod patch;
mod registry;
mod schema;
mod status;
mod storage;
mod verbs;
mod watch_cache;

pub use storage::Attributes;
pub use storage::Change;
pub use storage::ChangeStream;
pub use storage::Document;
pub use storage::DocumentError;
pub use storage::Follower;
pub use storage::MemoryStorage;
pub use storage::Page;
pub use storage::Range;
pub use storage::Storage;
pub use storage::StorageError;
pub use storage::Stored;
pub use storage::TypeHead;
pub use storage::Update;
pub use storage::UpdateError;
pub use storage::Updated;
pub use storage::guaranteed_update;

pub use watch_cache::Bookmark;
pub use watch_cache::EventType;
pub use watch_cache::Format;
pub use watch_cache::ListAnswer;
pub use watch_cache::ListRequest;
pub use watch_cache::ReadError;
pub use watch_cache::Resource;
pub use watch_cache::RevisionMatch;
pub use watch_cache::RevisionOption;
pub use watch_cache::Scope;
pub use watch_cache::WatchEvent;
pub use watch_cache::WatchItem;
pub use watch_cache::WatchRequest;
