//! The memory of an informer.

/// Memory that the cache of an informer uses, in bytes.
///
/// The categories add up to what the cache has allocated, without
///
/// - changes that are queued, and events that handlers have not received yet;
/// - objects and snapshots that only their readers still hold, except the packed content of these objects;
/// - decoded values, and the heap of index values of types of the user;
/// - the tables of zstd, about a megabyte for an informer that packs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// Number of cached objects.
    pub objects: usize,
    /// Records: the identity of each object, without its key.
    pub records: usize,
    /// Keys of the objects.
    pub keys: usize,
    /// Label sets, each once.
    pub labels: usize,
    /// Controlling owners, each once.
    pub owners: usize,
    /// Values of indexed fields, each once.
    pub fields: usize,
    /// Views that are kept, with their heap as [`HeapSize`](crate::HeapSize) says.
    pub views: usize,
    /// Search trees and indexes.
    pub trees: usize,
    /// Content of the objects.
    pub content: usize,
    /// Packed content that no object has any more. Compaction removes it.
    pub garbage: usize,
    /// Room for more packed content.
    pub unused: usize,
    /// Where the packed content of each object is, and buffers.
    pub tables: usize,
    /// Dictionaries, and samples for the next one.
    pub dictionaries: usize,
}

impl MemoryUsage {
    /// All bytes.
    pub fn total(&self) -> usize {
        let structure =
            self.records + self.keys + self.labels + self.owners + self.fields + self.views + self.trees;
        structure + self.content + self.garbage + self.unused + self.tables + self.dictionaries
    }
}
