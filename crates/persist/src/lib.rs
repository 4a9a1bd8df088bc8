//! The on-disk format of a persisted informer cache.
//!
//! A [`CacheDir`] is a directory that one process owns. It holds one [`Log`] for each partition of an informer: an
//! ordered file of changes (*the log*) and a file of contents (*the bodies*). The log has the key and the identity of
//! each object and says where its body is, so that a cache can be restored without reading a single body.
//!
//! ```
//! use kube_informer_persist::{BelongsTo, CacheDir, MemoryDisk, Position};
//! use std::time::SystemTime;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let disk = MemoryDisk::new(); // CacheDir::open(path) uses a real directory
//! let belongs_to = BelongsTo::new().with("cluster", "1f6b").with("resource", "pods");
//!
//! let cache = CacheDir::on(disk.clone())?;
//! let mut log = cache.open_log("pods", &belongs_to, None)?.log;
//! log.put("default/a", b"identity of a", 7, b"content of a");
//! log.commit(&Position { version: "41".into(), saved_at: SystemTime::now() })?;
//! log.put("default/b", b"identity of b", 7, b"content of b"); // not committed: lost
//! drop((log, cache));
//!
//! let cache = CacheDir::on(disk)?;
//! let opened = cache.open_log("pods", &belongs_to, None)?;
//! let restored = opened.restored.expect("one committed position");
//! assert_eq!(restored.position.version, "41");
//! assert_eq!(restored.objects.len(), 1);
//! let object = &restored.objects[0];
//! assert_eq!((restored.key(object), restored.identity(object)), ("default/a", &b"identity of a"[..]));
//! let mut content = Vec::new();
//! restored.bodies.read(&object.content, &mut content)?;
//! assert_eq!(content, b"content of a");
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! 1. A restored state is the state at a position that was committed, never anything else.
//! 2. If the process is killed, it is the last committed position. If power is lost, it may be an earlier one, but
//!    not earlier than the last [`Log::sync`] or the last finished [`Rewrite`], unless the disk loses synced bytes.
//! 3. The part that was written since the last sync may be incomplete or damaged; it is dropped, and the position before
//!    it is restored. Damage in the synced part discards the log, with a reason.
//! 4. A body whose checksum does not match is an error for this body alone.
//! 5. A log that belongs to something else, has another key or another format is discarded or refused, with a reason.
//! 6. One process at a time. Another one receives [`OpenError::Locked`].
//!
//! Checksums protect against accidents, not against an attacker who can write to the directory. With an
//! [`EncryptionKey`] everything but the header is encrypted and authenticated; an attacker can then still bring back
//! an older copy.
//!
//! All calls block on the disk.

// Time arithmetic is checked: clippy.toml lists the rejected operations. Tests may panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::disallowed_methods))]
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod belongs_to;
mod bodies;
mod cache_dir;
mod checksum;
mod codec;
mod discarded;
mod disk;
mod entry;
mod file_name;
mod frame;
mod header;
mod inspect;
mod load;
mod log;
mod open;
mod open_error;
mod position;
mod restored;
mod rewrite;
mod scan;
mod seal;
mod writer;

pub use belongs_to::BelongsTo;
pub use bodies::Bodies;
pub use bodies::ReadError;
pub use cache_dir::CacheDir;
pub use discarded::Discarded;
pub use disk::Directory;
pub use disk::Disk;
pub use disk::DiskFile;
pub use disk::MemoryDisk;
pub use disk::MemoryFile;
pub use inspect::InspectedLog;
pub use inspect::inspect;
pub use inspect::inspect_on;
pub use log::Log;
pub use open::OpenedLog;
pub use open_error::OpenError;
pub use position::Position;
pub use restored::Restored;
pub use restored::SavedContent;
pub use restored::SavedObject;
pub use rewrite::Rewrite;
pub use seal::EncryptionKey;
