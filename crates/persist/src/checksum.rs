//! Checksums of frames and bodies.

use crc32fast::Hasher;

/// Makes checksums that are specific for one generation of a log, and for the place in its file.
///
/// Bytes of another file, or of another place of the same file, do not pass: a file system that returns an old block
/// must not bring back an old record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksums {
    seed: u32,
}

impl Checksums {
    pub(crate) fn new(salt: &[u8]) -> Self {
        Self { seed: crc32fast::hash(salt) }
    }

    /// The checksum of bytes that are stored at an offset.
    pub(crate) fn of(self, at: u64, bytes: &[u8]) -> u32 {
        let mut hasher = Hasher::new_with_initial(self.seed);
        hasher.update(&at.to_le_bytes());
        hasher.update(bytes);
        hasher.finalize()
    }
}
