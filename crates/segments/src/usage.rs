//! How much memory a store uses, and for what.

/// Memory and disk space that a [`SegmentStore`](crate::SegmentStore) uses, in bytes.
///
/// [`total`](Self::total) adds up to the memory that the store has allocated, [`disk`](Self::disk) to the length of its file;
/// the rest of the fields says what they are used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Bodies in use in segments in memory, with their headers.
    pub live: usize,
    /// Bodies that were dropped or moved, in segments in memory that are not freed yet.
    pub garbage: usize,
    /// Room at the ends of segments in memory.
    pub unused: usize,
    /// Slots and tables.
    pub tables: usize,
    /// Bodies on disk that are in memory, too, because they were written or read lately.
    pub cached: usize,
    /// Number of segments, in memory and on disk.
    pub segments: usize,
    /// Bodies in use on disk.
    pub disk_live: usize,
    /// Bodies on disk that were dropped or moved, in segments that are not freed yet.
    pub disk_garbage: usize,
    /// Free space in the file.
    pub disk_unused: usize,
}

impl Usage {
    /// All bytes in memory.
    pub fn total(&self) -> usize {
        self.live + self.garbage + self.unused + self.tables + self.cached
    }

    /// All bytes on disk.
    pub fn disk(&self) -> usize {
        self.disk_live + self.disk_garbage + self.disk_unused
    }
}
