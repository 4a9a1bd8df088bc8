//! The difference between two sets that share nodes.

use super::Node;
use std::{cmp::Ordering, sync::Arc};

/// One difference between two sets.
#[derive(Debug)]
pub(crate) enum Change<'a, E> {
    Added(&'a E),
    Replaced { old: &'a E, new: &'a E },
    Removed(&'a E),
}

/// Walks both sets side by side. A node that both sets have is skipped where the walks meet at its start.
pub(super) struct Diff<'a, E, F> {
    /// The parts that are still to be compared, the next one last.
    old: Vec<Part<'a, E>>,
    new: Vec<Part<'a, E>>,
    is_same: F,
}

enum Part<'a, E> {
    Node(&'a Arc<Node<E>>),
    /// The rest of a leaf.
    Entries(&'a [E]),
}

impl<E> Clone for Part<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for Part<'_, E> {}

impl<'a, E: Ord, F: Fn(&E, &E) -> bool> Diff<'a, E, F> {
    pub(super) fn new(old: Option<&'a Arc<Node<E>>>, new: Option<&'a Arc<Node<E>>>, is_same: F) -> Self {
        let parts = |root: Option<&'a Arc<Node<E>>>| root.map(Part::Node).into_iter().collect();
        Self { old: parts(old), new: parts(new), is_same }
    }

    /// Takes both first parts off if they are one node. Otherwise opens one of them, or both if they are of one kind, and
    /// returns whether there was a node to open.
    fn open(&mut self) -> bool {
        match (self.old.last(), self.new.last()) {
            (Some(Part::Node(old)), Some(Part::Node(new))) if Arc::ptr_eq(old, new) => {
                self.old.pop();
                self.new.pop();
            }
            (Some(Part::Node(old)), Some(Part::Node(new))) => {
                let (inner, other) = (old.is_inner(), new.is_inner());
                if inner || !other {
                    open(&mut self.old);
                }
                if other || !inner {
                    open(&mut self.new);
                }
            }
            (Some(Part::Node(_)), _) => open(&mut self.old),
            (_, Some(Part::Node(_))) => open(&mut self.new),
            _ => return false,
        }
        true
    }
}

impl<'a, E: Ord, F: Fn(&E, &E) -> bool> Iterator for Diff<'a, E, F> {
    type Item = Change<'a, E>;

    fn next(&mut self) -> Option<Change<'a, E>> {
        loop {
            if self.open() {
                continue;
            }
            let (old, new) = (first(&mut self.old), first(&mut self.new));
            let order = match (old, new) {
                (None, None) if self.old.is_empty() && self.new.is_empty() => return None,
                // A leaf is read to its end: the next part is a node, or there is none.
                (None, _) if !self.old.is_empty() => continue,
                (_, None) if !self.new.is_empty() => continue,
                (Some(old), Some(new)) => old.cmp(new),
                (Some(_), None) => Ordering::Less,
                (None, _) => Ordering::Greater,
            };
            if order != Ordering::Greater {
                advance(&mut self.old);
            }
            if order != Ordering::Less {
                advance(&mut self.new);
            }
            return Some(match (order, old, new) {
                (Ordering::Less, Some(old), _) => Change::Removed(old),
                (Ordering::Greater, _, Some(new)) => Change::Added(new),
                (Ordering::Equal, Some(old), Some(new)) if !(self.is_same)(old, new) => {
                    Change::Replaced { old, new }
                }
                _ => continue,
            });
        }
    }
}

/// Replaces the node that is the next part by what is in it.
fn open<'a, E>(parts: &mut Vec<Part<'a, E>>) {
    match parts.pop() {
        Some(Part::Node(node)) => match &**node {
            Node::Leaf(entries) => parts.push(Part::Entries(entries)),
            Node::Inner(children) => parts.extend(children.iter().rev().map(|child| Part::Node(&child.node))),
        },
        other => parts.extend(other),
    }
}

/// The next entry. Takes a leaf off that is read to its end.
fn first<'a, E>(parts: &mut Vec<Part<'a, E>>) -> Option<&'a E> {
    let Some(Part::Entries(entries)) = parts.last() else { return None };
    let first = entries.first();
    if first.is_none() {
        parts.pop();
    }
    first
}

/// Goes behind the next entry.
fn advance<E>(parts: &mut [Part<'_, E>]) {
    if let Some(Part::Entries(entries)) = parts.last_mut() {
        *entries = entries.get(1..).unwrap_or_default();
    }
}

impl<E> Node<E> {
    fn is_inner(&self) -> bool {
        matches!(self, Self::Inner(_))
    }
}
