//! A disk that records every operation, to make the files as they are after a crash at any of them.

use kube_informer_persist::{Disk, DiskFile, MemoryDisk, MemoryFile};
use std::{
    collections::{BTreeMap, HashMap},
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// An operation of a [`RecordingDisk`]. A number stands for a file, whatever its name is.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    Create(String, usize),
    Rename(String, String, usize),
    Remove(String),
    SyncNames,
    Write(usize, u64, Vec<u8>),
    Truncate(usize, u64),
    Sync(usize),
    /// The test noted something here.
    Note(Note),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// The commit of a state begins.
    Attempted(usize),
    /// It has succeeded.
    Committed(usize),
    /// Everything up to a state was synced.
    Synced(usize),
}

/// A disk in memory that records what happens to it.
#[derive(Clone, Default)]
pub(crate) struct RecordingDisk {
    disk: MemoryDisk,
    journal: Arc<Mutex<Journal>>,
}

#[derive(Default)]
struct Journal {
    operations: Vec<Operation>,
    files: usize,
    names: HashMap<String, usize>,
}

pub(crate) struct RecordingFile {
    file: MemoryFile,
    number: usize,
    journal: Arc<Mutex<Journal>>,
}

fn record<T>(journal: &Mutex<Journal>, change: impl FnOnce(&mut Journal) -> T) -> T {
    change(&mut journal.lock().unwrap_or_else(PoisonError::into_inner))
}

impl RecordingDisk {
    pub(crate) fn note(&self, note: Note) {
        record(&self.journal, |journal| journal.operations.push(Operation::Note(note)));
    }

    pub(crate) fn operations(&self) -> Vec<Operation> {
        record(&self.journal, |journal| journal.operations.clone())
    }

    fn file(&self, file: MemoryFile, number: usize) -> RecordingFile {
        RecordingFile { file, number, journal: self.journal.clone() }
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
        let file = self.disk.create(name)?;
        let number = record(&self.journal, |journal| {
            journal.files += 1;
            journal.names.insert(name.to_owned(), journal.files);
            journal.operations.push(Operation::Create(name.to_owned(), journal.files));
            journal.files
        });
        Ok(self.file(file, number))
    }

    fn open(&self, name: &str) -> io::Result<RecordingFile> {
        let file = self.disk.open(name)?;
        Ok(self.file(file, record(&self.journal, |journal| journal.names[name])))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)?;
        record(&self.journal, |journal| {
            let number = journal.names.remove(from).expect("recorded");
            journal.names.insert(to.to_owned(), number);
            journal.operations.push(Operation::Rename(from.to_owned(), to.to_owned(), number));
        });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)?;
        record(&self.journal, |journal| journal.operations.push(Operation::Remove(name.to_owned())));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        record(&self.journal, |journal| journal.operations.push(Operation::SyncNames));
        Ok(())
    }

    fn fill_random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.disk.fill_random(bytes)
    }
}

impl RecordingFile {
    fn record(&self, operation: Operation) {
        record(&self.journal, |journal| journal.operations.push(operation));
    }
}

impl DiskFile for RecordingFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_at(bytes, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.record(Operation::Write(self.number, at, bytes.to_vec()));
        self.file.write_at(bytes, at)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.record(Operation::Truncate(self.number, len));
        self.file.truncate(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.record(Operation::Sync(self.number));
        Ok(())
    }
}

/// Files by number, and names of files.
#[derive(Default)]
struct Files {
    contents: HashMap<usize, Vec<u8>>,
    names: BTreeMap<String, usize>,
}

impl Files {
    fn rename(&mut self, operation: &Operation) {
        match operation {
            Operation::Create(name, number) => {
                self.names.insert(name.clone(), *number);
            }
            Operation::Rename(from, to, number) => {
                self.names.remove(from);
                self.names.insert(to.clone(), *number);
            }
            Operation::Remove(name) => {
                self.names.remove(name);
            }
            _ => {}
        }
    }

    fn write(&mut self, operation: &Operation) {
        match operation {
            Operation::Write(number, at, bytes) => {
                let (file, at) = (self.contents.entry(*number).or_default(), *at as usize);
                let end = at + bytes.len();
                if file.len() < end {
                    file.resize(end, 0);
                }
                file[at..end].copy_from_slice(bytes);
            }
            Operation::Truncate(number, len) => {
                self.contents.entry(*number).or_default().truncate(*len as usize);
            }
            _ => {}
        }
    }

    fn into_disk(self) -> MemoryDisk {
        let files = self.names.into_iter().map(|(name, number)| {
            let bytes = self.contents.get(&number).cloned().unwrap_or_default();
            (name, bytes)
        });
        MemoryDisk::with_files(files.collect::<Vec<_>>())
    }
}

/// A write of which only the first bytes happened.
fn part_of(operation: &Operation, random: &mut fastrand::Rng) -> Operation {
    match operation {
        Operation::Write(number, at, bytes) => {
            Operation::Write(*number, *at, bytes[..random.usize(..=bytes.len())].to_vec())
        }
        other => other.clone(),
    }
}

/// The files after the process was killed in the last of these operations.
pub(crate) fn after_kill(operations: &[Operation], random: &mut fastrand::Rng) -> MemoryDisk {
    let mut files = Files::default();
    for (index, operation) in operations.iter().enumerate() {
        files.rename(operation);
        match index + 1 == operations.len() {
            true => files.write(&part_of(operation, random)),
            false => files.write(operation),
        }
    }
    files.into_disk()
}

/// The files after power was lost behind the last of these operations: of what was not synced, any part is lost.
pub(crate) fn after_power_loss(operations: &[Operation], random: &mut fastrand::Rng) -> MemoryDisk {
    let mut files = Files::default();
    let mut synced = HashMap::new();
    for (index, operation) in operations.iter().enumerate() {
        if let Operation::Sync(number) = operation {
            synced.insert(*number, index);
        }
    }
    let names_synced = operations.iter().rposition(|operation| matches!(operation, Operation::SyncNames));
    for (index, operation) in operations.iter().enumerate() {
        if names_synced.is_some_and(|synced| index < synced) || random.bool() {
            files.rename(operation);
        }
        let (Operation::Write(number, ..) | Operation::Truncate(number, _)) = operation else { continue };
        let is_synced = synced.get(number).is_some_and(|synced| index < *synced);
        match random.u8(..8) {
            0..6 => files.write(operation),
            _ if is_synced => files.write(operation),
            6 => files.write(&part_of(operation, random)),
            _ => {}
        }
    }
    files.into_disk()
}
