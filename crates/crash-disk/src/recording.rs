//! A disk that records every operation, to make the files as they are after a crash at any of them.

use crate::{Failing, failing::Failures};
use kube_informer_persist::{Disk, DiskFile, MemoryDisk, MemoryFile};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// An operation of a [`RecordingDisk`]. A number stands for a file, whatever its name is.
#[derive(Debug, Clone)]
pub enum Operation {
    /// A file was created with this name.
    Create(String, usize),
    /// A file got the second name.
    Rename(String, String, usize),
    /// A name was removed.
    Remove(String),
    /// All names so far are on the disk.
    SyncNames,
    /// Bytes were written at an offset.
    Write(usize, u64, Vec<u8>),
    /// A file was cut to a length.
    Truncate(usize, u64),
    /// Everything that was written to the file so far is on the disk.
    Sync(usize),
    /// The test noted something here.
    Note(Note),
}

/// A note of a test between two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// The commit of a state begins.
    Attempted(usize),
    /// It has succeeded.
    Committed(usize),
    /// Everything up to a state was synced.
    Synced(usize),
}

/// A disk in memory that records its operations, and fails on request. A clone is another handle of the same disk.
#[derive(Debug, Clone, Default)]
pub struct RecordingDisk {
    disk: MemoryDisk,
    journal: Arc<Mutex<Journal>>,
    failures: Arc<Failures>,
    /// Where random bytes come from; `None` is the sequence of a [`MemoryDisk`].
    random: Option<Arc<Mutex<fastrand::Rng>>>,
}

#[derive(Debug, Default)]
struct Journal {
    operations: Vec<Operation>,
    files: usize,
    names: HashMap<String, usize>,
}

/// A file of a [`RecordingDisk`].
#[derive(Debug)]
pub struct RecordingFile {
    file: MemoryFile,
    number: usize,
    journal: Arc<Mutex<Journal>>,
    failures: Arc<Failures>,
}

fn record<T>(journal: &Mutex<Journal>, change: impl FnOnce(&mut Journal) -> T) -> T {
    change(&mut journal.lock().unwrap_or_else(PoisonError::into_inner))
}

impl RecordingDisk {
    /// A disk with these files, which are synced, and random bytes from this seed. Disks that share files must have
    /// different seeds, because the format relies on salts that never repeat.
    #[must_use]
    pub fn with_files(files: BTreeMap<String, Vec<u8>>, seed: u64) -> Self {
        let random = Some(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))));
        let disk = Self { disk: MemoryDisk::with_files(files.clone()), random, ..Self::default() };
        record(&disk.journal, |journal| {
            for (name, bytes) in files {
                let number = journal.create(&name);
                journal.operations.push(Operation::Write(number, 0, bytes));
                journal.operations.push(Operation::Sync(number));
            }
            journal.operations.push(Operation::SyncNames);
        });
        disk
    }

    /// Adds a note to the operations.
    pub fn note(&self, note: Note) {
        record(&self.journal, |journal| journal.operations.push(Operation::Note(note)));
    }

    /// Returns all operations so far.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        record(&self.journal, |journal| journal.operations.clone())
    }

    /// Returns a copy of all files.
    #[must_use]
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        self.disk.files()
    }

    /// Lets operations of one kind fail from now on, or none.
    pub fn set_failing(&self, failing: Option<Failing>) {
        self.failures.set(failing);
    }

    /// Lets writes fail after this many more bytes, as on a disk that is full. The last write is cut there.
    pub fn set_free_bytes(&self, free: u64) {
        self.disk.set_free_bytes(free);
    }

    /// Returns how many operations have failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.count()
    }

    fn file(&self, file: MemoryFile, number: usize) -> RecordingFile {
        RecordingFile { file, number, journal: self.journal.clone(), failures: self.failures.clone() }
    }
}

impl Journal {
    fn create(&mut self, name: &str) -> usize {
        self.files += 1;
        self.names.insert(name.to_owned(), self.files);
        self.operations.push(Operation::Create(name.to_owned(), self.files));
        self.files
    }
}

impl Disk for RecordingDisk {
    type File = RecordingFile;
    type Lock = <MemoryDisk as Disk>::Lock;

    fn lock(&self) -> io::Result<Option<Self::Lock>> {
        self.disk.lock()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn create(&self, name: &str) -> io::Result<RecordingFile> {
        self.failures.check(Failing::Names)?;
        let file = self.disk.create(name)?;
        Ok(self.file(file, record(&self.journal, |journal| journal.create(name))))
    }

    fn open(&self, name: &str) -> io::Result<RecordingFile> {
        let file = self.disk.open(name)?;
        Ok(self.file(file, record(&self.journal, |journal| journal.names[name])))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.failures.check(Failing::Names)?;
        self.disk.rename(from, to)?;
        record(&self.journal, |journal| {
            let number = journal.names.remove(from).expect("recorded");
            journal.names.insert(to.to_owned(), number);
            journal.operations.push(Operation::Rename(from.to_owned(), to.to_owned(), number));
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.failures.check(Failing::Names)?;
        self.disk.remove(name)?;
        record(&self.journal, |journal| journal.operations.push(Operation::Remove(name.to_owned())));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.failures.check(Failing::Syncs)?;
        record(&self.journal, |journal| journal.operations.push(Operation::SyncNames));
        Ok(())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        match &self.random {
            Some(random) => random.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes),
            None => self.disk.fill_random(bytes)?,
        }
        Ok(())
    }
}

impl RecordingFile {
    fn record(&self, operation: Operation) {
        record(&self.journal, |journal| journal.operations.push(operation));
    }

    /// Writes, and records what is in the file afterwards.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let written = self.file.write_at(bytes, at);
        let mut len = bytes.len();
        if written.is_err() {
            self.failures.failed();
            len = usize::try_from(self.file.size()?.saturating_sub(at)).map_or(len, |left| left.min(len));
        }
        let mut content = vec![0; len];
        self.file.read_at(&mut content, at)?;
        self.record(Operation::Write(self.number, at, content));
        written
    }
}

impl DiskFile for RecordingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.failures.check(Failing::Reads)?;
        self.file.read_at(bytes, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        if let Err(error) = self.failures.check(Failing::Writes) {
            self.write(&bytes[..bytes.len() / 2], at)?;
            return Err(error);
        }
        self.write(bytes, at)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.failures.check(Failing::Writes)?;
        self.record(Operation::Truncate(self.number, len));
        self.file.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.failures.check(Failing::Syncs)?;
        self.record(Operation::Sync(self.number));
        Ok(())
    }
}
