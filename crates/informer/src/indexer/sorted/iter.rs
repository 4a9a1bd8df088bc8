//! Walking a sorted set.

use super::{Child, Node};
use std::slice;

/// A walk over the leaves, in one direction.
struct Walk<'a, E> {
    /// For each inner node between the root and the leaf, the children that are still to be visited.
    above: Vec<slice::Iter<'a, Child<E>>>,
    leaf: slice::Iter<'a, E>,
}

impl<'a, E> Walk<'a, E> {
    fn empty() -> Self {
        Self { above: Vec::new(), leaf: [].iter() }
    }

    /// Goes down to the first leaf under a node, as `next` takes children.
    fn descend(
        &mut self,
        mut node: &'a Node<E>,
        next: impl Fn(&mut slice::Iter<'a, Child<E>>) -> Option<&'a Child<E>>,
    ) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
                Node::Inner(children) => {
                    let mut children = children.iter();
                    let Some(first) = next(&mut children) else { return };
                    self.above.push(children);
                    node = &first.node;
                }
            }
        }
    }

    /// Goes to the leaf after the current one. Returns whether there is one.
    fn next_leaf(&mut self, next: impl Fn(&mut slice::Iter<'a, Child<E>>) -> Option<&'a Child<E>>) -> bool {
        while let Some(children) = self.above.last_mut() {
            if let Some(child) = next(children) {
                self.descend(&child.node, next);
                return true;
            }
            self.above.pop();
        }
        false
    }

    fn forward(&mut self) -> Option<&'a E> {
        loop {
            if let Some(entry) = self.leaf.next() {
                return Some(entry);
            }
            if !self.next_leaf(Iterator::next) {
                return None;
            }
        }
    }

    fn backward(&mut self) -> Option<&'a E> {
        loop {
            if let Some(entry) = self.leaf.next_back() {
                return Some(entry);
            }
            if !self.next_leaf(DoubleEndedIterator::next_back) {
                return None;
            }
        }
    }
}

/// All entries of a set, from both ends.
pub(crate) struct Iter<'a, E> {
    root: Option<&'a Node<E>>,
    front: Walk<'a, E>,
    /// `None` until an entry is taken from the end.
    back: Option<Walk<'a, E>>,
    /// Entries that neither end has returned.
    left: usize,
}

impl<'a, E> Iter<'a, E> {
    pub(super) fn new(root: Option<&'a Node<E>>, len: usize) -> Self {
        let mut front = Walk::empty();
        if let Some(root) = root {
            front.descend(root, Iterator::next);
        }
        Self { root, front, back: None, left: len }
    }
}

impl<'a, E> Iterator for Iter<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        self.left = self.left.checked_sub(1)?;
        self.front.forward()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<E> DoubleEndedIterator for Iter<'_, E> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let root = self.root?;
        let back = self.back.get_or_insert_with(|| {
            let mut back = Walk::empty();
            back.descend(root, DoubleEndedIterator::next_back);
            back
        });
        back.backward()
    }
}

impl<E> ExactSizeIterator for Iter<'_, E> {}

/// The entries from somewhere in a set to its end.
pub(crate) struct Rest<'a, E>(Walk<'a, E>);

impl<'a, E> Rest<'a, E> {
    pub(super) fn new(root: Option<&'a Node<E>>, before: impl Fn(&E) -> bool) -> Self {
        let mut walk = Walk::empty();
        let mut node = root;
        while let Some(next) = node {
            node = match next {
                Node::Inner(children) => {
                    let at = children.partition_point(|child| before(&child.first)).saturating_sub(1);
                    walk.above.push(children[at + 1..].iter());
                    Some(&children[at].node)
                }
                Node::Leaf(entries) => {
                    walk.leaf = entries[entries.partition_point(&before)..].iter();
                    None
                }
            };
        }
        Self(walk)
    }
}

impl<'a, E> Iterator for Rest<'a, E> {
    type Item = &'a E;

    fn next(&mut self) -> Option<&'a E> {
        self.0.forward()
    }
}
