//! Reading of contents.

use crate::{
    checksum::Checksums,
    disk::{Directory, Disk, DiskFile},
    restored::SavedContent,
    seal::{OVERHEAD, Purpose, Sealing},
};
use std::{fmt, io, sync::Arc};

/// Reads contents from the file of bodies.
///
/// It stays valid while the log is appended to, rewritten or closed. A clone reads the same file.
pub struct Bodies<D: Disk = Directory> {
    pub(crate) file: Arc<D::File>,
    pub(crate) checksums: Checksums,
    pub(crate) sealing: Option<Sealing>,
}

impl<D: Disk> Clone for Bodies<D> {
    fn clone(&self) -> Self {
        Self { file: self.file.clone(), checksums: self.checksums, sealing: self.sealing.clone() }
    }
}

impl<D: Disk> fmt::Debug for Bodies<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bodies").finish_non_exhaustive()
    }
}

/// Why one content cannot be read. Other contents are not affected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file ends before it, its checksum does not match, or it was encrypted with another key.
    #[error("the saved content is damaged")]
    Damaged,
    /// The operating system could not read it.
    #[error("the saved content cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl<D: Disk> Bodies<D> {
    /// Replaces the buffer by a content.
    ///
    /// # Errors
    ///
    /// If the content is damaged or cannot be read. The buffer is empty then.
    pub fn read(&self, content: &SavedContent, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        buffer.clear();
        let result = self.fill(content, buffer);
        if result.is_err() {
            buffer.clear();
        }
        result
    }

    fn fill(&self, content: &SavedContent, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        buffer.resize(stored_len(content.len, self.sealing.is_some()), 0);
        self.file.read_at(buffer, content.at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Damaged,
            _ => ReadError::Io(error),
        })?;
        if self.checksums.of(content.at, buffer) != content.checksum {
            return Err(ReadError::Damaged);
        }
        if let Some(sealing) = &self.sealing {
            let opened = sealing.open(Purpose::Body, &content.at.to_le_bytes(), buffer);
            let len = opened.ok_or(ReadError::Damaged)?.len();
            buffer.copy_within(ring::aead::NONCE_LEN..ring::aead::NONCE_LEN + len, 0);
            buffer.truncate(len);
        }
        Ok(())
    }
}

/// How many bytes of the file a content takes.
pub(crate) fn stored_len(len: u32, is_encrypted: bool) -> usize {
    len as usize + if is_encrypted { OVERHEAD } else { 0 }
}
