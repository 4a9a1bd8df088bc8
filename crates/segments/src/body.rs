//! A handle on one body.

use crate::{ReadError, store::Store};
use std::{fmt, sync::Arc};

/// The only handle on the bytes of one body. Dropping it makes them garbage.
///
/// 1. The bytes never change. Compaction may move them, or replace them by another encoding of the same content; a
///    reader does not notice the former, and sees the latter by the tag.
/// 2. Reading never waits for a writer or for compaction. It blocks if the body is on disk or outside of the store.
/// 3. A body does not keep its segment in memory, however long it is held.
/// 4. Reading a body on disk fails, or has the bytes that were inserted, whatever the disk does. Reading a body outside of the
///    store fails, or has the bytes that its [`BodySource`](crate::BodySource) returns.
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

    /// Replaces the content of `buffer` by the bytes of the body, and returns its tag. Blocks if the body is on disk or outside
    /// of the store, and fails only there.
    pub fn read(&self, buffer: &mut Vec<u8>) -> Result<u64, ReadError> {
        self.store.shared.read(self.slot, buffer)
    }

    /// Whether reading neither blocks nor fails, because the bytes are in memory. The next write to disk may change that.
    pub fn is_in_memory(&self) -> bool {
        self.store.shared.is_in_memory(self.slot)
    }

    /// Whether the last attempt to read the body failed, or it was [marked](Self::mark_lost) as lost since.
    pub fn is_lost(&self) -> bool {
        self.store.shared.is_lost(self.slot)
    }

    /// Counts the body as lost, because its bytes are not what they should be.
    pub fn mark_lost(&self) {
        self.store.shared.mark_lost(self.slot);
    }

    /// The tag that was given with the bytes.
    pub fn tag(&self) -> u64 {
        let (segment, location) = self.store.shared.find(self.slot);
        segment.header(location.word as usize).tag
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        let (segment, location) = self.store.shared.find(self.slot);
        segment.header(location.word as usize).len as usize
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
