//! The segments of a store, by number.

use crate::{segment::Segment, store::lock};
use arc_swap::ArcSwap;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Segments of one page. A change copies one page and the list of pages: a store with many large bodies has a segment
/// for each.
const PAGE: usize = 128;

type Page = Arc<[(u32, Arc<Segment>)]>;

/// The segments of a store. Readers look up a segment without a lock.
pub(crate) struct Table {
    /// In ascending order of numbers, no page empty.
    pages: ArcSwap<Vec<Page>>,
    /// Words of all segments.
    words: AtomicUsize,
    /// Words of those that are in memory.
    memory_words: AtomicUsize,
    /// The number of the next segment, held while the table changes. Numbers are never reused: a location either finds
    /// the segment it was made for or none.
    next: Mutex<u32>,
}

/// The segments of a store at one moment.
pub(crate) struct Segments(Arc<Vec<Page>>);

impl Table {
    pub(crate) fn new() -> Self {
        let (words, memory_words) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { pages: ArcSwap::default(), words, memory_words, next: Mutex::new(1) }
    }

    /// The segment with a number, unless it was freed.
    pub(crate) fn get(&self, number: u32) -> Option<Arc<Segment>> {
        let pages = self.pages.load();
        let page = page_of(&pages, number)?;
        let at = page.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(Arc::clone(&page[at].1))
    }

    /// Adds a segment and returns its number.
    pub(crate) fn add(&self, segment: &Arc<Segment>) -> u32 {
        let mut next = lock(&self.next);
        let number = *next;
        *next = number.checked_add(1).expect("fewer than four billion segments in the life of a store");
        let mut pages = Vec::clone(&self.pages.load());
        let last = pages.pop_if(|last| last.len() < PAGE);
        let added = [(number, Arc::clone(segment))];
        pages.push(last.iter().flat_map(|last| last.iter()).chain(&added).cloned().collect());
        self.words.fetch_add(segment.capacity(), Relaxed);
        if segment.is_in_memory() {
            self.memory_words.fetch_add(segment.capacity(), Relaxed);
        }
        self.pages.store(Arc::new(pages));
        number
    }

    /// Frees a segment; readers that have it go on.
    pub(crate) fn remove(&self, number: u32) {
        let _next = lock(&self.next);
        let mut pages = Vec::clone(&self.pages.load());
        let at = pages.partition_point(|page| page[0].0 <= number);
        let Some(at) = at.checked_sub(1) else { return };
        let (removed, rest): (Vec<_>, Vec<_>) =
            pages[at].iter().cloned().partition(|(other, _)| *other == number);
        // Small pages are joined with their neighbours: there are never many of them.
        let joined = pages.get(at + 1).filter(|after| rest.len() + after.len() <= PAGE / 2).cloned();
        let after = if joined.is_some() { at + 2 } else { at + 1 };
        let page: Page =
            rest.into_iter().chain(joined.iter().flat_map(|after| after.iter()).cloned()).collect();
        pages.splice(at..after, Some(page).filter(|page| !page.is_empty()));
        for (_, segment) in &removed {
            self.words.fetch_sub(segment.capacity(), Relaxed);
            if segment.is_in_memory() {
                self.memory_words.fetch_sub(segment.capacity(), Relaxed);
            }
        }
        self.pages.store(Arc::new(pages));
    }

    /// All segments at this moment.
    pub(crate) fn all(&self) -> Segments {
        Segments(self.pages.load_full())
    }

    /// Words of all segments.
    pub(crate) fn words(&self) -> usize {
        self.words.load(Relaxed)
    }

    /// Words of the segments in memory.
    pub(crate) fn memory_words(&self) -> usize {
        self.memory_words.load(Relaxed)
    }
}

impl Segments {
    /// In ascending order of numbers.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, &Arc<Segment>)> {
        self.0.iter().flat_map(|page| page.iter()).map(|(number, segment)| (*number, segment))
    }
}

/// The only page in which a number can be.
fn page_of(pages: &[Page], number: u32) -> Option<&Page> {
    pages[..pages.partition_point(|page| page[0].0 <= number)].last()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_until_it_is_removed() {
        let table = Table::new();
        let mut expected = std::collections::BTreeMap::new();
        let mut random = 1_u32;
        for round in 0..2000_usize {
            let segment = Arc::new(Segment::new(round % 3));
            expected.insert(table.add(&segment), segment);
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Fills up, then empties.
            let removals = if round < 1000 { random >> 31 } else { 1 + (random >> 31) };
            for _ in 0..removals {
                let Some(number) =
                    expected.range(random % (round as u32 + 2)..).next().map(|(number, _)| *number)
                else {
                    continue;
                };
                expected.remove(&number);
                table.remove(number);
                assert!(table.get(number).is_none());
            }
            assert_eq!(table.words(), expected.values().map(|segment| segment.capacity()).sum::<usize>());
        }
        let all = table.all();
        let all: Vec<u32> = all.iter().map(|(number, _)| number).collect();
        assert_eq!(all, expected.keys().copied().collect::<Vec<_>>());
        for (number, segment) in &expected {
            assert!(Arc::ptr_eq(&table.get(*number).expect("a segment"), segment));
        }
        let pages = table.pages.load();
        assert!(pages.iter().all(|page| !page.is_empty() && page.len() <= PAGE));
        assert!(pages.len() <= 2 + 4 * expected.len().div_ceil(PAGE), "{} pages", pages.len());
    }
}
