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
//! assert_eq!(body.read(&mut buffer), 7);
//! assert_eq!(buffer, b"content of an object");
//! drop(body); // its bytes are garbage now
//! assert_eq!(store.usage().live, 0);
//! ```
//!
//! # Compaction
//!
//! A dropped [`Body`] leaves garbage in its segment. [`SegmentStore::compact`] copies the bodies that are still in use
//! out of the segment with the least live content, then frees the segment. It works in steps of bounded size, beside
//! readers and the writer, and stops neither. A body that is held for hours moves like any other: it never keeps its
//! segment alive.
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

mod appender;
mod body;
mod compaction;
mod due;
mod location;
mod segment;
mod slots;
mod store;
mod table;
mod usage;

pub use body::Body;
pub use compaction::CompactionStep;
pub use store::{SegmentStore, StoreOptions};
pub use usage::Usage;
