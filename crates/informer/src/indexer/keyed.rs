//! Objects in the order of their keys.

use crate::delta::AnyObject;
use kube_informer_wire::ObjectKey;
use std::{borrow::Borrow, cmp::Ordering};

/// An object that is compared by its key, which is not stored a second time, and something that is stored with it.
#[derive(Clone)]
pub(crate) struct Keyed<W = ()> {
    pub(super) object: AnyObject,
    pub(super) with: W,
}

impl Keyed {
    pub(super) fn new(object: AnyObject) -> Self {
        Self { object, with: () }
    }

    pub(super) fn object(&self) -> &AnyObject {
        &self.object
    }

    /// Whether both are one allocation.
    pub(super) fn is_identical(&self, other: &Self) -> bool {
        self.object.is_identical(&other.object)
    }
}

impl<W> Keyed<W> {
    pub(super) fn key(&self) -> &ObjectKey {
        self.object.key()
    }
}

impl<W> PartialEq for Keyed<W> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<W> Eq for Keyed<W> {}

impl<W> PartialOrd for Keyed<W> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<W> Ord for Keyed<W> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key())
    }
}

/// Sets of objects can be searched by key.
impl<W> Borrow<ObjectKey> for Keyed<W> {
    fn borrow(&self) -> &ObjectKey {
        self.key()
    }
}
