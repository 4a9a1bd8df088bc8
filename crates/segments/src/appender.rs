//! Appending bodies to segments.

use crate::{
    location::Location,
    segment::{Header, Segment, WORD, words_of},
    store::Shared,
    table::Table,
};
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// Words of the smallest segment. Small stores stay small.
const MIN_WORDS: usize = 512;
/// A new segment has at most this part of what the store has already, so that the unused end of it stays small, too.
const GROWTH: usize = 16;
/// Words of the segments of a very large store. An allocator returns a freed one of this size to the system at once: glibc
/// maps everything larger than 32 MB. The memory of a smaller one stays in a heap, between records that are still in use.
const MAPPED: usize = (33 << 20) / WORD;
/// A body larger than this part of a segment gets a segment of its own, so that the ends of segments stay small.
const LARGE: usize = 8;

/// Writes bodies to the end of an open segment, and opens the next one when that is full.
///
/// A store has two: new bodies do not mix with those that compaction moves, which are likely to live longer.
#[derive(Default)]
pub(crate) struct Appender {
    open: Option<Open>,
    /// Memory of emptied segments, for the next ones. All have the size of a segment of a store that is not very large.
    spares: VecDeque<Box<[AtomicU64]>>,
    /// Words of all segments and spares above which no spare is kept: what the store had when everything began to be rewritten.
    /// New bodies never use spares.
    most_words: usize,
}

struct Open {
    number: u32,
    segment: Arc<Segment>,
    /// Words that are written.
    end: usize,
}

/// Sizes by which an appender opens segments.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    /// Words that the store has in all segments.
    pub(crate) words: usize,
    /// Words of a segment, unless the store is small or very large, or one body needs more.
    pub(crate) segment: usize,
    /// Whether segments are written to disk: until then they are in memory, so that none is larger than `segment`.
    pub(crate) on_disk: bool,
}

impl Sizes {
    fn next_segment(self) -> usize {
        let part = self.words / GROWTH;
        if part >= MAPPED && !self.on_disk { MAPPED } else { part.max(MIN_WORDS).min(self.segment) }
    }
}

impl Appender {
    /// Writes a body and counts it as live. It can be read once its slot has the returned location.
    pub(crate) fn append(&mut self, shared: &Shared, header: Header, bytes: &[u8]) -> Location {
        let words = words_of(bytes.len());
        if let Some(open) = self.open.as_mut().filter(|open| open.end + words <= open.segment.capacity()) {
            return open.write(shared, header, bytes);
        }
        let spare = self.spares.front().map(|spare| spare.len());
        let size = spare.unwrap_or_else(|| shared.sizes().next_segment());
        if words > size / LARGE {
            let mut alone = Open::new(&shared.table, Segment::new(words));
            let location = alone.write(shared, header, bytes);
            alone.close(shared);
            return location;
        }
        self.close(shared);
        let segment = self.take_spare(shared).map_or_else(|| Segment::new(size), Segment::of);
        self.open.insert(Open::new(&shared.table, segment)).write(shared, header, bytes)
    }

    /// Keeps the memory of an emptied segment for the next one. Otherwise it would stay free in the heap of the thread that
    /// allocated it, while the heap of this thread grows.
    pub(crate) fn recycle(&mut self, shared: &Shared, emptied: Arc<Segment>) {
        let memory = Arc::into_inner(emptied).and_then(Segment::into_memory);
        let sizes = shared.sizes();
        let has_room = sizes.words + shared.spare.load(Relaxed) + sizes.segment <= self.most_words;
        let is_usable = |words: usize| has_room && words == sizes.segment && !sizes.on_disk;
        if let Some(memory) = memory.filter(|memory| is_usable(memory.len())) {
            shared.spare.fetch_add(memory.len(), Relaxed);
            self.spares.push_back(memory);
        }
    }

    /// Everything is rewritten from now on: the memory that is freed may be kept, as far as the store does not grow.
    pub(crate) fn begin_rewrite(&mut self, shared: &Shared) {
        self.close(shared);
        self.most_words = shared.sizes().words;
    }

    /// Frees what [`recycle`](Self::recycle) has kept.
    pub(crate) fn free_spares(&mut self, shared: &Shared) {
        while self.take_spare(shared).is_some() {}
        self.spares = VecDeque::new();
    }

    fn take_spare(&mut self, shared: &Shared) -> Option<Box<[AtomicU64]>> {
        let spare = self.spares.pop_front()?;
        shared.spare.fetch_sub(spare.len(), Relaxed);
        Some(spare)
    }

    /// Closes the open segment, so that it can be compacted.
    pub(crate) fn close(&mut self, shared: &Shared) {
        if let Some(full) = self.open.take() {
            full.close(shared);
        }
    }
}

impl Open {
    fn new(table: &Table, segment: Segment) -> Self {
        let segment = Arc::new(segment);
        Self { number: table.add(&segment), segment, end: 0 }
    }

    fn write(&mut self, shared: &Shared, header: Header, bytes: &[u8]) -> Location {
        let location = Location { segment: self.number, word: self.end as u32 };
        shared.retain(&self.segment, header.words());
        self.segment.write(self.end, header, bytes);
        self.end += header.words();
        location
    }

    fn close(self, shared: &Shared) {
        shared.close(self.number, &self.segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_grow_with_the_store() {
        let segment = (256 << 10) / WORD;
        let next = |words, on_disk| Sizes { words, segment, on_disk }.next_segment();
        assert_eq!(next(0, false), MIN_WORDS);
        assert_eq!(next(MIN_WORDS * GROWTH * 2, false), MIN_WORDS * 2);
        assert_eq!(next(MAPPED * GROWTH - 1, false), segment);
        assert_eq!(next(MAPPED * GROWTH, false), MAPPED);
        assert_eq!(next(usize::MAX, true), segment, "what is written to disk is in memory until then");
    }
}
