//! How much memory a store uses, and for what.

/// Memory that a [`SegmentStore`](crate::SegmentStore) uses, in bytes.
///
/// [`total`](Self::total) adds up to what the store has allocated; the rest of the fields says what it is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Bodies in use, with their headers.
    pub live: usize,
    /// Bodies that were dropped or moved, in segments that are not compacted yet.
    pub garbage: usize,
    /// Room at the ends of segments.
    pub unused: usize,
    /// Slots and tables.
    pub tables: usize,
    /// Number of segments.
    pub segments: usize,
}

impl Usage {
    /// All bytes.
    pub fn total(&self) -> usize {
        self.live + self.garbage + self.unused + self.tables
    }
}
