//! The store: inserting, reading, dropping.

use crate::{
    Body, CompactionStep, Usage,
    appender::{Appender, Sizes},
    compaction::{Compaction, Goal},
    due::Due,
    location::Location,
    segment::{HEADER_WORDS, Header, Segment},
    slots::Slots,
    table::Table,
};
use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

const WORD: usize = size_of::<u64>();
/// Words of garbage for which compaction never starts: in a small store a percentage is a few bodies.
const MIN_GARBAGE: usize = 1024;

/// How a [`SegmentStore`] lays out its segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreOptions {
    /// Bytes of a segment. Small stores use smaller ones; a body that needs more gets a segment of its own.
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
    store: Arc<Store<C>>,
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
    /// Words of live bodies in all segments.
    live: AtomicUsize,
    /// Words of bodies that are no longer in use, in segments that are not freed yet.
    garbage: AtomicUsize,
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
        let shared = Shared {
            options,
            slots: Slots::new(),
            table: Table::new(),
            due: Due::default(),
            live: AtomicUsize::new(0),
            garbage: AtomicUsize::new(0),
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

    /// Bytes of all bodies in use, with their headers.
    pub fn live_bytes(&self) -> usize {
        self.store.shared.live.load(Relaxed) * WORD
    }

    /// The memory in use. Walks the segments: for reports, not for each object.
    pub fn usage(&self) -> Usage {
        let shared = &self.store.shared;
        let segments = shared.table.all();
        let mut usage = Usage::default();
        for (_, segment) in segments.iter() {
            usage.segments += 1;
            let written = segment.written();
            let live = segment.live().min(written);
            usage.live += live * WORD;
            usage.garbage += (written - live) * WORD;
            usage.unused += (segment.capacity() - written) * WORD;
        }
        let per_segment = size_of::<Segment>() + 2 * size_of::<usize>() + size_of::<(u32, Arc<Segment>)>();
        usage.tables = shared.slots.heap_size() + usage.segments * per_segment + size_of::<Store<C>>();
        usage
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
    /// The segment and the word at which the body of a slot starts.
    ///
    /// The slot belongs to a body that the caller has: it is not dropped meanwhile.
    pub(crate) fn find(&self, slot: u32) -> (Arc<Segment>, usize) {
        loop {
            let location = self.slots.get(slot);
            // A segment is freed after all its bodies have been moved: the slot has a newer location then.
            if let Some(segment) = self.table.get(location.segment) {
                return (segment, location.word as usize);
            }
        }
    }

    /// Drops the body of a slot.
    pub(crate) fn free(&self, slot: u32) {
        let location = self.slots.clear(slot);
        if let Some(segment) = self.table.get(location.segment) {
            self.release(location, segment.header(location.word as usize).words());
        }
        self.slots.give_back(slot);
        // Here and not where segments are emptied or closed: a waker is called without a lock.
        if self.is_compaction_due() {
            self.due.wake();
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
        if segment.close() {
            self.remove(number, segment);
        }
        self.due.closed();
    }

    fn remove(&self, number: u32, segment: &Segment) {
        self.table.remove(number);
        self.garbage.fetch_sub(segment.written(), Relaxed);
    }

    /// Whether there is so much garbage that compaction pays.
    pub(crate) fn is_compaction_due(&self) -> bool {
        let allowed = self.live.load(Relaxed) * self.options.garbage_percent / 100;
        self.garbage() > allowed.max(self.due.tolerated()).max(MIN_GARBAGE)
    }

    /// Words of bodies that are no longer in use.
    pub(crate) fn garbage(&self) -> usize {
        self.garbage.load(Relaxed)
    }

    pub(crate) fn sizes(&self) -> Sizes {
        let max_words = (self.options.segment_bytes / WORD).clamp(HEADER_WORDS, u32::MAX as usize);
        Sizes { words: self.table.words(), max_words }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
