//! Operations that fail on request.

use std::{
    io,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// The operations of a disk that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// Reading files.
    Reads,
    /// Writing and cutting files. Half of each write happens.
    Writes,
    /// Syncing files and names.
    Syncs,
    /// Creating, renaming and removing files.
    Names,
}

/// The operations that fail now, and the number of failures.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    failing: Mutex<Option<Failing>>,
    count: AtomicU64,
}

impl Failures {
    pub(crate) fn set(&self, failing: Option<Failing>) {
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failing;
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a failure.
    pub(crate) fn failed(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Fails if operations of this kind do.
    pub(crate) fn check(&self, operation: Failing) -> io::Result<()> {
        if *self.failing.lock().unwrap_or_else(PoisonError::into_inner) != Some(operation) {
            return Ok(());
        }
        self.failed();
        Err(io::Error::other("simulated"))
    }
}
