//! The fields that indexes are over.

use crate::delta::AnyObject;
use kube_informer_wire::{FieldPath, FieldPaths};
use serde_json::Value;
use std::{cell::OnceCell, sync::Arc};

/// The number of a field among those that indexes of one informer are or were over.
pub(super) type Slot = usize;

/// The fields that are read of each object.
///
/// A field keeps its slot for ever, also after its index was removed: objects carry the values that were read of them in
/// the order of the slots. An informer therefore reads each field that it was ever asked to index.
#[derive(Clone, Default)]
pub(super) struct Fields {
    /// In the order of their slots.
    paths: Vec<FieldPath>,
    /// All of them, read in one pass.
    together: Arc<FieldPaths>,
    /// Each alone, for objects of which some fields cannot be decoded.
    alone: Vec<Arc<FieldPaths>>,
}

impl Fields {
    /// The slot of a field, which is new or known.
    pub(super) fn slot(&mut self, path: &FieldPath) -> Slot {
        if let Some(slot) = self.paths.iter().position(|known| known == path) {
            return slot;
        }
        self.paths.push(path.clone());
        self.together = Arc::new(FieldPaths::new(self.paths.iter().cloned()));
        self.alone.push(Arc::new(FieldPaths::new([path.clone()])));
        self.paths.len() - 1
    }

    /// All fields, to be read of objects before they are packed.
    pub(super) fn together(&self) -> &Arc<FieldPaths> {
        &self.together
    }

    /// Reads all fields in one pass over the bytes of an object, or one by one if that fails: a field that cannot be decoded
    /// must not hide the others.
    fn read(&self, object: &AnyObject) -> Vec<Option<Vec<Value>>> {
        let Ok(json) = object.json() else { return Vec::new() };
        match self.together.read(&json) {
            Ok(found) => found.into_iter().map(Some).collect(),
            Err(_) => {
                let alone = |path: &Arc<FieldPaths>| path.read(&json).ok().and_then(|mut found| found.pop());
                self.alone.iter().map(alone).collect()
            }
        }
    }
}

/// An object with the fields that indexes are over.
pub(crate) struct Indexed<'a> {
    pub(super) object: &'a AnyObject,
    fields: &'a Fields,
    /// Fields that were not read when the object arrived.
    read: OnceCell<Vec<Option<Vec<Value>>>>,
}

impl<'a> Indexed<'a> {
    pub(super) fn new(object: &'a AnyObject, fields: &'a Fields) -> Self {
        Self { object, fields, read: OnceCell::new() }
    }

    /// The values of a field; `None` if they cannot be decoded. They depend on the bytes of the object and on the path
    /// only, not on the other fields.
    pub(super) fn values(&self, slot: Slot) -> Option<&[Value]> {
        if let Some(values) = self.object.packed_fields().and_then(|packed| packed.get(slot)) {
            return Some(values);
        }
        self.read.get_or_init(|| self.fields.read(self.object)).get(slot)?.as_deref()
    }

    /// Whether both have the very same values in a field, because they share them.
    pub(super) fn shares_values(&self, other: &Self, slot: Slot) -> bool {
        let packed = |indexed: &Self| indexed.object.packed_fields().filter(|packed| packed.len() > slot);
        packed(self).zip(packed(other)).is_some_and(|(own, others)| std::ptr::eq(own, others))
    }
}
