//! A disk in memory, for tests.

use super::{Disk, DiskFile};
use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// A disk in memory, for tests. A clone is another handle of the same disk.
///
/// Its random bytes are a sequence that is the same for each new disk, so that a test repeats.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    files: Mutex<BTreeMap<String, MemoryFile>>,
    locked: AtomicBool,
    random: AtomicU64,
    budget: Arc<Budget>,
}

/// How many more bytes can be written before the disk is full.
#[derive(Debug)]
struct Budget(AtomicU64);

impl Default for Budget {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

/// A file of a [`MemoryDisk`].
#[derive(Debug, Clone, Default)]
pub struct MemoryFile {
    bytes: Arc<Mutex<Vec<u8>>>,
    budget: Arc<Budget>,
}

/// The lock of a [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryLock {
    shared: Arc<Shared>,
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.shared.locked.store(false, Ordering::Release);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryDisk {
    /// Creates an empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a disk with these files.
    #[must_use]
    pub fn with_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let disk = Self::new();
        for (name, bytes) in files {
            let file = MemoryFile { bytes: Arc::new(Mutex::new(bytes)), budget: disk.shared.budget.clone() };
            disk.files_mut().insert(name, file);
        }
        disk
    }

    /// Returns a copy of all files.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.files_mut().iter().map(|(name, file)| (name.clone(), locked(&file.bytes).clone())).collect()
    }

    /// Lets writes fail after this many more bytes, as on a disk that is full. The last write is cut there.
    pub fn set_free_bytes(&self, free: u64) {
        self.shared.budget.0.store(free, Ordering::Relaxed);
    }

    fn files_mut(&self) -> MutexGuard<'_, BTreeMap<String, MemoryFile>> {
        locked(&self.shared.files)
    }
}

impl Disk for MemoryDisk {
    type File = MemoryFile;
    type Lock = MemoryLock;

    fn lock(&self) -> io::Result<Option<MemoryLock>> {
        let held = self.shared.locked.swap(true, Ordering::Acquire);
        Ok((!held).then(|| MemoryLock { shared: self.shared.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files_mut().keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<MemoryFile> {
        let file = MemoryFile { bytes: Arc::default(), budget: self.shared.budget.clone() };
        self.files_mut().insert(name.to_owned(), file.clone());
        Ok(file)
    }

    fn open(&self, name: &str) -> io::Result<MemoryFile> {
        self.files_mut().get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files_mut();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files_mut().remove(name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        for chunk in bytes.chunks_mut(8) {
            // SplitMix64: distinct values for distinct counters.
            let counter = self.shared.random.fetch_add(1, Ordering::Relaxed);
            let mut word = counter.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(word ^ (word >> 31)).to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

impl DiskFile for MemoryFile {
    fn size(&self) -> io::Result<u64> {
        Ok(locked(&self.bytes).len() as u64)
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        let file = locked(&self.bytes);
        let start = usize::try_from(at).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(bytes.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(file.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut file = locked(&self.bytes);
        let at = usize::try_from(at).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if at > file.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a write behind the end of the file"));
        }
        let free = self.budget.0.load(Ordering::Relaxed);
        let written = bytes.len().min(usize::try_from(free).unwrap_or(usize::MAX));
        if free != u64::MAX {
            self.budget.0.fetch_sub(written as u64, Ordering::Relaxed);
        }
        let replaced = written.min(file.len() - at);
        file[at..at + replaced].copy_from_slice(&bytes[..replaced]);
        file.extend_from_slice(&bytes[replaced..written]);
        if written < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        locked(&self.bytes).truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
