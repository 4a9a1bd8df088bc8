//! The memory of a packer.

use super::Packer;

/// Memory and disk space that a [`Packer`] uses for the objects that it packed, in bytes.
///
/// The tables of compressors and decompressors are not counted: zstd allocates them by itself, about a megabyte for an
/// informer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PackUsage {
    /// Packed content of objects, in memory.
    pub live: usize,
    /// Packed content in memory that no object has any more. Compaction removes it.
    pub garbage: usize,
    /// Room at the ends of segments.
    pub unused: usize,
    /// Where each packed content is, and buffers.
    pub tables: usize,
    /// Content on disk that is in memory, too, because it was written or read lately.
    pub cached: usize,
    /// Dictionaries, and samples for the next one.
    pub dictionaries: usize,
    /// Label sets, each once.
    pub labels: usize,
    /// Controlling owners, each once.
    pub owners: usize,
    /// Values of indexed fields, each once.
    pub fields: usize,
    /// Packed content of objects, on disk or still in the file of a saved cache.
    pub disk_live: usize,
    /// Packed content there that no object has any more. Compaction removes it.
    pub disk_garbage: usize,
    /// Free space in the file.
    pub disk_unused: usize,
}

impl PackUsage {
    /// All bytes in memory.
    pub fn total(&self) -> usize {
        let bodies = self.live + self.garbage + self.unused + self.tables + self.cached;
        bodies + self.dictionaries + self.labels + self.owners + self.fields
    }
}

impl Packer {
    /// Bytes of packed content in use, in memory or in a file.
    pub fn live_bytes(&self) -> usize {
        self.bodies.live_bytes()
    }

    /// Bytes of packed content in memory.
    pub fn resident_bytes(&self) -> usize {
        if self.may_block() { self.bodies.memory_bytes() } else { self.bodies.live_bytes() }
    }

    /// The memory in use. Walks segments and shared values: for reports, not for each object.
    pub fn usage(&self) -> PackUsage {
        let bodies = self.bodies.usage();
        let mut state = self.lock();
        let buffers: usize = state.buffers().iter().map(|buffer| buffer.capacity()).sum();
        PackUsage {
            live: bodies.live,
            garbage: bodies.garbage,
            unused: bodies.unused,
            tables: bodies.tables + buffers,
            cached: bodies.cached,
            disk_live: bodies.disk_live,
            disk_garbage: bodies.disk_garbage,
            disk_unused: bodies.disk_unused,
            dictionaries: self.bodies.context().heap_size() + state.training.heap_size(),
            labels: state.shared.label_bytes(),
            owners: state.shared.owner_bytes(),
            fields: state.shared.field_bytes(),
        }
    }
}
