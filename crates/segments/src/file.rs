//! The file of a store on disk.

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
};

/// The operations of a store on its file. Implemented by [`File`]; tests implement it with faults.
///
/// Offsets are absolute, and several threads read at once.
pub trait SegmentFile: Send + Sync + 'static {
    /// Reads bytes from an offset on, and returns their number; 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes bytes at an offset, and returns their number. A file that is too short grows.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// Cuts the file off behind this many bytes.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
}

#[cfg(unix)]
impl SegmentFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(self, bytes, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        Self::set_len(self, bytes)
    }
}

#[cfg(windows)]
impl SegmentFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(self, bytes, offset)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        Self::set_len(self, bytes)
    }
}

/// A file that only this process can open: it has no name, or loses it at once.
pub(crate) fn private_file(directory: &Path) -> io::Result<Box<dyn SegmentFile>> {
    Ok(Box::new(tempfile::tempfile_in(directory)?))
}

/// Fills the buffer from an offset on.
pub(crate) fn read_exact_at(file: &dyn SegmentFile, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, at) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                at += read as u64;
                buffer = buffer.get_mut(read..).ok_or(ErrorKind::InvalidData)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all bytes from an offset on.
pub(crate) fn write_all_at(file: &dyn SegmentFile, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, at) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                bytes = bytes.get(written..).ok_or(ErrorKind::InvalidData)?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
