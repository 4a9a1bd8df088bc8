//! Many small byte strings in a few large allocations.
//!
//! An informer keeps the encoded content of every object. One allocation for each of them costs a header, rounding and
//! fragmentation; a [`SegmentStore`] appends them to *segments* instead, large blocks that are only ever appended to.
//!
//! ```
//! use kube_informer_segments::SegmentStore;
//!
//! let store = SegmentStore::new();
//! let body = store.insert(7, b"content of an object");
//! let mut buffer = Vec::new();
//! assert_eq!(body.read(&mut buffer)?, 7);
//! assert_eq!(buffer, b"content of an object");
//! drop(body); // its bytes are garbage now
//! assert_eq!(store.usage().live, 0);
//! # Ok::<(), kube_informer_segments::ReadError>(())
//! ```
//!
//! # Compaction
//!
//! A dropped [`Body`] leaves garbage in its segment. [`SegmentStore::compact`] copies the bodies that are still in use
//! out of the segment with the largest share of garbage, then frees the segment. It works in steps of bounded size, beside
//! readers and the writer, and stops neither. A body that is held for hours moves like any other: it never keeps its
//! segment alive.
//!
//! # On disk
//!
//! [`SegmentStore::on_disk`] makes a store that writes its segments to a private file. Bodies are always inserted into segments
//! in memory; [`SegmentStore::spill`] writes the live bodies of closed ones as one segment on disk, and then lets their slots
//! point there. So a write that fails leaves everything as it was, readers of bodies in memory never wait for the disk,
//! and compaction is the same: it moves live bodies into memory, from where they are written again.
//!
//! Each body is encrypted with a key that is nowhere but in this process, and authenticated together with a number that is only
//! in memory. A reader gets the bytes that were inserted, or a [`ReadError`]: the checks find flipped bits, bytes of another body,
//! and bytes of an earlier body in the same place. Segments have blocks of 4 KiB anywhere in the file; blocks of freed segments
//! are used again, and the file becomes shorter when many are free.
//!
//! # Outside
//!
//! [`SegmentStore::adopt`] makes bodies whose bytes are read from a [`BodySource`], such as the file of a saved cache: a process
//! that starts with many bodies need not read them first. Compaction moves them into segments step by step.
//!
//! # How it works without locks for readers
//!
//! - A body has a *slot*, a word that holds its *location*: the number of a segment and an offset in it.
//! - Words of a segment are written once, before the location that points to them is published, and never change.
//! - Numbers of segments are never reused. A reader that finds the segment of a location gone loads the location again:
//!   the body has been moved.
//! - Every body in a segment is preceded by the number of its slot. Compaction walks a segment and compares: the body is
//!   live if its slot still points here. It publishes the new location by a compare-and-swap, which fails if the body
//!   was dropped in the meantime.

#![forbid(unsafe_code)]
#![warn(missing_debug_implementations)]

mod appender;
mod blocks;
mod body;
mod cache;
mod cipher;
mod compaction;
mod disk;
mod due;
mod file;
mod location;
mod on_disk;
mod outside;
mod read_error;
mod sample;
mod segment;
mod slots;
mod spill;
mod store;
mod table;
mod usage;

pub use body::Body;
pub use compaction::CompactionStep;
pub use disk::DiskOptions;
pub use file::SegmentFile;
pub use outside::BodySource;
pub use outside::OutsideBody;
pub use read_error::ReadError;
pub use store::{SegmentStore, StoreOptions};
pub use usage::Usage;
