//! Appending bodies to segments.

use crate::{
    location::Location,
    segment::{Header, Segment, words_of},
    store::Shared,
    table::Table,
};
use std::sync::Arc;

/// Words of the smallest segment. Small stores stay small.
const MIN_WORDS: usize = 512;
/// A new segment has at most this part of what the store has already, so that the unused end of it stays small, too.
const GROWTH: usize = 16;
/// A body larger than this part of a segment gets a segment of its own, so that the ends of segments stay small.
const LARGE: usize = 8;

/// Writes bodies to the end of an open segment, and opens the next one when that is full.
///
/// A store has two: new bodies do not mix with those that compaction moves, which are likely to live longer.
#[derive(Default)]
pub(crate) struct Appender {
    open: Option<Open>,
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
    /// Words of the largest segment, unless one body needs more.
    pub(crate) max_words: usize,
}

impl Sizes {
    fn next_segment(self) -> usize {
        (self.words / GROWTH).max(MIN_WORDS).min(self.max_words)
    }
}

impl Appender {
    /// Writes a body and counts it as live. It can be read once its slot has the returned location.
    pub(crate) fn append(&mut self, shared: &Shared, header: Header, bytes: &[u8]) -> Location {
        let words = words_of(bytes.len());
        if let Some(open) = self.open.as_mut().filter(|open| open.end + words <= open.segment.capacity()) {
            return open.write(shared, header, bytes);
        }
        let size = shared.sizes().next_segment();
        if words > size / LARGE {
            let mut alone = Open::new(&shared.table, words);
            let location = alone.write(shared, header, bytes);
            alone.close(shared);
            return location;
        }
        self.close(shared);
        self.open.insert(Open::new(&shared.table, size)).write(shared, header, bytes)
    }

    /// Closes the open segment, so that it can be compacted.
    pub(crate) fn close(&mut self, shared: &Shared) {
        if let Some(full) = self.open.take() {
            full.close(shared);
        }
    }
}

impl Open {
    fn new(table: &Table, words: usize) -> Self {
        let segment = Arc::new(Segment::new(words));
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
