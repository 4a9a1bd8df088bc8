//! Logs of any disk, and the objects in them.

use super::{
    names::ReservedName,
    partition_log::{KUBE_SYSTEM, OpenLog, PATHS, PartitionLog, is_dictionary},
};
use crate::delta::AnyObject;
use kube_informer_persist::{BelongsTo, CacheDir, Disk, EncryptionKey, OpenedLog, Restored};
use kube_informer_wire::{FieldPath, ObjectKey, Origin, Packer, ResourceVersion, Restorer};
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
        // Contents are read in the order in which they are on the disk.
        let mut order: Vec<usize> = (0..restored.objects.len()).collect();
        order.sort_unstable_by_key(|&at| restored.objects[at].content.at);
        let mut objects: Vec<Option<AnyObject>> = vec![None; order.len()];
        let (mut content, mut is_disk_working) = (Vec::new(), true);
        for at in order {
            // Content that belongs on disk is not in memory as a whole before the first of it is written. A failure is
            // reported when it is written later.
            if is_disk_working && self.packer.is_spill_due() {
                is_disk_working = self.packer.spill().is_ok();
            }
            let saved = &restored.objects[at];
            restored.bodies.read(&saved.content, &mut content).map_err(|error| error.to_string())?;
            let (key, record) = (restored.key(saved), restored.identity(saved));
            let object = restorer.object(key, record, saved.content.tag, &content);
            let object = object.map_err(|error| error.to_string())?;
            if !self.covers(object.key()) {
                return Err("it has an object of another namespace".to_owned());
            }
            objects[at] = Some(object);
        }
        let version = ResourceVersion::from(restored.position.version.as_str());
        if version.is_unset() {
            return Err("it has no resource version".to_owned());
        }
        let objects = objects.into_iter().flatten().collect();
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
