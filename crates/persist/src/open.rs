//! Opening of one log.

use crate::{
    belongs_to::BelongsTo,
    cache_dir::Owned,
    discarded::Discarded,
    disk::{Directory, Disk, DiskFile},
    file_name::{FileName, Stem},
    header::{FORMAT, Header},
    load::{Loaded, load, read_whole},
    log::{Log, SharedLog},
    restored::Restored,
    rewrite,
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

/// A log that was opened, and what was in it.
#[derive(Debug)]
#[non_exhaustive]
pub struct OpenedLog<D: Disk = Directory> {
    /// The state at the newest intact position. `None` if the log is new, nothing was committed, or it was discarded.
    pub restored: Option<Restored<D>>,
    /// Why the previous log was not used, if it was not.
    pub discarded: Option<Discarded>,
    /// Continues behind the restored position, or begins a new log.
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
    buffer: Vec<u8>,
) -> Result<io::Result<Continued<D>>, Discarded> {
    let disk = shared.directory.disk();
    let (header, start) = Header::read(&buffer)?;
    if header.name != shared.name {
        return Err(Discarded::OtherOwner { pair: "name".into() });
    }
    if let Some(pair) = header.belongs_to.difference(&shared.belongs_to) {
        return Err(Discarded::OtherOwner { pair: pair.into() });
    }
    let loaded = load(&**disk, &shared.stem, (&header, start), buffer, shared.key.as_ref())?;
    let Loaded { restored, end, log_len, bodies, bodies_end, bodies_len, sealing, live } = loaded;
    let cut = || {
        if end.at < log_len {
            log.truncate(end.at)?;
        }
        if bodies_end < bodies_len {
            bodies.truncate(bodies_end)?;
        }
        Ok(())
    };
    Ok(cut().map(|()| {
        let (bodies, checksums) = ((bodies, bodies_end), header.checksums());
        let writer = Writer::new(disk.clone(), (log, end), bodies, checksums, sealing);
        Continued { restored, generation: header.generation, writer, live }
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
