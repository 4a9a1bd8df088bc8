//! A file in memory that fails on demand.

use kube_informer_segments::{DiskOptions, SegmentFile};
use std::{
    io::{self, ErrorKind},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

/// The fault of the file.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// The file cannot become longer than this.
    pub(crate) full_at: Option<usize>,
    pub(crate) fail_reads: bool,
    pub(crate) fail_writes: bool,
    /// Reads and writes transfer at most this many bytes.
    pub(crate) short: Option<usize>,
    /// Writes wait until this is no longer set.
    pub(crate) hang_writes: bool,
    /// The file cannot be opened.
    pub(crate) fail_open: bool,
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    faults: Faults,
    reads: usize,
    writes: usize,
    /// Writes that wait.
    hanging: usize,
}

/// Clones are one file.
#[derive(Clone, Default)]
pub(crate) struct FaultyFile(Arc<(Mutex<State>, Condvar)>);

impl FaultyFile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    pub(crate) fn set(&self, faults: Faults) {
        self.state().faults = faults;
        self.0.1.notify_all();
    }

    pub(crate) fn options(&self) -> DiskOptions {
        let file = self.clone();
        DiskOptions::with_file(move || match file.state().faults.fail_open {
            true => Err(ErrorKind::PermissionDenied.into()),
            false => Ok(Box::new(file.clone())),
        })
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.state().bytes.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.state().bytes.len()
    }

    pub(crate) fn reads(&self) -> usize {
        self.state().reads
    }

    pub(crate) fn flip(&self, at: usize) {
        let mut state = self.state();
        let len = state.bytes.len();
        if let Some(byte) = state.bytes.get_mut(at % len.max(1)) {
            *byte ^= 0x10;
        }
    }

    /// Puts earlier bytes back.
    pub(crate) fn restore(&self, bytes: &[u8]) {
        let mut state = self.state();
        let len = state.bytes.len().min(bytes.len());
        state.bytes[..len].copy_from_slice(&bytes[..len]);
    }

    /// Waits until a write hangs.
    pub(crate) fn until_hanging(&self) {
        let mut state = self.state();
        while state.hanging == 0 {
            state = self.0.1.wait(state).unwrap();
        }
    }
}

impl SegmentFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        state.reads += 1;
        if state.faults.fail_reads {
            return Err(io::Error::other("a bad sector"));
        }
        let rest = state.bytes.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buffer.len()).min(state.faults.short.unwrap_or(usize::MAX));
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.state();
        state.writes += 1;
        state.hanging += 1;
        self.0.1.notify_all();
        while state.faults.hang_writes {
            state = self.0.1.wait(state).unwrap();
        }
        state.hanging -= 1;
        if state.faults.fail_writes {
            return Err(io::Error::other("a bad sector"));
        }
        let offset = offset as usize;
        let most = state.faults.full_at.map_or(usize::MAX, |full| full.max(state.bytes.len()));
        let len = bytes.len().min(most.saturating_sub(offset)).min(state.faults.short.unwrap_or(usize::MAX));
        if len == 0 && !bytes.is_empty() {
            return Err(ErrorKind::StorageFull.into());
        }
        if state.bytes.len() < offset + len {
            state.bytes.resize(offset + len, 0);
        }
        state.bytes[offset..offset + len].copy_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        if state.faults.fail_writes {
            return Err(io::Error::other("a bad sector"));
        }
        state.bytes.truncate(bytes as usize);
        Ok(())
    }
}
