//! The file operations that the format needs.

mod directory;
mod memory;
pub(crate) mod platform;
#[cfg(unix)]
mod privacy;

pub use directory::Directory;
pub use memory::MemoryDisk;
pub use memory::MemoryFile;

use std::io;

/// One directory of files, without sub-directories.
///
/// [`Directory`] is the real one, [`MemoryDisk`] one for tests. An implementation promises:
///
/// 1. A file that was opened stays readable after it was removed or replaced by a rename.
/// 2. A rename is atomic: any later `open` finds either the old file or the new one, whole.
/// 3. Bytes that were written are read by any later `read_at`, also by another process, also if this process is
///    killed. They survive a loss of power only after `sync`.
pub trait Disk: Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;
    /// Holds the lock of the directory until it is dropped.
    type Lock: Send + Sync + 'static;

    /// Acquires the lock of the directory without waiting. `None` if another holder has it.
    ///
    /// # Errors
    ///
    /// If the lock cannot be requested.
    fn lock(&self) -> io::Result<Option<Self::Lock>>;

    /// Returns the names of all files, in any order.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file that only its owner may read and write. An existing file of that name is replaced.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no file of that name, or another error of the operating system.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name, and replaces the file that has it.
    ///
    /// # Errors
    ///
    /// If the file cannot be renamed; then nothing has changed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Waits until created, renamed and removed names are on the disk.
    ///
    /// # Errors
    ///
    /// If the operating system reports a failed write.
    fn sync(&self) -> io::Result<()>;

    /// Fills a buffer with random bytes that an attacker cannot guess: they become salts and nonces.
    ///
    /// # Errors
    ///
    /// If the operating system has none.
    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()>;
}

/// A file of a [`Disk`].
pub trait DiskFile: Send + Sync + 'static {
    /// Returns the length in bytes.
    ///
    /// # Errors
    ///
    /// If the operating system does not say.
    fn size(&self) -> io::Result<u64>;

    /// Fills the whole buffer with the bytes at an offset.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` if the file ends before, or another error of the operating system.
    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()>;

    /// Writes all bytes at an offset, which is never behind the end of the file.
    ///
    /// # Errors
    ///
    /// If not everything was written, for example because the disk is full. Any part may have been written.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Cuts the file to a length.
    ///
    /// # Errors
    ///
    /// If the file cannot be cut.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Waits until everything that was written is on the disk.
    ///
    /// # Errors
    ///
    /// If the operating system reports a failed write.
    fn sync(&self) -> io::Result<()>;
}
