//! Building a table from many entries at once.

use super::{BRANCH_BITS, Branch, Entry, HashTable, MAX_DEPTH, Node, PAGE, Page};
use std::{sync::Arc, vec::IntoIter};

/// The entries that are not in a page yet, with their hashes, in the order of the hashes.
type Rest<E> = IntoIter<(u64, E)>;

impl<E: Clone> HashTable<E> {
    /// Builds a table of distinct entries with their hashes. It has the same pages as if they were inserted one by one.
    pub(crate) fn from_distinct(mut entries: Vec<(u64, E)>) -> Self {
        entries.sort_unstable_by_key(|(hash, _)| *hash);
        let len = entries.len();
        Self { root: Node::build(0, len, &mut entries.into_iter()) }
    }
}

/// The number of entries, of the next `len`, whose hashes do not have a bit set. All bits before it are the same.
fn zeros<E>(rest: &Rest<E>, len: usize, bit: u32) -> usize {
    rest.as_slice()[..len].partition_point(|(hash, _)| hash >> (u64::BITS - 1 - bit) & 1 == 0)
}

impl<E: Clone> Node<E> {
    /// Builds the node of the next `len` entries, whose hashes have all bits above this level in common.
    fn build(level: u32, len: usize, rest: &mut Rest<E>) -> Self {
        let depth = BRANCH_BITS * level;
        if Page::<E>::fits(depth, len) {
            return Self::Page(Arc::new(Page::build(depth, len, rest)));
        }
        let mut branch = Branch { starts: 0, children: Vec::new() };
        branch.build(level, depth, 0, len, rest);
        branch.children.shrink_to_fit();
        Self::Branch(Arc::new(branch))
    }
}

impl<E: Clone> Branch<E> {
    /// Adds the children from a slot on that have the next `len` entries, whose hashes have `depth` bits in common.
    fn build(&mut self, level: u32, depth: u32, slot: u32, len: usize, rest: &mut Rest<E>) {
        let bits = depth - BRANCH_BITS * level;
        if bits == BRANCH_BITS || Page::<E>::fits(depth, len) {
            self.starts |= 1 << slot;
            let child = match bits {
                BRANCH_BITS => Node::build(level + 1, len, rest),
                _ => Node::Page(Arc::new(Page::build(depth, len, rest))),
            };
            self.children.push(child);
            return;
        }
        let zeros = zeros(rest, len, depth);
        self.build(level, depth + 1, slot, zeros, rest);
        let half = 1 << (BRANCH_BITS - bits - 1);
        self.build(level, depth + 1, slot + half, len - zeros, rest);
    }
}

impl<E> Page<E> {
    /// Whether entries whose hashes have `depth` bits in common belong into one page.
    fn fits(depth: u32, len: usize) -> bool {
        len <= PAGE || depth >= MAX_DEPTH
    }

    fn build(depth: u32, len: usize, rest: &mut Rest<E>) -> Self {
        let mut entries = Vec::with_capacity(len);
        entries.extend(rest.take(len).map(|(hash, value)| Entry { tag: hash as u32, value }));
        Self { depth, entries }
    }
}

#[cfg(test)]
mod tests;
