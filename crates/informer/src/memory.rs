//! The memory of an informer.

/// Memory and disk space that the cache of an informer uses, in bytes.
///
/// The categories of memory add up to what the cache has allocated, those of the disk to the length of its file. Not counted are
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
    /// Content of the objects, in memory.
    pub content: usize,
    /// Packed content in memory that no object has any more. Compaction removes it.
    pub garbage: usize,
    /// Room for more packed content.
    pub unused: usize,
    /// Where the packed content of each object is, and buffers.
    pub tables: usize,
    /// Content on disk that is in memory, too, because it was written or read lately.
    pub cached: usize,
    /// Dictionaries, and samples for the next one.
    pub dictionaries: usize,
    /// Content of the objects, on disk ([`Storage::Disk`](crate::Storage::Disk)), or of restored objects that is still in the
    /// file of the saved cache.
    pub disk_content: usize,
    /// Content there that no object has any more. Compaction removes it.
    pub disk_garbage: usize,
    /// Free space in the file.
    pub disk_unused: usize,
}

impl MemoryUsage {
    /// All bytes in memory.
    pub fn total(&self) -> usize {
        let structure =
            self.records + self.keys + self.labels + self.owners + self.fields + self.views + self.trees;
        let content = self.content + self.garbage + self.unused + self.tables + self.cached;
        structure + content + self.dictionaries
    }

    /// All bytes on disk.
    pub fn disk(&self) -> usize {
        self.disk_content + self.disk_garbage + self.disk_unused
    }
}
