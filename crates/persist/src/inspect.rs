//! Reading of a cache directory that another process may own.

use crate::{
    belongs_to::BelongsTo,
    discarded::Discarded,
    disk::{Directory, Disk},
    file_name::{FileName, Stem},
    header::Header,
    load::{Loaded, load, read_whole},
    restored::{Restored, SavedObject},
    seal::EncryptionKey,
};
use std::{fmt, io, path::Path};

/// How often a log is read again because a rewrite replaced it in between.
const ATTEMPTS: usize = 5;

/// The content of a log.
#[non_exhaustive]
pub struct InspectedLog<D: Disk = Directory> {
    /// The name of its file.
    pub file: String,
    /// The name with which it was opened. Empty if the header cannot be read.
    pub name: String,
    /// The pairs that it belongs to.
    pub belongs_to: BelongsTo,
    /// The number of its generation. Each rewrite makes a new one.
    pub generation: u64,
    /// Whether it is encrypted. Without the key only the header can be read.
    pub is_encrypted: bool,
    /// The length of the log in bytes.
    pub log_bytes: u64,
    /// The length of the file of bodies in bytes.
    pub bodies_bytes: u64,
    /// How many of these bytes belong to the restored objects.
    pub live_bytes: u64,
    /// The state that would be restored. All checksums of the log up to there match.
    pub restored: Option<Restored<D>>,
    /// Why it would be discarded.
    pub problem: Option<Discarded>,
}

/// Reads all logs of a directory, in the order of their files. See [`inspect_on`].
///
/// # Errors
///
/// If the directory or a file cannot be read.
pub fn inspect(path: impl AsRef<Path>, key: Option<&EncryptionKey>) -> io::Result<Vec<InspectedLog>> {
    inspect_on(&Directory::read_only(path.as_ref()), key)
}

/// Reads all logs of a directory on a disk, in the order of their files.
///
/// It takes no lock and changes nothing. While another process writes, it returns a state that this process has
/// committed.
///
/// # Errors
///
/// If the directory or a file cannot be read.
pub fn inspect_on<D: Disk>(disk: &D, key: Option<&EncryptionKey>) -> io::Result<Vec<InspectedLog<D>>> {
    let mut stems: Vec<Stem> = disk
        .list()?
        .iter()
        .filter_map(|file| match FileName::parse(file) {
            Some(FileName::Log(stem)) => Some(stem),
            _ => None,
        })
        .collect();
    stems.sort_unstable_by_key(Stem::log);
    let mut logs = Vec::new();
    for stem in stems {
        logs.extend(inspect_log(disk, &stem, key)?);
    }
    Ok(logs)
}

/// Reads one log. `None` if it was removed in the meantime.
fn inspect_log<D: Disk>(
    disk: &D,
    stem: &Stem,
    key: Option<&EncryptionKey>,
) -> io::Result<Option<InspectedLog<D>>> {
    let mut attempt = 1;
    loop {
        let opened = disk.open(&stem.log());
        let is_last = attempt == ATTEMPTS;
        match opened.and_then(|log| read_whole(&log)) {
            Ok(buffer) => {
                let inspected = InspectedLog::new(disk, stem, buffer, key);
                // A rewrite removes the bodies of the log that it has replaced.
                if is_last || inspected.problem != Some(Discarded::BodiesMissing) {
                    return Ok(Some(inspected));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            // The owner has cut off an incomplete end.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && !is_last => {}
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

impl<D: Disk> InspectedLog<D> {
    fn new(disk: &D, stem: &Stem, buffer: Vec<u8>, key: Option<&EncryptionKey>) -> Self {
        let mut inspected = Self {
            file: stem.log(),
            name: String::new(),
            belongs_to: BelongsTo::new(),
            generation: 0,
            is_encrypted: false,
            log_bytes: buffer.len() as u64,
            bodies_bytes: 0,
            live_bytes: 0,
            restored: None,
            problem: None,
        };
        let (header, start) = match Header::read(&buffer) {
            Ok(read) => read,
            Err(problem) => return Self { problem: Some(problem), ..inspected },
        };
        // Without encryption a key is not needed, and one may be given for other logs of the directory.
        let key = key.filter(|_| header.is_encrypted);
        match load(disk, stem, (&header, start), buffer, key) {
            Ok(Loaded { restored, bodies_len, live, .. }) => {
                (inspected.restored, inspected.bodies_bytes, inspected.live_bytes) =
                    (restored, bodies_len, live);
            }
            Err(problem) => inspected.problem = Some(problem),
        }
        let Header { name, belongs_to, generation, is_encrypted, .. } = header;
        Self { name, belongs_to, generation, is_encrypted, ..inspected }
    }

    /// How many bytes of both files no object needs: replaced and deleted objects, and headers.
    #[must_use]
    pub fn garbage_bytes(&self) -> u64 {
        (self.log_bytes + self.bodies_bytes).saturating_sub(self.live_bytes)
    }

    /// Reads every content and compares its checksum. Returns the objects whose content is damaged.
    ///
    /// # Errors
    ///
    /// If the operating system cannot read.
    pub fn verify(&self) -> io::Result<Vec<SavedObject>> {
        let Some(restored) = &self.restored else { return Ok(Vec::new()) };
        let mut by_place: Vec<&SavedObject> = restored.objects.iter().collect();
        by_place.sort_unstable_by_key(|object| object.content.at);
        let (mut damaged, mut buffer) = (Vec::new(), Vec::new());
        for object in by_place {
            match restored.bodies.read(&object.content, &mut buffer) {
                Ok(()) => {}
                Err(crate::ReadError::Damaged) => damaged.push(*object),
                Err(crate::ReadError::Io(error)) => return Err(error),
            }
        }
        Ok(damaged)
    }
}

/// Prints no keys, identities or contents.
impl<D: Disk> fmt::Debug for InspectedLog<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InspectedLog")
            .field("file", &self.file)
            .field("restored", &self.restored)
            .field("problem", &self.problem)
            .finish_non_exhaustive()
    }
}
