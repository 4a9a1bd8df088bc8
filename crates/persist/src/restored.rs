//! A restored state.

use crate::{
    bodies::Bodies,
    disk::{Directory, Disk},
    position::Position,
};
use std::fmt;

/// The state at the newest position that is intact.
#[non_exhaustive]
pub struct Restored<D: Disk = Directory> {
    /// The position.
    pub position: Position,
    /// The dictionaries, by id.
    pub dictionaries: Vec<(u32, Vec<u8>)>,
    /// The objects, one for each key, in the order of keys.
    pub objects: Vec<SavedObject>,
    /// Reads the contents.
    pub bodies: Bodies<D>,
    /// How many bytes of the log were dropped behind the position, because they were incomplete or not committed.
    pub dropped_bytes: u64,
    /// The log, to which the objects refer.
    pub(crate) buffer: Vec<u8>,
}

/// An object of a [`Restored`] state, to which it refers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedObject {
    /// Where the key begins in the log. The identity follows it.
    pub(crate) at: usize,
    pub(crate) key_len: u32,
    pub(crate) identity_len: u32,
    /// Its content.
    pub content: SavedContent,
}

/// Where a content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedContent {
    /// The tag with which it was put.
    pub tag: u64,
    /// Its length.
    pub len: u32,
    /// Where in the file of bodies. Reading in this order is fastest.
    pub at: u64,
    pub(crate) checksum: u32,
}

impl<D: Disk> Restored<D> {
    /// Returns the key of an object of this state.
    ///
    /// # Panics
    ///
    /// If the object is from another state.
    #[must_use]
    pub fn key(&self, object: &SavedObject) -> &str {
        std::str::from_utf8(key_of(&self.buffer, object)).expect("an object of this state")
    }

    /// Returns the identity of an object of this state.
    ///
    /// # Panics
    ///
    /// If the object is from another state.
    #[must_use]
    pub fn identity(&self, object: &SavedObject) -> &[u8] {
        let start = object.at + object.key_len as usize;
        &self.buffer[start..start + object.identity_len as usize]
    }
}

pub(crate) fn key_of<'a>(buffer: &'a [u8], object: &SavedObject) -> &'a [u8] {
    &buffer[object.at..object.at + object.key_len as usize]
}

/// Prints no keys, identities or contents.
impl<D: Disk> fmt::Debug for Restored<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Restored")
            .field("position", &self.position)
            .field("objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}
