//! Appending to a log.

use crate::{
    belongs_to::BelongsTo,
    cache_dir::Owned,
    disk::{Directory, Disk},
    file_name::Stem,
    position::Position,
    rewrite::Rewrite,
    seal::EncryptionKey,
    writer::Writer,
};
use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

/// Garbage below this is never a reason to rewrite.
const LITTLE: u64 = 4 << 20;

/// An open log of changes. Dropping it loses what was not committed.
///
/// Calls write to the disk when a buffer of a megabyte is full, and in [`commit`](Log::commit).
pub struct Log<D: Disk = Directory> {
    pub(crate) shared: Arc<SharedLog<D>>,
    pub(crate) generation: u64,
    pub(crate) writer: Writer<D>,
    /// The size of a log with only the live objects, when that was last known.
    pub(crate) live: u64,
    /// Nothing was committed yet: the first commit says how large the live objects are.
    pub(crate) is_new: bool,
}

/// The part that a log and its rewrite share.
pub(crate) struct SharedLog<D: Disk> {
    pub(crate) directory: Arc<Owned<D>>,
    pub(crate) stem: Stem,
    pub(crate) name: String,
    pub(crate) belongs_to: BelongsTo,
    pub(crate) key: Option<EncryptionKey>,
    /// The generation that the name of the log stands for.
    pub(crate) current: AtomicU64,
    pub(crate) is_rewriting: AtomicBool,
}

impl<D: Disk> Drop for SharedLog<D> {
    fn drop(&mut self) {
        self.directory.close(&self.stem);
    }
}

impl<D: Disk> Log<D> {
    /// Adds or replaces an object. Nothing is covered before [`commit`](Log::commit).
    pub fn put(&mut self, key: &str, identity: &[u8], tag: u64, content: &[u8]) {
        self.writer.put(key, identity, tag, content);
    }

    /// Deletes an object. It need not exist.
    pub fn delete(&mut self, key: &str) {
        self.writer.delete(key);
    }

    /// Saves a dictionary. It replaces the one with the same id.
    pub fn dictionary(&mut self, id: u32, bytes: &[u8]) {
        self.writer.dictionary(id, bytes);
    }

    /// Writes the buffered bodies and changes, and the position that covers them. After that a killed process loses none
    /// of them.
    ///
    /// # Errors
    ///
    /// If the disk is full or fails, or if a rewrite has replaced this log. The changes are kept, up to a bound, and
    /// the next commit writes them too: no position is ever written without all changes before it. Once the log
    /// [is broken](Log::is_broken), every commit fails, and only a rewrite or a new process helps.
    pub fn commit(&mut self, position: &Position) -> io::Result<()> {
        if self.shared.current.load(Ordering::Acquire) != self.generation {
            return Err(io::Error::new(
                io::ErrorKind::StaleNetworkFileHandle,
                "a rewrite has replaced this log",
            ));
        }
        self.writer.commit(position)?;
        if self.is_new {
            (self.is_new, self.live) = (false, self.writer.total());
        }
        Ok(())
    }

    /// Waits until everything that was committed is on the disk and survives a loss of power.
    ///
    /// Without it the operating system writes within some seconds, in any order. After a loss of power, the rest is
    /// dropped, and the position before it is restored.
    ///
    /// # Errors
    ///
    /// If the operating system reports a failed write.
    pub fn sync(&mut self) -> io::Result<()> {
        self.writer.sync()
    }

    /// Whether no commit will succeed any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.writer.is_broken()
    }

    /// Whether garbage makes a rewrite worthwhile: more was appended than was live.
    ///
    /// Replaced and added objects are not distinguished, because that would need all keys in memory. A log that only
    /// grows is rewritten needlessly each time it doubles.
    #[must_use]
    pub fn is_rewrite_due(&self) -> bool {
        !self.is_new && self.writer.total().saturating_sub(self.live) > self.live.max(LITTLE)
    }

    /// Begins a new generation beside this one, which stays in use until the rewrite is finished.
    ///
    /// The caller puts every dictionary and object into the rewrite. Changes that it puts into this log in the
    /// meantime it puts into the rewrite as well.
    ///
    /// # Errors
    ///
    /// If the files cannot be created, or if another rewrite of this log is under way (`ResourceBusy`).
    pub fn begin_rewrite(&self) -> io::Result<Rewrite<D>> {
        if self.shared.is_rewriting.swap(true, Ordering::AcqRel) {
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, "the log is being rewritten"));
        }
        let next = self.generation.checked_add(1).ok_or_else(|| io::Error::other("no generation is left"));
        let begun = next.and_then(|next| Rewrite::begin(self.shared.clone(), next));
        if begun.is_err() {
            self.shared.is_rewriting.store(false, Ordering::Release);
        }
        begun
    }
}

impl<D: Disk> fmt::Debug for Log<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("name", &self.shared.name)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
