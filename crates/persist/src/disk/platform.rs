//! The operations that differ between operating systems. Permissions are those of Unix; elsewhere a directory inherits them.

pub(crate) use system::{check, create_directory, private, read_at, repair, sync_directory, write_at};

/// The mode of a directory that is accessible to others and must not be changed.
#[derive(Debug)]
pub(crate) struct NotPrivate {
    pub(crate) mode: u32,
}

#[cfg(unix)]
mod system {
    pub(crate) use super::super::privacy::{check, repair};
    use std::{
        fs::{DirBuilder, File, OpenOptions},
        io,
        os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
        path::Path,
    };

    pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)
    }

    /// Lets only the owner read and write a file that is created.
    pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options.mode(0o600)
    }

    pub(crate) fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
        file.read_exact_at(bytes, at)
    }

    pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        file.write_all_at(bytes, at)
    }

    pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

#[cfg(windows)]
mod system {
    use super::NotPrivate;
    use std::{
        fs::{self, File, OpenOptions},
        io,
        os::windows::fs::FileExt,
        path::Path,
    };

    pub(crate) fn check(_directory: &Path) -> io::Result<Result<(), NotPrivate>> {
        Ok(Ok(()))
    }

    pub(crate) fn repair(_directory: &Path) -> io::Result<Result<(), NotPrivate>> {
        Ok(Ok(()))
    }

    pub(crate) fn create_directory(path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub(crate) fn read_at(file: &File, mut bytes: &mut [u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let read = file.seek_read(bytes, at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (bytes, at) = (&mut bytes[read..], at + read as u64);
        }
        Ok(())
    }

    pub(crate) fn write_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = file.seek_write(bytes, at)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            (bytes, at) = (&bytes[written..], at + written as u64);
        }
        Ok(())
    }

    /// A directory cannot be synced; NTFS keeps the order of names in its journal.
    pub(crate) fn sync_directory(_path: &Path) -> io::Result<()> {
        Ok(())
    }
}
