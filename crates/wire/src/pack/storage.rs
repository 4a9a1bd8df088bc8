//! Where content is stored.

use super::Packer;
use kube_informer_segments::DiskOptions;
use std::io;

/// Where the content of cached objects is.
///
/// On disk, an object takes some hundred bytes of memory, whatever its content has: use it for Secrets, ConfigMaps and custom
/// resources that are large and seldom read. Reading content that is not among the last ones blocks for a disk read, and may
/// fail; identity, labels, indexed fields and kept views are always in memory.
///
/// The file has no name, ends with the process, and is encrypted with a key that only this process has.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Storage {
    /// In memory.
    #[default]
    Memory,
    /// In a private file, with the last ones in memory, too.
    Disk(DiskOptions),
}

impl Storage {
    /// In a private file in the directory for temporary files. Where that is in memory (`tmpfs`), nothing is gained.
    pub fn disk() -> Self {
        Self::Disk(DiskOptions::default())
    }
}

/// Content on disk.
impl Packer {
    /// Whether content is on disk.
    pub fn is_on_disk(&self) -> bool {
        self.on_disk
    }

    /// Whether compaction and repacking may block, because they read content from a file: it is on disk, or it was restored and
    /// is not in memory yet.
    pub fn may_block(&self) -> bool {
        self.bodies.may_block()
    }

    /// Whether [`spill`](Self::spill) has enough to write. Becoming so wakes the task that waits until compaction is due.
    pub fn is_spill_due(&self) -> bool {
        self.bodies.is_spill_due()
    }

    /// Writes some of the content that is only in memory to disk; this blocks. After an error everything is where it was.
    pub fn spill(&self) -> io::Result<()> {
        self.bodies.spill()
    }

    /// Resolves when there is room in memory for content that is not written to disk yet.
    pub fn room(&self) -> impl Future<Output = ()> {
        self.bodies.room()
    }

    /// Whether [`room`](Self::room) resolves at once.
    pub fn has_room(&self) -> bool {
        self.bodies.has_room()
    }

    /// Whether so much waits to be written that compaction and repacking pause.
    pub fn is_congested(&self) -> bool {
        self.bodies.is_congested()
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> usize {
        self.bodies.file_bytes()
    }

    /// The number of objects whose content could not be read ([`Object::is_content_lost`](crate::Object::is_content_lost)).
    /// One more wakes the task that waits until compaction is due.
    pub fn lost(&self) -> usize {
        self.bodies.lost()
    }
}
