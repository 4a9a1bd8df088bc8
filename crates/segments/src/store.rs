//! The store: inserting, reading, dropping.

use crate::{
    Body, CompactionStep, DiskOptions, ReadError,
    appender::{Appender, Sizes},
    compaction::{Compaction, Goal},
    disk::{Disk, Lost},
    due::Due,
    location::Location,
    sample,
    segment::{HEADER_WORDS, Header, Segment, WORD},
    slots::Slots,
    spill::spill,
    table::Table,
};
use std::{
    fmt,
    future::poll_fn,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
};

/// Words of garbage for which compaction never starts: in a small store a percentage is a few bodies.
const MIN_GARBAGE: usize = 1024;

/// How a [`SegmentStore`] lays out its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bytes of a segment. Small stores use smaller ones, and stores of more than 528 MB that are not on disk use larger ones.
    /// A body that needs more gets a segment of its own.
    pub segment_bytes: usize,
    /// Compaction is due when garbage is more than this percentage of the live content.
    pub garbage_percent: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { segment_bytes: 256 << 10, garbage_percent: 10 }
    }
}

/// Byte strings in segments. See the [crate documentation](crate).
///
/// Cloning is a reference count: all clones are one store. `C` is what readers of a body need beside its bytes, such as
/// dictionaries; see [`Body::context`].
pub struct SegmentStore<C = ()> {
    pub(crate) store: Arc<Store<C>>,
}

/// The store with its context, as bodies know it.
pub(crate) struct Store<C> {
    pub(crate) shared: Shared,
    pub(crate) context: C,
}

/// The store without its context.
pub(crate) struct Shared {
    pub(crate) options: StoreOptions,
    pub(crate) slots: Slots,
    pub(crate) table: Table,
    pub(crate) due: Due,
    /// `None` if everything is in memory.
    pub(crate) disk: Option<Disk>,
    /// Bodies that could not be read from disk or from outside.
    pub(crate) lost: Lost,
    /// Number of segments of bodies outside of the store that compaction can empty.
    pub(crate) outside: AtomicUsize,
    /// Whether compaction may empty them.
    pub(crate) may_move: AtomicBool,
    /// Whether bodies were ever outside.
    pub(crate) has_adopted: AtomicBool,
    /// How many bodies were ever dropped.
    dropped: AtomicUsize,
    /// Words of live bodies in all segments.
    pub(crate) live: AtomicUsize,
    /// Words of bodies that are no longer in use, in segments that are not freed yet.
    garbage: AtomicUsize,
    /// Words of memory that compaction keeps for its next segments.
    pub(crate) spare: AtomicUsize,
    /// Writes new bodies.
    appender: Mutex<Appender>,
    compaction: Mutex<Compaction>,
}

impl SegmentStore {
    /// An empty store. It allocates nothing until the first body.
    pub fn new() -> Self {
        Self::with_options(StoreOptions::default())
    }

    /// An empty store with options.
    pub fn with_options(options: StoreOptions) -> Self {
        Self::with_context(options, ())
    }
}

impl<C> SegmentStore<C> {
    /// An empty store with options and a context.
    pub fn with_context(options: StoreOptions, context: C) -> Self {
        Self::create(options, None, context)
    }

    /// An empty store whose bodies are written to a file, once there are enough of them: see [`spill`](Self::spill).
    pub fn on_disk(options: StoreOptions, disk: DiskOptions, context: C) -> Self {
        Self::create(options, Some(Disk::new(disk)), context)
    }

    fn create(options: StoreOptions, disk: Option<Disk>, context: C) -> Self {
        let shared = Shared {
            options,
            slots: Slots::new(),
            table: Table::new(),
            due: Due::default(),
            disk,
            lost: Lost::default(),
            outside: AtomicUsize::new(0),
            may_move: AtomicBool::new(false),
            has_adopted: AtomicBool::new(false),
            dropped: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            garbage: AtomicUsize::new(0),
            spare: AtomicUsize::new(0),
            appender: Mutex::default(),
            compaction: Mutex::default(),
        };
        Self { store: Arc::new(Store { shared, context }) }
    }

    /// The context that the store was created with.
    pub fn context(&self) -> &C {
        &self.store.context
    }

    /// Stores bytes, and with them a tag by which the caller knows how to read them.
    ///
    /// # Panics
    ///
    /// With more than 4 GiB, or more than four billion bodies.
    pub fn insert(&self, tag: u64, bytes: &[u8]) -> Body<C> {
        let shared = &self.store.shared;
        let len = u32::try_from(bytes.len()).expect("a body of less than 4 GiB");
        let mut appender = lock(&shared.appender);
        let slot = shared.slots.take();
        let location = appender.append(shared, Header { slot, len, tag }, bytes);
        shared.slots.set(slot, location);
        drop(appender);
        if shared.is_spill_due() {
            shared.due.wake();
        }
        Body::new(Arc::clone(&self.store), slot)
    }

    /// Resolves when [`compact`](Self::compact) has work to do. One task waits at a time: a second one replaces it.
    pub fn compaction_due(&self) -> impl Future<Output = ()> {
        self.compaction_due_or(|| false)
    }

    /// Resolves when [`compact`](Self::compact) has work to do or `other` holds, which is looked at again after a
    /// [`wake`](Self::wake).
    pub fn compaction_due_or(&self, other: impl Fn() -> bool) -> impl Future<Output = ()> {
        let shared = &self.store.shared;
        poll_fn(move |task| shared.due.poll(task, || shared.is_compaction_due() || other()))
    }

    /// Lets the task that waits until compaction is due look again.
    pub fn wake(&self) {
        self.store.shared.due.wake();
    }

    /// Does a part of the compaction that is due: looks at about `bytes` of the segments with the most garbage.
    ///
    /// `rewrite` is called with the tag and the bytes of every body that moves. It may put another encoding of the same
    /// content into the buffer and return a tag for it; with `None` the body moves as it is.
    ///
    /// One thread compacts or rewrites at a time; others wait for it. Readers and [`insert`](Self::insert) do not.
    pub fn compact(
        &self,
        bytes: usize,
        rewrite: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) -> CompactionStep {
        self.step(Goal::Compact, bytes, rewrite)
    }

    /// Makes [`rewrite`](Self::rewrite) move everything that is stored now, in steps.
    pub fn begin_rewrite(&self) {
        let shared = &self.store.shared;
        lock(&shared.appender).close(shared);
        lock(&shared.compaction).begin_rewrite(shared);
    }

    /// Moves about `bytes` of what was stored when [`begin_rewrite`](Self::begin_rewrite) was called. Calls `rewrite` as
    /// [`compact`](Self::compact) does, which may move a part of it, too.
    pub fn rewrite(
        &self,
        bytes: usize,
        rewrite: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) -> CompactionStep {
        self.step(Goal::Rewrite, bytes, rewrite)
    }

    fn step(
        &self,
        goal: Goal,
        bytes: usize,
        rewrite: impl FnMut(u64, &[u8], &mut Vec<u8>) -> Option<u64>,
    ) -> CompactionStep {
        lock(&self.store.shared.compaction).step(&self.store.shared, goal, bytes / WORD, rewrite)
    }

    /// Calls `visit` with the tag and the bytes of about `count` bodies that are in memory, evenly spread over all of them.
    /// Looks at the header of each body.
    pub fn sample(&self, count: usize, visit: impl FnMut(u64, &[u8])) {
        sample::sample(&self.store.shared, count, visit);
    }

    /// Whether [`spill`](Self::spill) has enough to write. Becoming so wakes the task that waits until compaction is due.
    pub fn is_spill_due(&self) -> bool {
        self.store.shared.is_spill_due()
    }

    /// Writes some of the bodies that are only in memory to the file, encrypted. Readers, writers and drops do not wait for it.
    /// After an error everything is where it was.
    pub fn spill(&self) -> io::Result<()> {
        let shared = &self.store.shared;
        let Some(disk) = &shared.disk else { return Ok(()) };
        // Held so that compaction does not move the same bodies meanwhile.
        let mut compaction = lock(&shared.compaction);
        let result = spill(shared, disk, &mut compaction.unrewritten);
        drop(compaction);
        disk.room.wake();
        result
    }

    /// Resolves when less is in memory than the buffer of a store on disk may have. At once for a store in memory.
    pub fn room(&self) -> impl Future<Output = ()> {
        let shared = &self.store.shared;
        poll_fn(move |task| match &shared.disk {
            Some(disk) => disk.room.poll(task, || shared.has_room()),
            None => std::task::Poll::Ready(()),
        })
    }

    /// Whether [`room`](Self::room) resolves at once.
    pub fn has_room(&self) -> bool {
        self.store.shared.has_room()
    }

    /// Whether so much waits to be written that compaction and rewriting pause.
    pub fn is_congested(&self) -> bool {
        self.store.shared.is_congested()
    }

    /// The number of bodies that could not be read. One more wakes the task that waits until compaction is due.
    pub fn lost(&self) -> usize {
        self.store.shared.lost.len()
    }

    /// How many bodies were ever dropped.
    pub fn dropped(&self) -> usize {
        self.store.shared.dropped.load(Relaxed)
    }

    /// Bytes of segments in memory, and of the cache of a store on disk.
    pub fn memory_bytes(&self) -> usize {
        let shared = &self.store.shared;
        shared.memory_bytes() + shared.disk.as_ref().map_or(0, |disk| disk.cache.bytes())
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> usize {
        self.store.shared.disk.as_ref().map_or(0, Disk::file_bytes)
    }

    /// Bytes of all bodies in use, with their headers, wherever they are.
    pub fn live_bytes(&self) -> usize {
        self.store.shared.live.load(Relaxed) * WORD
    }
}

impl<C> Clone for SegmentStore<C> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store) }
    }
}

impl Default for SegmentStore {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for SegmentStore<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentStore").field(&self.usage()).finish()
    }
}

impl Shared {
    /// The segment of the body of a slot, and its location.
    ///
    /// The slot belongs to a body that the caller has: it is not dropped meanwhile.
    pub(crate) fn find(&self, slot: u32) -> (Arc<Segment>, Location) {
        loop {
            let location = self.slots.get(slot);
            // A segment is freed after all its bodies have been moved: the slot has a newer location then.
            if let Some(segment) = self.table.get(location.segment) {
                return (segment, location);
            }
        }
    }

    /// Reads the body of a slot and returns its tag.
    pub(crate) fn read(&self, slot: u32, buffer: &mut Vec<u8>) -> Result<u64, ReadError> {
        loop {
            let (segment, location) = self.find(slot);
            match self.read_at(&segment, location, buffer) {
                Ok(header) => {
                    if let Some(disk) = self.disk.as_ref().filter(|_| !segment.is_in_memory()) {
                        disk.cache.put(location, buffer);
                    }
                    self.lost.remove(slot);
                    return Ok(header.tag);
                }
                // It was moved meanwhile.
                Err(_) if self.slots.get(slot) != location => {}
                Err(error) => {
                    buffer.clear();
                    self.lose(slot, location);
                    return Err(error);
                }
            }
        }
    }

    /// Reads a body from memory if it is there, otherwise from disk or from outside.
    pub(crate) fn read_at(
        &self,
        segment: &Segment,
        location: Location,
        buffer: &mut Vec<u8>,
    ) -> Result<Header, ReadError> {
        let word = location.word as usize;
        match self.disk.as_ref().filter(|_| !segment.is_in_memory()).and_then(|disk| disk.cache.get(location))
        {
            Some(cached) => {
                buffer.clear();
                buffer.extend_from_slice(&cached);
                Ok(segment.header(word))
            }
            None => segment.read(word, buffer),
        }
    }

    pub(crate) fn is_in_memory(&self, slot: u32) -> bool {
        if self.disk.is_none() && !self.has_adopted.load(Relaxed) {
            return true;
        }
        let (segment, location) = self.find(slot);
        segment.is_in_memory() || self.disk.as_ref().is_some_and(|disk| disk.cache.contains(location))
    }

    pub(crate) fn is_lost(&self, slot: u32) -> bool {
        self.lost.contains(slot)
    }

    /// The body at a location could not be read. The caller need not have the body.
    pub(crate) fn lose(&self, slot: u32, location: Location) {
        self.mark_lost(slot);
        // Dropped meanwhile: the slot may have another body by now, or none.
        if self.slots.get(slot) != location {
            self.lost.remove(slot);
        }
    }

    /// Only a body that was on disk or outside can be lost.
    pub(crate) fn mark_lost(&self, slot: u32) {
        if (self.disk.is_some() || self.has_adopted.load(Relaxed)) && self.lost.insert(slot) {
            self.due.wake();
        }
    }

    /// Drops the body of a slot.
    pub(crate) fn free(&self, slot: u32) {
        let location = self.slots.clear(slot);
        self.dropped.fetch_add(1, Relaxed);
        self.lost.remove(slot);
        if let Some(disk) = &self.disk {
            disk.cache.remove(location);
        }
        if let Some(segment) = self.table.get(location.segment) {
            self.release(location, segment.header(location.word as usize).words());
        }
        self.slots.give_back(slot);
        // Here and not where segments are emptied or closed: a waker is called without a lock.
        if self.is_compaction_due() {
            self.due.wake();
        }
        if let Some(disk) = self.disk.as_ref().filter(|_| self.has_room()) {
            disk.room.wake();
        }
    }

    /// Counts the words of a body that is written next as live.
    pub(crate) fn retain(&self, segment: &Segment, words: usize) {
        segment.retain(words);
        self.live.fetch_add(words, Relaxed);
    }

    /// Turns the words at a location into garbage, and frees their segment if nothing else in it is in use.
    pub(crate) fn release(&self, location: Location, words: usize) {
        let Some(segment) = self.table.get(location.segment) else { return };
        self.live.fetch_sub(words, Relaxed);
        self.garbage.fetch_add(words, Relaxed);
        if segment.release(words) {
            self.remove(location.segment, &segment);
        }
    }

    /// Closes a segment, and frees it if nothing in it is in use.
    pub(crate) fn close(&self, number: u32, segment: &Segment) {
        if let Some(disk) = &self.disk {
            if segment.is_in_memory() {
                disk.closed.fetch_add(segment.capacity() * WORD, Relaxed);
            }
            disk.changed();
        }
        if segment.close() {
            self.remove(number, segment);
        }
        self.due.closed();
    }

    fn remove(&self, number: u32, segment: &Segment) {
        self.table.remove(number);
        self.pass(segment);
        self.garbage.fetch_sub(segment.written(), Relaxed);
        if let Some(disk) = self.disk.as_ref().filter(|_| segment.is_in_memory()) {
            disk.closed.fetch_sub(segment.capacity() * WORD, Relaxed);
        }
    }

    /// Whether bodies are outside, or there is so much garbage, or so much free space in a file, that compaction pays.
    pub(crate) fn is_compaction_due(&self) -> bool {
        self.is_outside_due() && !self.is_congested()
            || self.is_garbage_due()
            || self.disk.as_ref().is_some_and(|disk| disk.is_sparse().is_some())
    }

    /// Whether there is so much garbage that compaction pays.
    pub(crate) fn is_garbage_due(&self) -> bool {
        let allowed = self.live.load(Relaxed) * self.options.garbage_percent / 100;
        self.garbage() > allowed.max(self.due.tolerated()).max(MIN_GARBAGE)
    }

    /// Compaction can do nothing now, until there are `more` words of garbage or segments change.
    pub(crate) fn tolerate(&self, more: usize) {
        self.due.tolerate(self.garbage().saturating_add(more));
        if let Some(disk) = &self.disk {
            disk.tolerate_free();
        }
    }

    /// Words of bodies that are no longer in use.
    pub(crate) fn garbage(&self) -> usize {
        self.garbage.load(Relaxed)
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let segment = (self.options.segment_bytes / WORD).clamp(HEADER_WORDS, u32::MAX as usize);
        Sizes { words: self.table.words(), segment, on_disk: self.disk.is_some() }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
