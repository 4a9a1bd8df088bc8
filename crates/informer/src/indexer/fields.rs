//! The fields that indexes are over.

use crate::delta::AnyObject;
use kube_informer_wire::{FieldPath, FieldPaths};
use serde_json::Value;
use std::{cell::OnceCell, sync::Arc};

/// The number of a field among those that indexes of one informer are or were over.
pub(super) type Slot = usize;

/// The fields that are read of each object.
///
/// Objects carry the values that were read of them in the order of the slots. So a slot never serves another field: after its
/// index was removed it stays free, its field is no longer read, and a new index over the same field gets a new slot.
#[derive(Clone, Default)]
pub(super) struct Fields {
    /// By slot; `None` if no index is over the field any more.
    slots: Vec<Option<Field>>,
    /// All of them, read in one pass.
    together: Arc<FieldPaths>,
}

#[derive(Clone)]
struct Field {
    path: FieldPath,
    /// The field alone, for objects of which some fields cannot be decoded.
    alone: Arc<FieldPaths>,
}

impl Fields {
    /// The slot of a field, which is new or known.
    pub(super) fn slot(&mut self, path: &FieldPath) -> Slot {
        let is_it = |field: &Option<Field>| field.as_ref().is_some_and(|field| field.path == *path);
        if let Some(slot) = self.slots.iter().position(is_it) {
            return slot;
        }
        let alone = Arc::new(FieldPaths::new([path.clone()]));
        self.slots.push(Some(Field { path: path.clone(), alone }));
        self.read_together();
        self.slots.len() - 1
    }

    /// No index is over a field any more.
    pub(super) fn release(&mut self, slot: Slot) {
        if let Some(field) = self.slots.get_mut(slot) {
            *field = None;
            self.read_together();
        }
    }

    fn read_together(&mut self) {
        self.together = Arc::new(FieldPaths::sparse(self.paths()));
    }

    /// The paths by slot; `None` if no index is over the field any more.
    pub(super) fn paths(&self) -> Vec<Option<FieldPath>> {
        self.slots.iter().map(|field| field.as_ref().map(|field| field.path.clone())).collect()
    }

    /// All fields, to be read of objects before they are packed.
    pub(super) fn together(&self) -> &Arc<FieldPaths> {
        &self.together
    }

    /// Reads all fields in one pass over the bytes of an object, or one by one if that fails: a field that cannot be decoded
    /// must not hide the others.
    fn read(&self, object: &AnyObject) -> Vec<Option<Vec<Value>>> {
        if object.is_content_withheld() {
            return Vec::new();
        }
        match object.read_fields(&self.together) {
            Some(found) => found.into_iter().map(Some).collect(),
            None => {
                let alone =
                    |field: &Field| object.read_fields(&field.alone).and_then(|mut found| found.pop());
                self.slots.iter().map(|field| field.as_ref().and_then(alone)).collect()
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

    /// Identifies the values of a field among objects that exist at the same time: those with the same address share them.
    pub(super) fn shared_address(&self, slot: Slot) -> Option<usize> {
        let packed = self.object.packed_fields().filter(|packed| packed.len() > slot)?;
        Some(packed.as_ptr().addr())
    }

    /// Whether both have the very same values in a field, because they share them.
    pub(super) fn shares_values(&self, other: &Self, slot: Slot) -> bool {
        let packed = |indexed: &Self| indexed.object.packed_fields().filter(|packed| packed.len() > slot);
        packed(self).zip(packed(other)).is_some_and(|(own, others)| std::ptr::eq(own, others))
    }
}
