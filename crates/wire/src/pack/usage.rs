//! The memory of a packer.

use super::Packer;
use crate::{Owner, fields};

/// Memory that a [`Packer`] uses for the objects that it packed, in bytes.
///
/// The tables of compressors and decompressors are not counted: zstd allocates them by itself, about a megabyte for an
/// informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PackUsage {
    /// Packed content of objects.
    pub live: usize,
    /// Packed content that no object has any more. Compaction removes it.
    pub garbage: usize,
    /// Room at the ends of segments.
    pub unused: usize,
    /// Where each packed content is, and buffers.
    pub tables: usize,
    /// Dictionaries, and samples for the next one.
    pub dictionaries: usize,
    /// Label sets, each once.
    pub labels: usize,
    /// Controlling owners, each once.
    pub owners: usize,
    /// Values of indexed fields, each once.
    pub fields: usize,
}

impl PackUsage {
    /// All bytes.
    pub fn total(&self) -> usize {
        let bodies = self.live + self.garbage + self.unused + self.tables;
        bodies + self.dictionaries + self.labels + self.owners + self.fields
    }
}

impl Packer {
    /// Bytes of packed content in use.
    pub fn live_bytes(&self) -> usize {
        self.bodies.live_bytes()
    }

    /// The memory in use. Walks segments and shared values: for reports, not for each object.
    pub fn usage(&self) -> PackUsage {
        let bodies = self.bodies.usage();
        let state = self.lock();
        PackUsage {
            live: bodies.live,
            garbage: bodies.garbage,
            unused: bodies.unused,
            tables: bodies.tables + state.scratch.capacity(),
            dictionaries: self.bodies.context().heap_size() + state.training.heap_size(),
            labels: state.labels.heap_size(<[u8]>::len),
            owners: state.owners.heap_size(owner_size),
            fields: state.fields.heap_size(fields::heap_size),
        }
    }
}

fn owner_size(owner: &Owner) -> usize {
    let texts = [&owner.api_version, &owner.kind, &owner.name];
    size_of::<Owner>() + texts.into_iter().map(|text| 2 * size_of::<usize>() + text.len()).sum::<usize>()
}
