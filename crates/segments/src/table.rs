//! The segments of a store, by number.

use crate::segment::Segment;
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex, PoisonError};

/// The segments of a store. Readers look up a segment without a lock.
pub(crate) struct Table {
    /// In ascending order of numbers.
    segments: ArcSwap<Vec<(u32, Arc<Segment>)>>,
    /// The number of the next segment, held while the table changes. Numbers are never reused: a location either finds
    /// the segment it was made for or none.
    next: Mutex<u32>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self { segments: ArcSwap::default(), next: Mutex::new(1) }
    }

    /// The segment with a number, unless it was freed.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Segment>> {
        let segments = self.segments.load();
        let at = segments.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(Arc::clone(&segments[at].1))
    }

    /// Adds a segment and returns its number.
    pub(crate) fn add(&self, segment: &Arc<Segment>) -> u32 {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let number = *next;
        *next = number.checked_add(1).expect("fewer than four billion segments in the life of a store");
        let mut segments = Vec::clone(&self.segments.load());
        segments.push((number, Arc::clone(segment)));
        self.segments.store(Arc::new(segments));
        number
    }

    /// Frees a segment; readers that have it go on.
    pub(crate) fn remove(&self, number: u32) {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let mut segments = Vec::clone(&self.segments.load());
        segments.retain(|(other, _)| *other != number);
        self.segments.store(Arc::new(segments));
    }

    /// All segments at this moment.
    pub(crate) fn all(&self) -> Arc<Vec<(u32, Arc<Segment>)>> {
        self.segments.load_full()
    }
}
