//! The part of a store that is on disk.

use crate::{
    SegmentFile, blocks::BLOCK, cache::Cache, cipher::Cipher, file::private_file, on_disk::DiskFile,
    store::lock,
};
use std::{
    collections::HashSet,
    fmt, io,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

/// Opens the file of a store.
type Open = dyn Fn() -> io::Result<Box<dyn SegmentFile>> + Send + Sync;

/// The smallest buffer: open segments are in it, and must not fill it.
const MIN_BUFFER: usize = 1 << 20;
/// Bytes of closed segments in memory that are written together.
pub(crate) const SPILL: usize = 256 << 10;

/// Where a [`SegmentStore`](crate::SegmentStore) on disk has its file, and how much of it is in memory.
#[derive(Clone)]
pub struct DiskOptions {
    place: Place,
    pub(crate) cache_bytes: usize,
    pub(crate) buffer_bytes: usize,
}

#[derive(Clone)]
enum Place {
    Directory(PathBuf),
    Open(Arc<Open>),
}

impl DiskOptions {
    /// A file in a directory. It has no name there, so that no other process can open it and it ends with this process. It is
    /// opened when the first segment is written.
    pub fn in_directory(directory: impl Into<PathBuf>) -> Self {
        Self::at(Place::Directory(directory.into()))
    }

    /// A file that `open` returns. `open` is called until it succeeds.
    pub fn with_file(open: impl Fn() -> io::Result<Box<dyn SegmentFile>> + Send + Sync + 'static) -> Self {
        Self::at(Place::Open(Arc::new(open)))
    }

    fn at(place: Place) -> Self {
        Self { place, cache_bytes: 8 << 20, buffer_bytes: 16 << 20 }
    }

    /// Sets the size of the cache in memory for bodies that were written or read recently; 8 MiB by default.
    #[must_use]
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Sets the limit of bytes in memory that are not written yet; beyond it [`room`](crate::SegmentStore::room) waits.
    /// 16 MiB by default, and 1 MiB at least.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes.max(MIN_BUFFER);
        self
    }
}

/// A file in the directory for temporary files. If that directory is in memory (`tmpfs`), no memory is saved.
impl Default for DiskOptions {
    fn default() -> Self {
        Self::in_directory(std::env::temp_dir())
    }
}

impl PartialEq for DiskOptions {
    fn eq(&self, other: &Self) -> bool {
        let same_place = match (&self.place, &other.place) {
            (Place::Directory(own), Place::Directory(others)) => own == others,
            (Place::Open(own), Place::Open(others)) => Arc::ptr_eq(own, others),
            _ => false,
        };
        same_place && (self.cache_bytes, self.buffer_bytes) == (other.cache_bytes, other.buffer_bytes)
    }
}

impl fmt::Debug for DiskOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cache_bytes, buffer_bytes, .. } = self;
        write!(f, "DiskOptions(cache of {cache_bytes} bytes, buffer of {buffer_bytes} bytes)")
    }
}

/// The part of a store that is on disk.
pub(crate) struct Disk {
    pub(crate) options: DiskOptions,
    pub(crate) cache: Cache,
    pub(crate) room: Room,
    /// Bytes of closed segments in memory: what can be written.
    pub(crate) closed: AtomicUsize,
    file: OnceLock<Arc<DiskFile>>,
    /// Free blocks about which the last step of compaction could do nothing.
    tolerated_free: AtomicUsize,
}

impl Disk {
    pub(crate) fn new(options: DiskOptions) -> Self {
        Self {
            cache: Cache::new(options.cache_bytes),
            options,
            room: Room::default(),
            closed: AtomicUsize::new(0),
            file: OnceLock::new(),
            tolerated_free: AtomicUsize::new(0),
        }
    }

    /// The file, which is opened by the first call. One thread calls this at a time.
    pub(crate) fn open(&self) -> io::Result<&Arc<DiskFile>> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let cipher = Cipher::new()?;
        let file = match &self.options.place {
            Place::Directory(directory) => private_file(directory)?,
            Place::Open(open) => open()?,
        };
        let file = DiskFile { file, blocks: Default::default(), cipher };
        Ok(self.file.get_or_init(|| Arc::new(file)))
    }

    /// Cuts off the end of the file that is not in use.
    pub(crate) fn trim(&self) {
        if let Some(file) = self.file.get() {
            file.blocks.trim(|bytes| file.file.set_len(bytes));
        }
    }

    /// Bytes of the file.
    pub(crate) fn file_bytes(&self) -> usize {
        self.file.get().map_or(0, |file| usize::try_from(file.blocks.bytes()).unwrap_or(usize::MAX))
    }

    /// The number of free blocks if there are so many that the file should become shorter.
    pub(crate) fn is_sparse(&self) -> Option<u32> {
        let free = self.file.get()?.blocks.too_many_free()?;
        (free as usize > self.tolerated_free.load(Relaxed)).then_some(free)
    }

    /// Compaction can do nothing about the free blocks.
    pub(crate) fn tolerate_free(&self) {
        let free = self.file.get().and_then(|file| file.blocks.too_many_free());
        self.tolerated_free.store(free.map_or(0, |free| free as usize + SPILL / BLOCK), Relaxed);
    }

    /// Segments have changed: compaction may be able to do something about free blocks again.
    pub(crate) fn changed(&self) {
        self.tolerated_free.store(0, Relaxed);
    }
}

/// Slots of bodies that could not be read.
#[derive(Default)]
pub(crate) struct Lost {
    count: AtomicUsize,
    slots: Mutex<HashSet<u32>>,
}

impl Lost {
    pub(crate) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.len() > 0 && lock(&self.slots).contains(&slot)
    }

    /// Returns whether the body was not lost before.
    pub(crate) fn insert(&self, slot: u32) -> bool {
        let mut slots = lock(&self.slots);
        let new = slots.insert(slot);
        self.count.store(slots.len(), Relaxed);
        new
    }

    pub(crate) fn remove(&self, slot: u32) {
        if self.len() > 0 {
            let mut slots = lock(&self.slots);
            slots.remove(&slot);
            self.count.store(slots.len(), Relaxed);
        }
    }
}

/// Tasks that wait until less is in memory.
#[derive(Default)]
pub(crate) struct Room {
    waiting: Mutex<Vec<Waker>>,
}

impl Room {
    pub(crate) fn poll(&self, task: &Context<'_>, has_room: impl Fn() -> bool) -> Poll<()> {
        if !has_room() {
            let mut waiting = lock(&self.waiting);
            if !waiting.iter().any(|waker| waker.will_wake(task.waker())) {
                waiting.push(task.waker().clone());
            }
            drop(waiting);
            // Looked at again: what changed before the waker was there did not wake it.
            if !has_room() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    pub(crate) fn wake(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        waiting.into_iter().for_each(Waker::wake);
    }
}
