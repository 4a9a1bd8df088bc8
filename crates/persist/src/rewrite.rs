//! A new generation of a log.

use crate::{
    bodies::Bodies,
    disk::{Directory, Disk, DiskFile},
    frame::Place,
    header::Header,
    log::{Log, SharedLog},
    position::Position,
    writer::Writer,
};
use std::{
    fmt, io,
    sync::{Arc, atomic::Ordering},
};

/// A new generation of a log that is being written beside the current one.
///
/// Dropping it removes its files, and the log goes on as before.
pub struct Rewrite<D: Disk = Directory> {
    shared: Arc<SharedLog<D>>,
    generation: u64,
    /// `None` once it is finished.
    writer: Option<Writer<D>>,
}

/// Creates the files of a new generation, under names that are not in use.
pub(crate) fn create<D: Disk>(shared: &SharedLog<D>, generation: u64) -> io::Result<Writer<D>> {
    let disk = shared.directory.disk();
    let key = shared.key.as_ref();
    let (header, bytes) = Header::create(&**disk, &shared.name, &shared.belongs_to, generation, key)?;
    let bodies = Arc::new(disk.create(&shared.stem.bodies(generation))?);
    let log = disk.create(&shared.stem.new_log())?;
    log.write_at(&bytes, 0)?;
    let sealing = header.sealing(key).map_err(io::Error::other)?;
    let end = Place { at: bytes.len() as u64, previous: 0, synced: 0 };
    Ok(Writer::new(disk.clone(), (log, end), (bodies, 0), header.checksums(), sealing))
}

/// Makes the files of a new generation the current ones, by one rename.
pub(crate) fn switch<D: Disk>(shared: &SharedLog<D>, generation: u64) -> io::Result<()> {
    let disk = shared.directory.disk();
    // The names of the new files must be on the disk before the rename is.
    disk.sync()?;
    disk.rename(&shared.stem.new_log(), &shared.stem.log())?;
    let previous = shared.current.swap(generation, Ordering::AcqRel);
    // The old bodies go only after the rename is on the disk. If they stay, the next open removes them.
    if disk.sync().is_ok() && previous != generation {
        let _ = disk.remove(&shared.stem.bodies(previous));
    }
    Ok(())
}

impl<D: Disk> Rewrite<D> {
    pub(crate) fn begin(shared: Arc<SharedLog<D>>, generation: u64) -> io::Result<Self> {
        let writer = create(&shared, generation)?;
        Ok(Self { shared, generation, writer: Some(writer) })
    }

    /// Adds or replaces an object. Adding objects in the order of keys makes opening fastest.
    pub fn put(&mut self, key: &str, identity: &[u8], tag: u64, content: &[u8]) {
        self.writer().put(key, identity, tag, content);
    }

    /// Deletes an object. It need not exist.
    pub fn delete(&mut self, key: &str) {
        self.writer().delete(key);
    }

    /// Saves a dictionary. It replaces the one with the same id.
    pub fn dictionary(&mut self, id: u32, bytes: &[u8]) {
        self.writer().dictionary(id, bytes);
    }

    /// Writes the position, waits until everything is on the disk, and puts it in place of the old generation by one
    /// rename. The old [`Log`] no longer commits; its [`Bodies`] stay readable.
    ///
    /// # Errors
    ///
    /// If the disk is full or fails. The old generation stays in use then.
    pub fn finish(mut self, position: &Position) -> io::Result<Log<D>> {
        let mut writer = self.writer.take().expect("only `finish` takes it");
        let written = writer.commit(position).and_then(|()| writer.sync());
        if let Err(error) = written.and_then(|()| switch(&self.shared, self.generation)) {
            self.writer = Some(writer);
            return Err(error);
        }
        let live = writer.total();
        Ok(Log { shared: self.shared.clone(), generation: self.generation, writer, live, is_new: false })
    }

    /// Returns what reads the contents of the new generation.
    #[must_use]
    pub fn bodies(&self) -> Bodies<D> {
        self.writer.as_ref().expect("only `finish` takes it").bodies()
    }

    fn writer(&mut self) -> &mut Writer<D> {
        self.writer.as_mut().expect("only `finish` takes it")
    }
}

impl<D: Disk> Drop for Rewrite<D> {
    fn drop(&mut self) {
        if self.writer.is_some() {
            let disk = self.shared.directory.disk();
            // If they stay, the next open removes them.
            let _ = disk.remove(&self.shared.stem.new_log());
            let _ = disk.remove(&self.shared.stem.bodies(self.generation));
        }
        self.shared.is_rewriting.store(false, Ordering::Release);
    }
}

impl<D: Disk> fmt::Debug for Rewrite<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rewrite")
            .field("name", &self.shared.name)
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
