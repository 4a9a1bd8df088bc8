//! Wire formats of the Kubernetes API.
//!
//! Object keys, resource versions, selectors, options, `Status`, list and watch framing, encoded objects, and the trait
//! [`ListWatch`] that an informer reads from. The crate has no tokio runtime, no sockets and no clock, so that tests need
//! only bytes.
//!
//! The central type is [`Object`]: one version of one object, with its identity decoded and its content as the bytes the
//! server sent.

// Time arithmetic saturates: clippy.toml lists the rejected operations. Tests may panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::disallowed_methods))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod body_error;
mod decode_cache;
mod error;
mod field_path;
mod fields;
mod heap_size;
mod identity;
mod json;
mod kept_views;
mod key;
mod kind;
mod labels;
mod limits;
mod list_body;
mod list_watch;
mod media_type;
mod object;
mod omissions;
mod options;
mod owner;
mod pack;
mod protobuf;
mod prune;
mod query;
mod saved;
mod selector;
mod shards;
mod status;
mod status_body;
#[doc(hidden)]
pub mod sync;
mod uid;
mod version;
mod watch_body;

pub use body_error::BodyError;
pub use error::ListWatchError;
pub use field_path::FieldPath;
pub use field_path::FieldPathError;
pub use field_path::FieldStep;
pub use fields::FieldPaths;
pub use heap_size::HeapSize;
pub use identity::Malformed;
pub use json_patch::Patch as JsonPatch;
pub use kept_views::View;
pub use kept_views::ViewId;
pub use key::ObjectKey;
pub use key::ParseKeyError;
pub use kind::Kind;
pub use kind::Origin;
pub use labels::Labels;
pub use limits::Limits;
pub use list_body::ListSplitter;
pub use list_watch::Bookmark;
pub use list_watch::BoxFuture;
pub use list_watch::ListMeta;
pub use list_watch::ListPart;
pub use list_watch::ListStream;
pub use list_watch::ListWatch;
pub use list_watch::WatchEvent;
pub use list_watch::WatchStream;
pub use media_type::MediaType;
pub use object::Apply;
pub use object::DecodeError;
pub use object::DecodeFailure;
pub use object::EditError;
pub use object::Object;
pub use omissions::Omission;
pub use omissions::Omissions;
pub use options::ListOptions;
pub use options::VersionMatch;
pub use options::WatchOptions;
pub use owner::Owner;
pub use pack::PackStats;
pub use pack::PackUsage;
pub use pack::Packer;
pub use pack::Packing;
pub use pack::Restoring;
pub use pack::SavedDictionary;
pub use pack::Storage;
pub use prune::Prune;
pub use query::Collection;
pub use saved::RestoreError;
pub use saved::RestoredContent;
pub use saved::Restorer;
pub use saved::SavedContent;
pub use saved::save_paths;
pub use selector::FieldSelector;
pub use selector::FieldTerm;
pub use selector::LabelSelector;
pub use selector::Lookup;
pub use selector::MAX_SELECTOR_BYTES;
pub use selector::Operator;
pub use selector::Requirement;
pub use selector::SelectorError;
pub use shards::ShardRange;
pub use shards::ShardSelector;
pub use status::Cause;
pub use status::Details;
pub use status::Status;
pub use uid::Uid;
pub use version::ResourceVersion;
pub use watch_body::WatchSplitter;

// Content on disk.
#[doc(inline)]
pub use kube_informer_segments::BodySource;
pub use kube_informer_segments::DiskOptions;
#[doc(inline)]
pub use kube_informer_segments::OutsideBody;
pub use kube_informer_segments::ReadError;
pub use kube_informer_segments::SegmentFile;

/// Private parsers for the fuzz targets in `crates/fuzz`. Not part of the API.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::pack::fuzzing::unpack;
}
