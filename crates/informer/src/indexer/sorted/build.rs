//! Building a set from many entries at once.

use super::{Child, INNER, LEAF, Node, SortedSet};
use std::sync::Arc;

/// A set that is being filled with entries, most of them in ascending order.
///
/// 1. The result is the same set as if the entries were inserted one by one, with the same nodes if all of them ascend.
/// 2. Ascending entries fill one leaf after the other, without a search and without a copy of a node.
/// 3. From the first entry that is not greater than the one before it, every entry is inserted as usual, and replaces one
///    that it is equal to.
/// 4. If comparing panics, the entry is not added, and the builder can still be used.
pub(crate) struct SetBuilder<E> {
    nodes: Nodes<E>,
    /// Has all entries, once one of them was not greater than the one before it.
    unordered: Option<SortedSet<E>>,
}

/// The right edge of a tree.
struct Nodes<E> {
    /// Invariant: empty only if there is no entry at all.
    leaf: Vec<E>,
    /// The inner nodes above the leaf, lowest first, without their last child. Invariant: none of them is empty.
    inner: Vec<Vec<Child<E>>>,
    len: usize,
}

impl<E: Clone + Ord> SortedSet<E> {
    /// Builds a set in linear time from entries in strictly ascending order. Other entries are inserted one by one.
    pub(crate) fn from_sorted(entries: impl IntoIterator<Item = E>) -> Self {
        let mut builder = SetBuilder::new();
        entries.into_iter().for_each(|entry| builder.push(entry));
        builder.finish()
    }
}

impl<E: Clone + Ord> SetBuilder<E> {
    pub(crate) fn new() -> Self {
        Self { nodes: Nodes::new(), unordered: None }
    }

    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: E) {
        if let Some(set) = &mut self.unordered {
            set.insert(entry);
        } else if self.nodes.leaf.last().is_none_or(|last| *last < entry) {
            self.nodes.push(entry);
        } else {
            let nodes = std::mem::replace(&mut self.nodes, Nodes::new());
            self.unordered.insert(nodes.finish()).insert(entry);
        }
    }

    /// Adds an entry without comparing it, which would read the object that it refers to.
    ///
    /// The caller guarantees that it is greater than all entries before it.
    pub(crate) fn push_greater(&mut self, entry: E) {
        debug_assert!(self.is_ascending() && self.nodes.leaf.last().is_none_or(|last| *last < entry));
        self.nodes.push(entry);
    }

    /// Whether each entry was greater than the one before it.
    pub(crate) fn is_ascending(&self) -> bool {
        self.unordered.is_none()
    }

    pub(crate) fn finish(self) -> SortedSet<E> {
        self.unordered.unwrap_or_else(|| self.nodes.finish())
    }
}

impl<E: Clone> Nodes<E> {
    fn new() -> Self {
        Self { leaf: Vec::new(), inner: Vec::new(), len: 0 }
    }

    fn push(&mut self, entry: E) {
        if self.leaf.len() == LEAF {
            let full = std::mem::take(&mut self.leaf);
            self.add_child(0, Node::Leaf(full));
        }
        if self.leaf.is_empty() {
            self.leaf.reserve_exact(LEAF);
        }
        self.leaf.push(entry);
        self.len += 1;
    }

    /// Adds a node to the inner node at a height. A full one moves up first.
    fn add_child(&mut self, height: usize, node: Node<E>) {
        if self.inner.len() == height {
            self.inner.push(Vec::with_capacity(INNER));
        }
        if self.inner[height].len() == INNER {
            let full = std::mem::replace(&mut self.inner[height], Vec::with_capacity(INNER));
            self.add_child(height + 1, Node::Inner(full));
        }
        self.inner[height].push(Child { first: node.first().clone(), node: Arc::new(node) });
    }

    fn finish(mut self) -> SortedSet<E> {
        if self.leaf.is_empty() {
            return SortedSet::new();
        }
        let mut leaf = std::mem::take(&mut self.leaf);
        leaf.shrink_to_fit();
        let (mut root, mut height) = (Node::Leaf(leaf), 0);
        // An inner node that moves up may add one more level.
        while height < self.inner.len() {
            self.add_child(height, root);
            let mut children = std::mem::take(&mut self.inner[height]);
            children.shrink_to_fit();
            root = Node::Inner(children);
            height += 1;
        }
        SortedSet { root: Some(Arc::new(root)), len: self.len }
    }
}

#[cfg(test)]
mod tests;
