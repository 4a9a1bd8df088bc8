//! Logs of any disk, and the objects in them.

use super::{
    names::ReservedName,
    partition_log::{KUBE_SYSTEM, OpenLog, PATHS, PartitionLog, is_dictionary},
};
use crate::delta::AnyObject;
use kube_informer_persist::{
    BelongsTo, Bodies, CacheDir, Disk, EncryptionKey, OpenedLog, Restored, SavedContent, SavedObject,
};
use kube_informer_wire::{
    BodySource, FieldPath, ObjectKey, Origin, OutsideBody, Packer, ReadError, ResourceVersion, Restorer,
};
use std::{io, sync::Arc, time::SystemTime};

/// A directory with the logs of partitions, on any disk. All calls block.
pub(crate) trait Directory: Send + Sync + 'static {
    /// Opens the log of a partition and restores its objects.
    fn open(&self, spec: &LogSpec, target: &RestoreTarget) -> io::Result<Opened>;
}

/// Which log is opened.
#[derive(Clone)]
pub(crate) struct LogSpec {
    pub(super) name: Arc<ReservedName>,
    pub(super) belongs_to: BelongsTo,
    pub(super) key: Option<EncryptionKey>,
}

/// The informer that objects are restored for.
pub(crate) struct RestoreTarget {
    pub(super) packer: Arc<Packer>,
    pub(super) origin: Arc<Origin>,
    /// The fields of indexes, by slot.
    pub(super) paths: Vec<Option<FieldPath>>,
    /// The namespace of the partition.
    pub(super) namespace: Option<String>,
    /// The uid of `kube-system`, if it is known.
    pub(super) kube_system: Option<String>,
}

/// An opened log.
pub(crate) struct Opened {
    pub(super) log: Box<dyn PartitionLog>,
    pub(super) state: Option<SavedState>,
    /// Why a saved state is not used.
    pub(super) discarded: Option<String>,
}

/// The state of a partition at a version.
pub(crate) struct SavedState {
    pub(super) objects: Vec<AnyObject>,
    pub(super) version: ResourceVersion,
    pub(super) saved_at: SystemTime,
}

impl<D: Disk> Directory for CacheDir<D> {
    fn open(&self, spec: &LogSpec, target: &RestoreTarget) -> io::Result<Opened> {
        let name = spec.name.resolve(|name| self.belongs_to(name));
        let OpenedLog { restored, discarded, log, .. } =
            self.open_log(&name, &spec.belongs_to, spec.key.as_ref())?;
        let mut discarded = discarded.map(|why| why.to_string());
        let mut state = None;
        let mut known = Vec::new();
        if let Some(restored) = restored {
            known.extend(restored.dictionaries.iter().map(|(id, _)| *id));
            match target.restore(restored) {
                Ok(restored) => state = Some(restored),
                Err(why) => discarded = Some(why),
            }
        }
        let known = if state.is_some() { known } else { Vec::new() };
        Ok(Opened { log: Box::new(OpenLog::new(log, known)), state, discarded })
    }
}

/// Reads the contents of a saved state, by the number of the object: when they are needed, or to move them into memory in the
/// background.
struct SavedBodies<D: Disk> {
    bodies: Bodies<D>,
    contents: Vec<SavedContent>,
}

impl<D: Disk> BodySource for SavedBodies<D> {
    fn read(&self, number: u32, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        let content = self.contents.get(number as usize).ok_or(ReadError::WrongBytes)?;
        self.bodies.read(content, buffer).map_err(|error| match error {
            kube_informer_persist::ReadError::Io(error) => error.into(),
            _ => ReadError::WrongBytes,
        })
    }
}

impl RestoreTarget {
    /// The objects of a saved state. The error says why they cannot be used.
    fn restore<D: Disk>(&self, mut restored: Restored<D>) -> Result<SavedState, String> {
        let shared = std::mem::take(&mut restored.dictionaries);
        let mut restorer = Restorer::new(&self.packer, Arc::clone(&self.origin), self.paths.clone());
        let mut dictionaries = Vec::new();
        for (id, bytes) in shared {
            match id {
                KUBE_SYSTEM => self.check_cluster(&bytes)?,
                id if is_dictionary(id) => dictionaries.push((id, bytes)),
                id => restorer.add_paths(id & !PATHS, &bytes).map_err(|error| error.to_string())?,
            }
        }
        restorer.add_dictionaries(dictionaries).map_err(|error| error.to_string())?;
        let contents = restored.objects.iter().map(|saved| saved.content).collect();
        let source: Arc<dyn BodySource> = Arc::new(SavedBodies { bodies: restored.bodies.clone(), contents });
        let body = |(number, saved): (usize, &SavedObject)| {
            let SavedContent { tag, len, .. } = saved.content;
            Ok(OutsideBody {
                number: u32::try_from(number).map_err(|_| "it has too many objects")?,
                tag,
                len,
            })
        };
        let bodies = restored.objects.iter().enumerate().map(body).collect::<Result<Vec<_>, String>>()?;
        let contents = restorer.contents(&source, &bodies).map_err(|error| error.to_string())?;
        let mut objects = Vec::with_capacity(bodies.len());
        for (saved, content) in restored.objects.iter().zip(contents) {
            let object = restorer.object(restored.key(saved), restored.identity(saved), content);
            let object = object.map_err(|error| error.to_string())?;
            if !self.covers(object.key()) {
                return Err("it has an object of another namespace".to_owned());
            }
            objects.push(object);
        }
        let version = ResourceVersion::from(restored.position.version.as_str());
        if version.is_unset() {
            return Err("it has no resource version".to_owned());
        }
        Ok(SavedState { objects, version, saved_at: restored.position.saved_at })
    }

    fn check_cluster(&self, saved: &[u8]) -> Result<(), String> {
        match &self.kube_system {
            Some(current) if current.as_bytes() != saved => {
                Err("it belongs to another cluster: the namespace kube-system has another uid".to_owned())
            }
            _ => Ok(()),
        }
    }

    fn covers(&self, key: &ObjectKey) -> bool {
        self.namespace.is_none() || self.namespace.as_deref() == key.namespace()
    }
}
