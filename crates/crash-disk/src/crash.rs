//! The files after a crash.

use crate::Operation;
use kube_informer_persist::MemoryDisk;
use std::collections::{BTreeMap, HashMap};

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
pub fn after_kill(operations: &[Operation], random: &mut fastrand::Rng) -> MemoryDisk {
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

/// The files after power was lost behind the last of these operations: any part of the operations that were not synced is lost.
pub fn after_power_loss(operations: &[Operation], random: &mut fastrand::Rng) -> MemoryDisk {
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
