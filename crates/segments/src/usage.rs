//! How much memory a store uses, and for what.

use crate::{
    SegmentStore,
    on_disk::OnDisk,
    outside::Outside,
    segment::{Segment, WORD},
    store::Store,
};
use std::sync::{Arc, atomic::Ordering::Relaxed};

/// Memory and disk space that a [`SegmentStore`](crate::SegmentStore) uses, in bytes. Bodies outside of the store count as bodies
/// on disk.
///
/// [`total`](Self::total) adds up to the memory that the store has allocated, [`disk`](Self::disk) to the length of its file
/// while no body is outside; the rest of the fields says what they are used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Usage {
    /// Bodies in use in segments in memory, with their headers.
    pub live: usize,
    /// Bodies that were dropped or moved, in segments in memory that are not freed yet.
    pub garbage: usize,
    /// Room at the ends of segments in memory, and memory that compaction keeps for its next segments.
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

impl<C> SegmentStore<C> {
    /// The memory in use. Walks the segments: for reports, not for each object.
    pub fn usage(&self) -> Usage {
        let shared = &self.store.shared;
        let segments = shared.table.all();
        let (mut usage, mut in_file) = (Usage::default(), 0);
        for (_, segment) in segments.iter() {
            usage.segments += 1;
            let written = segment.written();
            let live = segment.live().min(written);
            let on_disk = segment.bodies_on_disk().map(OnDisk::heap_size);
            if on_disk.is_some() {
                in_file += written * WORD;
            }
            if let Some(tables) = on_disk.or_else(|| segment.bodies_outside().map(Outside::heap_size)) {
                usage.disk_live += live * WORD;
                usage.disk_garbage += (written - live) * WORD;
                usage.tables += tables;
                continue;
            }
            usage.live += live * WORD;
            usage.garbage += (written - live) * WORD;
            usage.unused += (segment.capacity() - written) * WORD;
        }
        usage.unused += shared.spare.load(Relaxed) * WORD;
        let per_segment = size_of::<Segment>() + 2 * size_of::<usize>() + size_of::<(u32, Arc<Segment>)>();
        usage.tables += shared.slots.heap_size() + usage.segments * per_segment + size_of::<Store<C>>();
        if let Some(disk) = &shared.disk {
            usage.cached = disk.cache.bytes();
            usage.disk_unused = disk.file_bytes().saturating_sub(in_file);
        }
        usage
    }
}
