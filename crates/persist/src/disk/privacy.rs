//! Permissions of a cache directory and its files.
//!
//! A directory with only our files is repaired, because permissions change unintentionally: Kubernetes makes
//! everything in a volume accessible to the `fsGroup` of a pod each time it mounts the volume. A directory with other
//! files in it may have been named by mistake, and is refused.

use super::{directory::LOCK_FILE, platform::NotPrivate};
use crate::file_name::FileName;
use std::{
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

const OTHERS: u32 = 0o077;

/// Checks whether [`repair`] may be called. Changes nothing.
pub(crate) fn check(directory: &Path) -> io::Result<Result<(), NotPrivate>> {
    let mode = fs::metadata(directory)?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(Ok(()));
    }
    for entry in fs::read_dir(directory)? {
        if !is_ours(&entry?)? {
            return Ok(Err(NotPrivate { mode }));
        }
    }
    Ok(Ok(()))
}

/// Removes the permissions of other users from the directory and from our files in it.
pub(crate) fn repair(directory: &Path) -> io::Result<Result<(), NotPrivate>> {
    let mode = fs::metadata(directory)?.permissions().mode() & 0o7777;
    let mut repaired = restrict(directory, 0o700);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if is_ours(&entry)? {
            repaired = repaired.and_then(|()| restrict(&entry.path(), 0o600));
        }
    }
    match repaired {
        // Another user owns it.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Err(NotPrivate { mode })),
        repaired => repaired.map(Ok),
    }
}

fn is_ours(entry: &fs::DirEntry) -> io::Result<bool> {
    let name = entry.file_name();
    let has_our_name = name.to_str().is_some_and(|name| name == LOCK_FILE || FileName::parse(name).is_some());
    Ok(has_our_name && entry.file_type()?.is_file())
}

fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & OTHERS == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}
