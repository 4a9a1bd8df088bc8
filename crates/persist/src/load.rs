//! Reading of one log, without changing it.

use crate::{
    bodies::Bodies,
    discarded::Discarded,
    disk::{Disk, DiskFile},
    file_name::Stem,
    frame::Place,
    header::Header,
    restored::Restored,
    scan::scan,
    seal::{EncryptionKey, Sealing},
};
use std::{io, sync::Arc};

/// How many threads read one log.
const MAX_READERS: usize = 4;
/// The least that one of them reads.
const MIN_READ: usize = 4 << 20;

/// The state of a log, and where its files go on.
pub(crate) struct Loaded<D: Disk> {
    /// `None` if nothing was committed.
    pub(crate) restored: Option<Restored<D>>,
    /// Where the log ends behind the restored position.
    pub(crate) end: Place,
    pub(crate) log_len: u64,
    pub(crate) bodies: Arc<D::File>,
    /// Where the bodies ended at that position.
    pub(crate) bodies_end: u64,
    pub(crate) bodies_len: u64,
    pub(crate) sealing: Option<Sealing>,
    /// How many bytes belong to the restored objects.
    pub(crate) live: u64,
}

/// Loads the log in `buffer`, whose header ends at `start`.
pub(crate) fn load<D: Disk>(
    disk: &D,
    stem: &Stem,
    (header, start): (&Header, usize),
    mut buffer: Vec<u8>,
    key: Option<&EncryptionKey>,
) -> Result<Loaded<D>, Discarded> {
    let sealing = header.sealing(key)?;
    let bodies = disk.open(&stem.bodies(header.generation));
    let bodies_len = bodies.as_ref().map_or(0, |bodies| bodies.size().unwrap_or(0));
    let checksums = header.checksums();
    let scan = scan(&mut buffer, start, bodies_len, checksums, sealing.as_ref())?;
    let bodies = bodies.map(Arc::new).map_err(|_| Discarded::BodiesMissing)?;
    let log_len = buffer.len() as u64;
    let end = Place { at: scan.log_end as u64, previous: scan.checksum, synced: scan.synced };
    let restored = scan.position.map(|position| Restored {
        position,
        dictionaries: scan.dictionaries,
        objects: scan.objects,
        bodies: Bodies { file: bodies.clone(), checksums, sealing: sealing.clone() },
        dropped_bytes: log_len - end.at,
        buffer,
    });
    let (bodies_end, live) = (scan.bodies_end, scan.live);
    Ok(Loaded { restored, end, log_len, bodies, bodies_end, bodies_len, sealing, live })
}

/// Reads a file. A large one is read by several threads, because filling new memory takes longer than the copy.
pub(crate) fn read_whole<F: DiskFile>(file: &F) -> io::Result<Vec<u8>> {
    let len = usize::try_from(file.size()?).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut buffer = vec![0; len];
    if len <= MIN_READ {
        file.read_at(&mut buffer, 0)?;
        return Ok(buffer);
    }
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
