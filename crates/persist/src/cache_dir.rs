//! An open cache directory.

use crate::{
    belongs_to::BelongsTo,
    disk::{
        Directory, Disk, DiskFile,
        platform::{self, NotPrivate},
    },
    file_name::{FileName, Stem},
    header::{FORMAT, Header, PREAMBLE, format_of},
    open::{self, OpenedLog},
    open_error::OpenError,
    seal::EncryptionKey,
};
use std::{
    collections::HashSet,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// An open cache directory. Its lock is held until it and all its logs are dropped.
pub struct CacheDir<D: Disk = Directory> {
    owned: Arc<Owned<D>>,
}

/// A directory, its lock, and which of its logs are open.
pub(crate) struct Owned<D: Disk> {
    disk: Arc<D>,
    open: Mutex<HashSet<Stem>>,
    _lock: D::Lock,
}

impl<D: Disk> Owned<D> {
    pub(crate) fn disk(&self) -> &Arc<D> {
        &self.disk
    }

    /// Notes that a log is open. It cannot be opened again until [`close`](Self::close).
    pub(crate) fn reserve(&self, stem: &Stem) -> io::Result<()> {
        if self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(stem.clone()) {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, format!("{} is open already", stem.log())))
    }

    pub(crate) fn close(&self, stem: &Stem) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(stem);
    }
}

impl CacheDir {
    /// Opens a directory, and creates it with mode 0700 if it is missing.
    ///
    /// If other users have access to the directory or to the files of the cache, their permissions are removed. If the
    /// directory has other files, too, nothing is changed, and the directory is refused.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref().to_owned();
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let not_private = |NotPrivate { mode }| OpenError::NotPrivate { path: path.clone(), mode };
        let directory = Directory::create(&path).map_err(failed)?;
        platform::check(&path).map_err(failed)?.map_err(not_private)?;
        let opened = Self::open_at(directory, path.clone())?;
        platform::repair(&path).map_err(failed)?.map_err(not_private)?;
        Ok(opened)
    }
}

impl<D: Disk> CacheDir<D> {
    /// Opens a directory on a disk.
    ///
    /// # Errors
    ///
    /// See [`OpenError`].
    pub fn on(disk: D) -> Result<Self, OpenError> {
        Self::open_at(disk, PathBuf::new())
    }

    fn open_at(disk: D, path: PathBuf) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Io { path: path.clone(), source };
        let Some(lock) = disk.lock().map_err(failed)? else { return Err(OpenError::Locked { path }) };
        for file in disk.list().map_err(failed)? {
            if let Some(format) = newer_format(&disk, &file).map_err(failed)? {
                return Err(OpenError::NewerFormat { path, file, format, supported: FORMAT });
            }
        }
        let owned = Owned { disk: Arc::new(disk), open: Mutex::default(), _lock: lock };
        Ok(Self { owned: Arc::new(owned) })
    }

    /// Opens a log, and creates it if it is missing.
    ///
    /// A log that cannot be used is replaced by an empty one; [`OpenedLog::discarded`] says why. An incomplete end is
    /// cut off, and leftovers of an interrupted rewrite are removed.
    ///
    /// # Errors
    ///
    /// If the disk fails, or if the log is open already (`ResourceBusy`).
    pub fn open_log(
        &self,
        name: &str,
        belongs_to: &BelongsTo,
        key: Option<&EncryptionKey>,
    ) -> io::Result<OpenedLog<D>> {
        open::open(self.owned.clone(), name, belongs_to, key)
    }

    /// Returns the pairs that a log was written for. `None` if it is missing, or if its header cannot be read.
    #[must_use]
    pub fn belongs_to(&self, name: &str) -> Option<BelongsTo> {
        let log = self.owned.disk().open(&Stem::new(name).log()).ok()?;
        Header::of_file(&log).filter(|header| header.name == name).map(|header| header.belongs_to)
    }
}

/// Returns the format of a log if it is newer than this version.
fn newer_format<D: Disk>(disk: &D, file: &str) -> io::Result<Option<u32>> {
    if !matches!(FileName::parse(file), Some(FileName::Log(_))) {
        return Ok(None);
    }
    let mut preamble = [0; PREAMBLE];
    match disk.open(file)?.read_at(&mut preamble, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| format_of(&preamble).filter(|format| *format > FORMAT)),
    }
}

impl<D: Disk> fmt::Debug for CacheDir<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheDir").finish_non_exhaustive()
    }
}
