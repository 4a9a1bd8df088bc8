//! Snapshots that lists are being paged through, so that the next page is found and not computed.

use std::collections::VecDeque;

use crate::storage::Tree;

/// Snapshots kept at most. Whoever pages through an older one still gets its page, from the window or the store.
const SNAPSHOTS: usize = 8;

/// Positions remembered per snapshot: about the number of clients that page through one at the same time.
const POSITIONS: usize = 32;

/// The newest snapshots that a continue token was given for, oldest first.
///
/// A snapshot keeps alive the versions that were replaced since. It is forgotten when the window moves past it, so that nothing is kept
/// for pages that is not kept for watches anyway.
#[derive(Default)]
pub(super) struct Pages {
    snapshots: VecDeque<Page>,
}

struct Page {
    revision: u64,
    tree: Tree,
    /// What was counted, so that a page does not count the rest of the list again: oldest first.
    positions: VecDeque<(Position, usize)>,
}

/// Where a page starts: the prefix of the list and the first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) prefix: String,
    pub(super) start: String,
}

impl Pages {
    pub(super) fn clear(&mut self) {
        self.snapshots.clear();
    }

    /// Forgets snapshots before a revision.
    pub(super) fn forget_before(&mut self, revision: u64) {
        self.snapshots.retain(|page| page.revision >= revision);
    }

    /// The snapshot at a revision.
    pub(super) fn tree(&self, revision: u64) -> Option<Tree> {
        self.find(revision).map(|page| page.tree.clone())
    }

    /// How many objects there are from a position on, if that was counted.
    pub(super) fn count(&self, revision: u64, position: &Position) -> Option<usize> {
        let positions = &self.find(revision)?.positions;
        positions.iter().find(|(known, _)| known == position).map(|(_, count)| *count)
    }

    /// Remembers where the next page starts and how many objects there are from there on.
    pub(super) fn remember(&mut self, revision: u64, tree: &Tree, position: Position, count: Option<usize>) {
        let index = self.snapshots.iter().position(|page| page.revision == revision).unwrap_or_else(|| {
            self.snapshots.push_back(Page { revision, tree: tree.clone(), positions: VecDeque::new() });
            self.snapshots.len() - 1
        });
        if let Some(count) = count {
            let positions = &mut self.snapshots[index].positions;
            positions.retain(|(known, _)| *known != position);
            positions.push_back((position, count));
            keep_newest(positions, POSITIONS);
        }
        keep_newest(&mut self.snapshots, SNAPSHOTS);
    }

    fn find(&self, revision: u64) -> Option<&Page> {
        self.snapshots.iter().find(|page| page.revision == revision)
    }
}

/// Drops the oldest beyond a bound.
fn keep_newest<T>(queue: &mut VecDeque<T>, most: usize) {
    queue.drain(..queue.len().saturating_sub(most));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(start: &str) -> Position {
        Position { prefix: "/x/".to_owned(), start: start.to_owned() }
    }

    #[test]
    fn what_was_counted_is_found_again() {
        let mut pages = Pages::default();
        pages.remember(7, &Tree::new(), position("a"), Some(3));
        pages.remember(7, &Tree::new(), position("b"), None);
        assert_eq!(pages.count(7, &position("a")), Some(3));
        assert_eq!((pages.count(7, &position("b")), pages.count(8, &position("a"))), (None, None));
        assert!(pages.tree(7).is_some() && pages.tree(8).is_none());
        pages.clear();
        assert!(pages.tree(7).is_none());
    }

    #[test]
    fn what_the_window_has_left_behind_is_forgotten() {
        let mut pages = Pages::default();
        for revision in [5, 9, 7] {
            pages.remember(revision, &Tree::new(), position("a"), None);
        }
        pages.forget_before(7);
        assert!(pages.tree(5).is_none() && pages.tree(7).is_some() && pages.tree(9).is_some());
    }

    #[test]
    fn both_bounds_hold_and_the_oldest_goes_first() {
        let mut pages = Pages::default();
        for revision in 0..SNAPSHOTS as u64 + 3 {
            for n in 0..POSITIONS + 5 {
                pages.remember(revision, &Tree::new(), position(&n.to_string()), Some(n));
            }
        }
        assert_eq!(pages.snapshots.len(), SNAPSHOTS);
        assert!(pages.tree(2).is_none() && pages.tree(3).is_some());
        assert_eq!(pages.count(3, &position("4")), None);
        assert_eq!(pages.count(3, &position("5")), Some(5));
    }
}
