//! A handle on one body.

use crate::store::Store;
use std::{fmt, sync::Arc};

/// The only handle on the bytes of one body. Dropping it makes them garbage.
///
/// 1. The bytes never change. Compaction may move them, or replace them by another encoding of the same content; a
///    reader does not notice the former, and sees the latter by the tag.
/// 2. Reading never waits for a writer or for compaction.
/// 3. A body does not keep its segment in memory, however long it is held.
pub struct Body<C = ()> {
    store: Arc<Store<C>>,
    slot: u32,
}

impl<C> Body<C> {
    pub(crate) fn new(store: Arc<Store<C>>, slot: u32) -> Self {
        Self { store, slot }
    }

    /// The context of the store.
    pub fn context(&self) -> &C {
        &self.store.context
    }

    /// Replaces the content of `buffer` by the bytes of the body, and returns its tag.
    pub fn read(&self, buffer: &mut Vec<u8>) -> u64 {
        let (segment, word) = self.store.shared.find(self.slot);
        segment.read(word, buffer).tag
    }

    /// The tag that was given with the bytes.
    pub fn tag(&self) -> u64 {
        let (segment, word) = self.store.shared.find(self.slot);
        segment.header(word).tag
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        let (segment, word) = self.store.shared.find(self.slot);
        segment.header(word).len as usize
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<C> Drop for Body<C> {
    fn drop(&mut self) {
        self.store.shared.free(self.slot);
    }
}

/// The slot, and none of the bytes, which may be a secret.
impl<C> fmt::Debug for Body<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({})", self.slot)
    }
}
