//! Encodes the objects of one partition into its log.

use crate::{
    delta::AnyObject,
    indexer::{Contents, ContentsChange},
    scope::Partition,
};
use kube_informer_persist::{Disk, Log, Position, Rewrite};
use kube_informer_wire::{FieldPath, Packer, ResourceVersion, save_paths};
use std::{collections::HashSet, io, sync::Arc, time::SystemTime};

// Parts that objects share are saved as dictionaries of the log, by number. Dictionaries of content have the numbers below.
/// Added to the number of the paths of indexed fields.
pub(super) const PATHS: u32 = 1 << 31;
/// The uid of `kube-system`.
pub(super) const KUBE_SYSTEM: u32 = u32::MAX;

/// Whether a shared part is a dictionary of content.
pub(super) fn is_dictionary(id: u32) -> bool {
    id < PATHS
}

/// A state of a partition that is to be saved.
pub(crate) struct StateToSave {
    pub(super) partition: Partition,
    pub(super) contents: Arc<Contents>,
    pub(super) version: ResourceVersion,
    pub(super) saved_at: SystemTime,
    /// The paths of the packed fields of its objects.
    pub(super) paths: Vec<Option<FieldPath>>,
    pub(super) packer: Arc<Packer>,
    /// The uid of `kube-system`, if it is known.
    pub(super) kube_system: Option<String>,
}

impl StateToSave {
    fn position(&self) -> Position {
        Position { version: self.version.to_string(), saved_at: self.saved_at }
    }

    fn has(&self, object: &AnyObject) -> bool {
        self.contents.partitions().contains(self.partition, object.key())
    }
}

/// The log of one partition. All calls block on the disk.
pub(crate) trait PartitionLog: Send {
    /// Appends the changes since `before`, which is what the log has, and the version.
    fn append(&mut self, before: &Contents, state: &StateToSave) -> io::Result<()>;

    /// Replaces the log by the whole state.
    fn rewrite(&mut self, state: &StateToSave) -> io::Result<()>;

    /// Whether the log has much that is no longer needed.
    fn is_rewrite_due(&self) -> bool;
}

/// An open log.
pub(super) struct OpenLog<D: Disk> {
    log: Log<D>,
    encoder: Encoder,
}

impl<D: Disk> OpenLog<D> {
    /// A log that has these shared parts.
    pub(super) fn new(log: Log<D>, known: Vec<u32>) -> Self {
        Self { log, encoder: Encoder::new(known) }
    }
}

impl<D: Disk> PartitionLog for OpenLog<D> {
    fn append(&mut self, before: &Contents, state: &StateToSave) -> io::Result<()> {
        let Self { log, encoder } = self;
        encoder.begin(log, state);
        for change in before.diff(&state.contents) {
            match change {
                ContentsChange::Put(object) if state.has(object) => {
                    encoder.put(log, object, &state.packer)?
                }
                ContentsChange::Removed(object) if state.has(object) => log.delete(object.key().as_str()),
                _ => {}
            }
        }
        log.commit(&state.position())
    }

    fn rewrite(&mut self, state: &StateToSave) -> io::Result<()> {
        let mut encoder = Encoder::new(Vec::new());
        let mut rewrite = self.log.begin_rewrite()?;
        encoder.begin(&mut rewrite, state);
        for object in state.contents.iter().filter(|object| state.has(object)) {
            encoder.put(&mut rewrite, object, &state.packer)?;
        }
        self.log = rewrite.finish(&state.position())?;
        self.encoder = encoder;
        Ok(())
    }

    fn is_rewrite_due(&self) -> bool {
        self.log.is_rewrite_due()
    }
}

/// Where objects are written to.
trait Sink {
    fn put(&mut self, key: &str, record: &[u8], tag: u64, content: &[u8]);
    fn share(&mut self, id: u32, bytes: &[u8]);
}

impl<D: Disk> Sink for Log<D> {
    fn put(&mut self, key: &str, record: &[u8], tag: u64, content: &[u8]) {
        self.put(key, record, tag, content);
    }

    fn share(&mut self, id: u32, bytes: &[u8]) {
        self.dictionary(id, bytes);
    }
}

impl<D: Disk> Sink for Rewrite<D> {
    fn put(&mut self, key: &str, record: &[u8], tag: u64, content: &[u8]) {
        self.put(key, record, tag, content);
    }

    fn share(&mut self, id: u32, bytes: &[u8]) {
        self.dictionary(id, bytes);
    }
}

/// Encodes objects, and shared parts the first time that an object needs them.
struct Encoder {
    /// Shared parts that the log has.
    known: HashSet<u32>,
    /// The number and the paths of fields that records refer to.
    paths: Option<(u32, Vec<Option<FieldPath>>)>,
    record: Vec<u8>,
    content: Vec<u8>,
}

impl Encoder {
    fn new(known: Vec<u32>) -> Self {
        Self { known: known.into_iter().collect(), paths: None, record: Vec::new(), content: Vec::new() }
    }

    fn begin(&mut self, sink: &mut impl Sink, state: &StateToSave) {
        if let Some(uid) = &state.kube_system
            && self.known.insert(KUBE_SYSTEM)
        {
            sink.share(KUBE_SYSTEM, uid.as_bytes());
        }
        if self.paths.as_ref().is_none_or(|(_, paths)| *paths != state.paths) {
            let unused = |number: &u32| !self.known.contains(&(PATHS | number));
            let number = (0..KUBE_SYSTEM & !PATHS).find(unused).unwrap_or_default();
            self.known.insert(PATHS | number);
            sink.share(PATHS | number, &save_paths(&state.paths));
            self.paths = Some((number, state.paths.clone()));
        }
    }

    fn put(&mut self, sink: &mut impl Sink, object: &AnyObject, packer: &Packer) -> io::Result<()> {
        let Self { known, paths, record, content } = self;
        record.clear();
        object.save_record(paths.as_ref().map_or(0, |(number, _)| *number), record);
        let saved = packer.save_content(object, content);
        let saved = saved.ok_or_else(|| io::Error::other(format!("{} cannot be read", object.key())))?;
        if let Some(dictionary) = &saved.dictionary
            && known.insert(dictionary.id())
        {
            sink.share(dictionary.id(), dictionary.bytes());
        }
        sink.put(object.key().as_str(), record, saved.tag, content);
        Ok(())
    }
}
