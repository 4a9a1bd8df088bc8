//! The header of a log: format, generation, salt, and the pairs that the log belongs to.
//!
//! ```text
//! magic 8 | format u32 | checksum of these u32     every format begins with these 16 bytes
//! length u32 | checksum u32                        of the rest
//! flags u8 | generation u64 | salt 32 | name | number of pairs u32 | name, value …
//! if encrypted: an empty text, sealed with the bytes above as context
//! ```

use crate::{
    belongs_to::BelongsTo,
    checksum::Checksums,
    codec::{Decoder, put_bytes, put_u32, put_u64},
    discarded::Discarded,
    disk::{Disk, DiskFile},
    seal::{EncryptionKey, OVERHEAD, Purpose, Sealing},
};
use std::io;

/// The format that this version writes and reads.
pub(crate) const FORMAT: u32 = 1;
/// The length of the beginning that all formats share.
pub(crate) const PREAMBLE: usize = 16;
/// The length of the part that says how long the rest is.
const LENGTHS: usize = 8;
const MAGIC: [u8; 8] = *b"kinflog\n";
const SALT: usize = 32;
const ENCRYPTED: u8 = 1;

/// The header of one generation of a log.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) belongs_to: BelongsTo,
    pub(crate) generation: u64,
    pub(crate) is_encrypted: bool,
    pub(crate) salt: [u8; SALT],
    /// Proves that a key is the right one.
    proof: Vec<u8>,
    /// The bytes that the proof authenticates.
    proven: Vec<u8>,
}

impl Header {
    /// Makes the header of a new generation with a new salt, and its bytes.
    pub(crate) fn create<D: Disk>(
        disk: &D,
        name: &str,
        belongs_to: &BelongsTo,
        generation: u64,
        key: Option<&EncryptionKey>,
    ) -> io::Result<(Self, Vec<u8>)> {
        let mut salt = [0; SALT];
        disk.fill_random(&mut salt)?;
        let mut content = vec![if key.is_some() { ENCRYPTED } else { 0 }];
        put_u64(&mut content, generation);
        content.extend_from_slice(&salt);
        put_bytes(&mut content, name.as_bytes());
        put_u32(&mut content, u32::try_from(belongs_to.pairs().len()).expect("fewer than 2³² pairs"));
        for (name, value) in belongs_to.pairs() {
            put_bytes(&mut content, name.as_bytes());
            put_bytes(&mut content, value.as_bytes());
        }
        let (proven, mut proof) = (content.clone(), Vec::new());
        if let Some(key) = key {
            Sealing::new(key, &salt).seal(disk, Purpose::Header, &proven, &mut proof, 0)?;
            content.extend_from_slice(&proof);
        }
        let mut bytes = MAGIC.to_vec();
        put_u32(&mut bytes, FORMAT);
        let checksum = crc32fast::hash(&bytes);
        put_u32(&mut bytes, checksum);
        put_u32(&mut bytes, u32::try_from(content.len()).expect("a header below 4 GiB"));
        put_u32(&mut bytes, crc32fast::hash(&content));
        bytes.extend_from_slice(&content);
        let (name, belongs_to, is_encrypted) = (name.to_owned(), belongs_to.clone(), key.is_some());
        Ok((Self { name, belongs_to, generation, is_encrypted, salt, proof, proven }, bytes))
    }

    /// Reads the header at the beginning of a log, and returns its length.
    pub(crate) fn read(bytes: &[u8]) -> Result<(Self, usize), Discarded> {
        match format_of(bytes) {
            Some(FORMAT) => {}
            Some(format) => return Err(Discarded::OtherFormat { format }),
            None => return Err(Discarded::Damaged { at: 0 }),
        }
        Self::decode(bytes).ok_or(Discarded::Damaged { at: PREAMBLE as u64 })
    }

    /// Reads the header of a log and nothing else. `None` if that is not possible.
    pub(crate) fn of_file(file: &impl DiskFile) -> Option<Self> {
        let mut start = [0; PREAMBLE + LENGTHS];
        file.read_at(&mut start, 0).ok()?;
        let length = Decoder::new(&start[PREAMBLE..]).u32()? as usize;
        let length = start.len().saturating_add(length);
        // A damaged length must not cost memory.
        if length as u64 > file.size().ok()? {
            return None;
        }
        let mut bytes = vec![0; length];
        file.read_at(&mut bytes, 0).ok()?;
        Self::read(&bytes).ok().map(|(header, _)| header)
    }

    fn decode(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut from = Decoder::new(bytes.get(PREAMBLE..)?);
        let (len, checksum) = (from.u32()?, from.u32()?);
        let content = from.take(len as usize)?;
        if crc32fast::hash(content) != checksum {
            return None;
        }
        let mut from = Decoder::new(content);
        let is_encrypted = match from.u8()? {
            0 => false,
            ENCRYPTED => true,
            _ => return None,
        };
        let (generation, salt) = (from.u64()?, from.array()?);
        let name = from.text()?.to_owned();
        let mut belongs_to = BelongsTo::new();
        for _ in 0..from.u32()? {
            let (name, value) = (from.text()?, from.text()?);
            belongs_to = belongs_to.with(name, value);
        }
        let proven = content[..content.len() - from.remaining()].to_vec();
        let proof = from.take(if is_encrypted { OVERHEAD } else { 0 })?.to_vec();
        let header = Self { name, belongs_to, generation, is_encrypted, salt, proof, proven };
        from.is_empty().then_some((header, PREAMBLE + LENGTHS + content.len()))
    }

    /// Returns the encryption of the log, after the proof has shown that `key` is the right one; `None` without encryption.
    pub(crate) fn sealing(&self, key: Option<&EncryptionKey>) -> Result<Option<Sealing>, Discarded> {
        match (self.is_encrypted, key) {
            (false, None) => Ok(None),
            (false, Some(_)) => Err(Discarded::NotEncrypted),
            (true, None) => Err(Discarded::KeyMissing),
            (true, Some(key)) => {
                let sealing = Sealing::new(key, &self.salt);
                let opened = sealing.open(Purpose::Header, &self.proven, &mut self.proof.clone()).is_some();
                if opened { Ok(Some(sealing)) } else { Err(Discarded::WrongKey) }
            }
        }
    }

    pub(crate) fn checksums(&self) -> Checksums {
        Checksums::new(&self.salt)
    }
}

/// Returns the format of a log, `None` if the bytes do not begin like a log of any format.
pub(crate) fn format_of(bytes: &[u8]) -> Option<u32> {
    let mut from = Decoder::new(bytes.get(..PREAMBLE)?);
    let (magic, format, checksum) = (from.array()?, from.u32()?, from.u32()?);
    (magic == MAGIC && crc32fast::hash(&bytes[..PREAMBLE - 4]) == checksum).then_some(format)
}
