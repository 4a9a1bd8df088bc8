//! Why a directory was refused.

use std::{io, path::PathBuf};

/// Why a cache directory was not opened. None of its logs was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another process uses it.
    #[error(
        "cache directory {} is in use by another process: stop that process, or give each process its own directory",
        path.display()
    )]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// A newer version of this program wrote it.
    #[error(
        "{file} in cache directory {} has format {format}, this version reads up to {supported}: use the newer \
         version, or remove the directory to start with an empty cache",
        path.display()
    )]
    NewerFormat {
        /// The directory.
        path: PathBuf,
        /// The file in it.
        file: String,
        /// Its format.
        format: u32,
        /// The newest format that this version reads.
        supported: u32,
    },
    /// Other users may read or change it, and it cannot be made private.
    #[error(
        "cache directory {} has mode {mode:o} and is not only for its owner: name a directory that does not exist yet \
         (it is created with mode 700), or run chmod 700",
        path.display()
    )]
    NotPrivate {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The operating system refused.
    #[error("cannot open cache directory {}: {source}", path.display())]
    Io {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}
