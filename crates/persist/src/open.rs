//! Opening of one log.

use crate::{
    belongs_to::BelongsTo,
    bodies::Bodies,
    cache_dir::Owned,
    discarded::Discarded,
    disk::{Directory, Disk, DiskFile},
    file_name::{FileName, Stem},
    frame::Place,
    header::{FORMAT, Header},
    log::{Log, SharedLog},
    restored::Restored,
    rewrite,
    scan::scan,
    seal::EncryptionKey,
    writer::Writer,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// How many threads read one log.
const MAX_READERS: usize = 4;
/// The least that one of them reads.
const MIN_READ: usize = 4 << 20;

/// A log that was opened, and what was in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedLog<D: Disk = Directory> {
    /// The state at the newest intact position. `None` if the log is new, nothing was committed, or it was discarded.
    pub restored: Option<Restored<D>>,
    /// Why the previous log was not used, if it was not.
    pub discarded: Option<Discarded>,
    /// Continues behind the restored position, or begins anew.
    pub log: Log<D>,
}

/// A log that can be continued.
struct Continued<D: Disk> {
    restored: Option<Restored<D>>,
    generation: u64,
    writer: Writer<D>,
    live: u64,
}

pub(crate) fn open<D: Disk>(
    directory: Arc<Owned<D>>,
    name: &str,
    belongs_to: &BelongsTo,
    key: Option<&EncryptionKey>,
) -> io::Result<OpenedLog<D>> {
    let stem = Stem::new(name);
    directory.reserve(&stem)?;
    let shared = SharedLog {
        directory,
        stem,
        name: name.to_owned(),
        belongs_to: belongs_to.clone(),
        key: key.cloned(),
        current: AtomicU64::new(0),
        is_rewriting: AtomicBool::new(false),
    };
    let discarded = match continued(&shared)? {
        Some(Ok(found)) => {
            shared.current.store(found.generation, Ordering::Release);
            remove_leftovers(&shared, Some(found.generation))?;
            let Continued { restored, generation, writer, live } = found;
            let is_new = restored.is_none();
            let log = Log { shared: Arc::new(shared), generation, writer, live, is_new };
            return Ok(OpenedLog { restored, discarded: None, log });
        }
        Some(Err(discarded)) => Some(discarded),
        None => None,
    };
    let generation = remove_leftovers(&shared, None)?;
    let writer = rewrite::create(&shared, generation)?;
    rewrite::switch(&shared, generation)?;
    remove_leftovers(&shared, Some(generation))?;
    let log = Log { shared: Arc::new(shared), generation, writer, live: 0, is_new: true };
    Ok(OpenedLog { restored: None, discarded, log })
}

/// Opens the current generation. `None` if there is no log.
fn continued<D: Disk>(shared: &SharedLog<D>) -> io::Result<Option<Result<Continued<D>, Discarded>>> {
    let disk = shared.directory.disk();
    let log = match disk.open(&shared.stem.log()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let buffer = match read_whole(&log) {
        Err(error) => return Ok(Some(Err(Discarded::CannotRead { message: error.to_string() }))),
        Ok(buffer) => buffer,
    };
    match continue_with(shared, log, buffer) {
        Ok(continued) => Ok(Some(Ok(continued?))),
        Err(Discarded::OtherFormat { format }) if format > FORMAT => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            format!("{} has format {format}, this version reads up to {FORMAT}", shared.stem.log()),
        )),
        Err(discarded) => Ok(Some(Err(discarded))),
    }
}

/// The inner error is one of cutting the files, after everything was read.
fn continue_with<D: Disk>(
    shared: &SharedLog<D>,
    log: D::File,
    mut buffer: Vec<u8>,
) -> Result<io::Result<Continued<D>>, Discarded> {
    let disk = shared.directory.disk();
    let (header, start) = Header::read(&buffer)?;
    if header.name != shared.name {
        return Err(Discarded::OtherOwner { pair: "name".into() });
    }
    if let Some(pair) = header.belongs_to.difference(&shared.belongs_to) {
        return Err(Discarded::OtherOwner { pair: pair.into() });
    }
    let sealing = header.sealing(shared.key.as_ref())?;
    let bodies = disk.open(&shared.stem.bodies(header.generation));
    let bodies_len = bodies.as_ref().map_or(0, |bodies| bodies.size().unwrap_or(0));
    let checksums = header.checksums();
    let scan = scan(&mut buffer, start, bodies_len, checksums, sealing.as_ref())?;
    let bodies = bodies.map(Arc::new).map_err(|_| Discarded::BodiesMissing)?;
    let log_len = buffer.len();
    let restored = scan.position.map(|position| Restored {
        position,
        dictionaries: scan.dictionaries,
        objects: scan.objects,
        bodies: Bodies { file: bodies.clone(), checksums, sealing: sealing.clone() },
        dropped_bytes: (log_len - scan.log_end) as u64,
        buffer,
    });
    let (log_end, bodies_end, generation) = (scan.log_end as u64, scan.bodies_end, header.generation);
    let end = Place { at: log_end, previous: scan.checksum, synced: scan.synced };
    let cut = || {
        if log_end < log_len as u64 {
            log.truncate(log_end)?;
        }
        if bodies_end < bodies_len {
            bodies.truncate(bodies_end)?;
        }
        Ok(())
    };
    Ok(cut().map(|()| {
        let writer = Writer::new(disk.clone(), (log, end), (bodies, bodies_end), checksums, sealing);
        Continued { restored, generation, writer, live: scan.live }
    }))
}

/// Removes the files of other generations, and returns the number of the next one.
fn remove_leftovers<D: Disk>(shared: &SharedLog<D>, current: Option<u64>) -> io::Result<u64> {
    let disk = shared.directory.disk();
    let mut next = 1;
    for file in disk.list()? {
        let is_leftover = match FileName::parse(&file) {
            Some(FileName::NewLog(stem)) => stem == shared.stem,
            Some(FileName::Bodies(stem, generation)) if stem == shared.stem => {
                next = next.max(generation.saturating_add(1));
                // Without a current generation they are removed after the switch to the next one.
                current.is_some_and(|current| current != generation)
            }
            _ => false,
        };
        if is_leftover {
            disk.remove(&file)?;
        }
    }
    Ok(next)
}

/// Reads a file. A large one is read by several threads, because filling new memory takes longer than the copy.
fn read_whole<F: DiskFile>(file: &F) -> io::Result<Vec<u8>> {
    let len = usize::try_from(file.size()?).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut buffer = vec![0; len];
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get().min(MAX_READERS));
    let part = len.div_ceil(threads).max(MIN_READ);
    std::thread::scope(|scope| {
        let mut parts = buffer.chunks_mut(part).enumerate();
        let first = parts.next();
        let readers: Vec<_> = parts
            .map(|(index, bytes)| scope.spawn(move || file.read_at(bytes, (index * part) as u64)))
            .collect();
        let mut result = first.map_or(Ok(()), |(_, bytes)| file.read_at(bytes, 0));
        for reader in readers {
            let read = reader.join().unwrap_or_else(|_| Err(io::Error::other("a reader panicked")));
            result = result.and(read);
        }
        result
    })?;
    Ok(buffer)
}
