//! An API server with true LIST and WATCH semantics that starts in milliseconds inside a test.

mod client;
mod continue_token;
mod controllers;
mod custom;
mod delegate;
mod engine;
mod faults;
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod managed;
mod metrics;
mod patch;
mod protobuf;
mod registry;
mod schema;
mod server;
mod serving;
mod status;
mod storage;
mod verbs;
mod watch_cache;

pub use crate::http::Verb;
pub use delegate::Gates;
pub use faults::Fault;
pub use faults::FaultRule;
pub use faults::Faults;
pub use server::ApiServer;
pub use server::Builder;
pub use server::Limits;
pub use server::LocalServer;
pub use server::StartError;
pub use server::Tls;
pub use server::TlsError;
pub use server::TokenError;
pub use server::Tokens;
pub use storage::Attributes;
pub use storage::Change;
pub use storage::ChangeStream;
pub use storage::Document;
pub use storage::DocumentError;
#[cfg(feature = "etcd")]
pub use storage::EtcdError;
#[cfg(feature = "etcd")]
pub use storage::EtcdOptions;
#[cfg(feature = "etcd")]
pub use storage::EtcdStorage;
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
pub use watch_cache::CacheOptions;
pub use watch_cache::CacheStats;
pub use watch_cache::EventType;
pub use watch_cache::Format;
pub use watch_cache::ListAnswer;
pub use watch_cache::ListRequest;
pub use watch_cache::ReadError;
pub use watch_cache::Resource;
pub use watch_cache::RevisionMatch;
pub use watch_cache::RevisionOption;
pub use watch_cache::Scope;
pub use watch_cache::WatchCache;
pub use watch_cache::WatchEvent;
pub use watch_cache::WatchItem;
pub use watch_cache::WatchRequest;
pub use watch_cache::WatchStream;
