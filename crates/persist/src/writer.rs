//! Appends to the two files of one generation.

use crate::{
    bodies::Bodies,
    checksum::Checksums,
    disk::{Disk, DiskFile},
    entry,
    frame::{self, FrameKind, Place},
    position::Position,
    restored::SavedContent,
    seal::{Purpose, Sealing},
};
use std::{io, sync::Arc};

/// Bytes that are buffered before they are written.
const BUFFER: usize = 1 << 20;
/// Most bytes that are buffered while writes fail. With more, the log is broken.
const MAX_UNWRITTEN: usize = 16 << 20;

/// Appends to the two files of one generation.
///
/// 1. Bodies are written before the entries that refer to them, entries before the position that covers them.
/// 2. If a write fails, the rest stays in the buffers, and the next write repeats it at the same offset: no
///    later position covers less than all changes before it.
/// 3. If that is impossible, the writer is broken, and every later commit fails.
#[derive(Debug)]
pub(crate) struct Writer<D: Disk> {
    disk: Arc<D>,
    log: D::File,
    bodies: Arc<D::File>,
    checksums: Checksums,
    sealing: Option<Sealing>,
    /// Where the log ends, as far as writes have succeeded.
    end: Place,
    /// Where the bodies end.
    bodies_end: u64,
    /// Entries that are not in the log yet.
    entries: Vec<u8>,
    /// Bodies that are not in the file yet: those that begin at `bodies_end`.
    pending_bodies: Vec<u8>,
    /// Why the last write failed. The commit returns it.
    failure: Option<io::Error>,
    is_broken: bool,
}

impl<D: Disk> Writer<D> {
    /// Appends to files that end at these offsets.
    pub(crate) fn new(
        disk: Arc<D>,
        (log, end): (D::File, Place),
        (bodies, bodies_end): (Arc<D::File>, u64),
        checksums: Checksums,
        sealing: Option<Sealing>,
    ) -> Self {
        let (entries, pending_bodies) = (Vec::new(), Vec::new());
        let (failure, is_broken) = (None, false);
        Self {
            disk,
            log,
            bodies,
            checksums,
            sealing,
            end,
            bodies_end,
            entries,
            pending_bodies,
            failure,
            is_broken,
        }
    }

    pub(crate) fn bodies(&self) -> Bodies<D> {
        Bodies { file: self.bodies.clone(), checksums: self.checksums, sealing: self.sealing.clone() }
    }

    pub(crate) fn put(&mut self, key: &str, identity: &[u8], tag: u64, content: &[u8]) {
        if self.is_broken {
            return;
        }
        let longest = key.len().max(identity.len()).max(content.len());
        let Ok(len) = u32::try_from(content.len()) else { return self.break_by_size() };
        if u32::try_from(longest).is_err() {
            return self.break_by_size();
        }
        let from = self.pending_bodies.len();
        let at = self.bodies_end + from as u64;
        self.pending_bodies.extend_from_slice(content);
        if let Some(sealing) = &self.sealing {
            let context = at.to_le_bytes();
            if let Err(error) =
                sealing.seal(&*self.disk, Purpose::Body, &context, &mut self.pending_bodies, from)
            {
                return self.break_by(error);
            }
        }
        let checksum = self.checksums.of(at, &self.pending_bodies[from..]);
        entry::put(&mut self.entries, key, identity, &SavedContent { tag, len, at, checksum });
        self.write_if_full();
    }

    pub(crate) fn delete(&mut self, key: &str) {
        if self.is_broken {
            return;
        }
        if u32::try_from(key.len()).is_err() {
            return self.break_by_size();
        }
        entry::delete(&mut self.entries, key);
        self.write_if_full();
    }

    pub(crate) fn dictionary(&mut self, id: u32, bytes: &[u8]) {
        if self.is_broken {
            return;
        }
        if u32::try_from(bytes.len()).is_err() {
            return self.break_by_size();
        }
        entry::dictionary(&mut self.entries, id, bytes);
        self.write_if_full();
    }

    /// Writes everything, and a position that covers it.
    pub(crate) fn commit(&mut self, position: &Position) -> io::Result<()> {
        if self.is_broken {
            return Err(self.broken());
        }
        // Bytes that could not be written before are written now.
        self.failure = None;
        self.write_bodies()?;
        let uncovered = self.entries.len();
        entry::position(&mut self.entries, self.bodies_end, position);
        let written = self.write_entries(FrameKind::Commit);
        if written.is_err() {
            self.entries.truncate(uncovered);
        }
        written
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.bodies.sync()?;
        self.log.sync()?;
        self.end.synced = self.end.at;
        Ok(())
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// How many bytes both files have, with what is buffered.
    pub(crate) fn total(&self) -> u64 {
        self.end.at + self.bodies_end + (self.entries.len() + self.pending_bodies.len()) as u64
    }

    fn write_if_full(&mut self) {
        let buffered = self.entries.len() + self.pending_bodies.len();
        if buffered > BUFFER && self.failure.is_none() {
            let written = self.write_bodies().and_then(|()| self.write_entries(FrameKind::Changes));
            self.failure = written.err();
        } else if buffered > MAX_UNWRITTEN {
            self.is_broken = true;
            (self.entries, self.pending_bodies) = (Vec::new(), Vec::new());
        }
    }

    fn write_bodies(&mut self) -> io::Result<()> {
        if self.pending_bodies.is_empty() {
            return Ok(());
        }
        self.bodies.write_at(&self.pending_bodies, self.bodies_end)?;
        self.bodies_end += self.pending_bodies.len() as u64;
        self.pending_bodies.clear();
        Ok(())
    }

    fn write_entries(&mut self, kind: FrameKind) -> io::Result<()> {
        let (sealing, checksums) = (self.sealing.as_ref(), self.checksums);
        let (frame, checksum) =
            frame::encode(&*self.disk, kind, self.end, &self.entries, checksums, sealing)?;
        if let Err(error) = self.log.write_at(&frame, self.end.at) {
            // A part of this frame may be in the file. It must not stay behind a shorter one.
            if self.log.truncate(self.end.at).is_err() {
                self.is_broken = true;
            }
            return Err(error);
        }
        self.end.at += frame.len() as u64;
        self.end.previous = checksum;
        self.entries.clear();
        Ok(())
    }

    fn break_by_size(&mut self) {
        self.break_by(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "an object above 4 GiB cannot be persisted",
        ));
    }

    fn break_by(&mut self, error: io::Error) {
        self.failure = Some(error);
        self.is_broken = true;
    }

    fn broken(&mut self) -> io::Error {
        self.failure.take().unwrap_or_else(|| io::Error::other("the log is broken after a failed write"))
    }
}
