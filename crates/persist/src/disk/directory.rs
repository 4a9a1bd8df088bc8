//! A real directory.

use super::{Disk, DiskFile, platform};
use ring::rand::{SecureRandom, SystemRandom};
use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
};

/// The file whose lock is the lock of the directory.
pub(crate) const LOCK_FILE: &str = "lock";

/// A directory of the file system, readable by its owner only.
///
/// [`CacheDir::open`](crate::CacheDir::open) is the usual way to use one.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Files are opened for reading, and nothing is created, changed or removed.
    read_only: bool,
}

impl Directory {
    /// Creates the directory with mode 0700 if it is missing, with its parents.
    ///
    /// # Errors
    ///
    /// If the directory cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        match platform::create_directory(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
            created => created?,
        }
        Ok(Self { path, read_only: false })
    }

    /// An existing directory from which is only read: every operation that changes something fails.
    #[must_use]
    pub fn read_only(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), read_only: true }
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn writable(&self, name: &str) -> io::Result<PathBuf> {
        if self.read_only {
            return Err(io::Error::new(
                io::ErrorKind::ReadOnlyFilesystem,
                "the directory was opened for reading",
            ));
        }
        Ok(self.path.join(name))
    }
}

impl Disk for Directory {
    type File = File;
    type Lock = File;

    fn lock(&self) -> io::Result<Option<File>> {
        let path = self.writable(LOCK_FILE)?;
        let mut options = OpenOptions::new();
        let file = platform::private(options.create(true).truncate(false).write(true)).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let path = self.writable(name)?;
        // A file that is open elsewhere keeps its content: it is unlinked, not truncated.
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        platform::private(OpenOptions::new().read(true).write(true).create_new(true)).open(path)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let path = self.path.join(name);
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name} is not a regular file")));
        }
        OpenOptions::new().read(true).write(!self.read_only).open(path)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.writable(from)?, self.writable(to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.writable(name)?)
    }

    fn sync(&self) -> io::Result<()> {
        platform::sync_directory(&self.path)
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        SystemRandom::new().fill(bytes).map_err(|_| io::Error::other("the system has no random bytes"))
    }
}

impl DiskFile for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        platform::read_at(self, bytes, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        platform::write_at(self, bytes, at)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
