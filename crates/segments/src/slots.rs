//! Slots: one word for each body, which says where the body is.

use crate::location::Location;
use arc_swap::ArcSwap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Release},
    },
};

/// Slots that are allocated together.
const CHUNK: usize = 256;

type Chunk = Arc<[AtomicU64]>;

/// The slots of a store. Readers look up a slot without a lock.
///
/// Invariant: a slot is in `free` only if no [`Body`](crate::Body) has it; its location is [`Location::NONE`] then.
pub(crate) struct Slots {
    chunks: ArcSwap<Vec<Chunk>>,
    free: Mutex<Vec<u32>>,
}

impl Slots {
    pub(crate) fn new() -> Self {
        Self { chunks: ArcSwap::default(), free: Mutex::default() }
    }

    /// Takes a slot that no body has.
    pub(crate) fn take(&self) -> u32 {
        let mut free = self.free();
        if let Some(slot) = free.pop() {
            return slot;
        }
        let mut chunks = Vec::clone(&self.chunks.load());
        let first = u32::try_from(chunks.len() * CHUNK).expect("fewer than four billion bodies");
        chunks.push((0..CHUNK).map(|_| AtomicU64::new(Location::NONE.bits())).collect());
        self.chunks.store(Arc::new(chunks));
        // Handed out in ascending order: neighbours in a segment are neighbours here.
        free.extend((first + 1..first + CHUNK as u32).rev());
        first
    }

    /// The location in a slot.
    pub(crate) fn get(&self, slot: u32) -> Location {
        self.with(slot, |location| Location::from_bits(location.load(Acquire)))
    }

    /// Publishes the location of a new body.
    pub(crate) fn set(&self, slot: u32, location: Location) {
        self.with(slot, |word| word.store(location.bits(), Release));
    }

    /// Replaces the location of a body that was moved, unless the body was dropped or moved since.
    #[must_use]
    pub(crate) fn replace(&self, slot: u32, from: Location, to: Location) -> bool {
        self.with(slot, |word| word.compare_exchange(from.bits(), to.bits(), AcqRel, Acquire).is_ok())
    }

    /// Takes the location out of the slot of a body that is dropped. From here on compaction leaves it alone.
    pub(crate) fn clear(&self, slot: u32) -> Location {
        self.with(slot, |word| Location::from_bits(word.swap(Location::NONE.bits(), AcqRel)))
    }

    /// Makes a cleared slot available to another body.
    pub(crate) fn give_back(&self, slot: u32) {
        self.free().push(slot);
    }

    /// Bytes of all slots and of the list of free ones.
    pub(crate) fn heap_size(&self) -> usize {
        let chunks = self.chunks.load();
        let per_chunk = CHUNK * size_of::<AtomicU64>() + 2 * size_of::<usize>() + size_of::<Chunk>();
        chunks.len() * per_chunk + self.free().capacity() * size_of::<u32>()
    }

    fn with<R>(&self, slot: u32, access: impl FnOnce(&AtomicU64) -> R) -> R {
        let slot = slot as usize;
        access(&self.chunks.load()[slot / CHUNK][slot % CHUNK])
    }

    fn free(&self) -> MutexGuard<'_, Vec<u32>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
