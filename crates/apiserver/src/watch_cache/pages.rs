//! Snapshots of paged lists, so that the next page does not have to reconstruct the state.

use std::collections::VecDeque;

use crate::storage::Tree;

/// The most snapshots kept. A page of an older list is read from the window or the store.
const SNAPSHOTS: usize = 8;

/// The most page starts kept per snapshot: about the number of clients that page through it at the same time.
const PAGE_STARTS: usize = 32;

/// The newest snapshots for which a continue token was issued, oldest first.
///
/// A snapshot keeps alive the versions that were replaced since. It is removed when the window moves past it, so that pages keep no
/// version alive that the window does not keep alive as well.
#[derive(Default)]
pub(super) struct Pages {
    snapshots: VecDeque<Snapshot>,
}

struct Snapshot {
    revision: u64,
    tree: Tree,
    /// Object counts from page starts on, oldest first, so that a page does not count the rest of the list again.
    counts: VecDeque<(PageStart, usize)>,
}

/// The start of a page: the prefix of the list and the first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PageStart {
    pub(super) prefix: String,
    pub(super) start: String,
}

impl Pages {
    pub(super) fn clear(&mut self) {
        self.snapshots.clear();
    }

    /// Removes snapshots before a revision.
    pub(super) fn forget_before(&mut self, revision: u64) {
        self.snapshots.retain(|page| page.revision >= revision);
    }

    /// Returns the snapshot at a revision.
    pub(super) fn tree(&self, revision: u64) -> Option<Tree> {
        self.find(revision).map(|page| page.tree.clone())
    }

    /// Returns the number of objects from a page start on, if it was counted.
    pub(super) fn count(&self, revision: u64, start: &PageStart) -> Option<usize> {
        let counts = &self.find(revision)?.counts;
        counts.iter().find(|(known, _)| known == start).map(|(_, count)| *count)
    }

    /// Stores the start of the next page and the number of objects from there on.
    pub(super) fn remember(&mut self, revision: u64, tree: &Tree, start: PageStart, count: Option<usize>) {
        let index = self.snapshots.iter().position(|page| page.revision == revision).unwrap_or_else(|| {
            self.snapshots.push_back(Snapshot { revision, tree: tree.clone(), counts: VecDeque::new() });
            self.snapshots.len() - 1
        });
        if let Some(count) = count {
            let counts = &mut self.snapshots[index].counts;
            counts.retain(|(known, _)| *known != start);
            counts.push_back((start, count));
            keep_newest(counts, PAGE_STARTS);
        }
        keep_newest(&mut self.snapshots, SNAPSHOTS);
    }

    fn find(&self, revision: u64) -> Option<&Snapshot> {
        self.snapshots.iter().find(|page| page.revision == revision)
    }
}

/// Drops the oldest elements beyond a bound.
fn keep_newest<T>(queue: &mut VecDeque<T>, most: usize) {
    queue.drain(..queue.len().saturating_sub(most));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_start(start: &str) -> PageStart {
        PageStart { prefix: "/x/".to_owned(), start: start.to_owned() }
    }

    #[test]
    fn a_remembered_count_is_found() {
        let mut pages = Pages::default();
        pages.remember(7, &Tree::new(), page_start("a"), Some(3));
        pages.remember(7, &Tree::new(), page_start("b"), None);
        assert_eq!(pages.count(7, &page_start("a")), Some(3));
        assert_eq!((pages.count(7, &page_start("b")), pages.count(8, &page_start("a"))), (None, None));
        assert!(pages.tree(7).is_some() && pages.tree(8).is_none());
        pages.clear();
        assert!(pages.tree(7).is_none());
    }

    #[test]
    fn snapshots_older_than_the_window_are_removed() {
        let mut pages = Pages::default();
        for revision in [5, 9, 7] {
            pages.remember(revision, &Tree::new(), page_start("a"), None);
        }
        pages.forget_before(7);
        assert!(pages.tree(5).is_none() && pages.tree(7).is_some() && pages.tree(9).is_some());
    }

    #[test]
    fn both_bounds_hold_and_the_oldest_is_dropped_first() {
        let mut pages = Pages::default();
        for revision in 0..SNAPSHOTS as u64 + 3 {
            for n in 0..PAGE_STARTS + 5 {
                pages.remember(revision, &Tree::new(), page_start(&n.to_string()), Some(n));
            }
        }
        assert_eq!(pages.snapshots.len(), SNAPSHOTS);
        assert!(pages.tree(2).is_none() && pages.tree(3).is_some());
        assert_eq!(pages.count(3, &page_start("4")), None);
        assert_eq!(pages.count(3, &page_start("5")), Some(5));
    }
}
