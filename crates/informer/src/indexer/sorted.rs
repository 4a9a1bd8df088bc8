//! A sorted set that shares its nodes with its clones.

mod build;
mod diff;
mod iter;

pub(super) use build::SetBuilder;
pub(super) use diff::Change;
pub(super) use iter::{Iter, Rest};

use diff::Diff;
use equivalent::Comparable;
use std::{cmp::Ordering, sync::Arc};

/// Entries of a full leaf. A change copies one, and counts a reference to each of its objects.
const LEAF: usize = 16;
/// Children of a full inner node.
const INNER: usize = 32;

/// A sorted set of small entries, such as references to objects.
///
/// 1. Cloning is a reference count. A change copies the nodes between the root and one leaf, if a clone has them, too.
/// 2. No entry is kept that is not in the set: inner nodes refer to entries of their leaves only.
/// 3. Entries that are inserted in ascending order fill leaves completely.
/// 4. If comparing panics, the set is unchanged.
pub(crate) struct SortedSet<E> {
    root: Option<Arc<Node<E>>>,
    len: usize,
}

/// Invariant: sorted, and not empty. A node with `Inner` children has them all at the same height.
#[derive(Clone)]
enum Node<E> {
    Leaf(Vec<E>),
    Inner(Vec<Child<E>>),
}

#[derive(Clone)]
struct Child<E> {
    /// The first entry in `node`: here, so that a search does not look into each child.
    first: E,
    node: Arc<Node<E>>,
}

/// The effect of an insertion on a node.
enum Inserted<E> {
    Added,
    Replaced(E),
    /// Added, and the second half of the node is in a node of its own.
    Split(Child<E>),
}

/// Where an entry was inserted into a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// It may be the first entry of the node now.
    First,
    Later,
}

impl<E: Clone> SortedSet<E> {
    pub(crate) fn new() -> Self {
        Self { root: None, len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes on the heap, without those that entries have there.
    pub(crate) fn heap_size(&self) -> usize {
        self.root.as_ref().map_or(0, |root| root.heap_size())
    }

    /// The entry that `query` compares equal to.
    pub(crate) fn get<Q: Comparable<E> + ?Sized>(&self, query: &Q) -> Option<&E> {
        let mut node = self.root.as_deref()?;
        loop {
            match node {
                Node::Inner(children) => node = &children[child_of(children, query)].node,
                Node::Leaf(entries) => {
                    return entries
                        .binary_search_by(|entry| query.compare(entry).reverse())
                        .ok()
                        .map(|at| &entries[at]);
                }
            }
        }
    }

    /// All entries in order.
    pub(crate) fn iter(&self) -> Iter<'_, E> {
        Iter::new(self.root.as_deref(), self.len)
    }

    /// The entries in order, from the first that `query` is not greater than.
    pub(crate) fn from<Q: Comparable<E> + ?Sized>(&self, query: &Q) -> Rest<'_, E> {
        self.after(|entry| query.compare(entry) == Ordering::Greater)
    }

    /// The entries in order, from the first that is not `before`. Entries that are come before those that are not.
    pub(crate) fn after(&self, before: impl Fn(&E) -> bool) -> Rest<'_, E> {
        Rest::new(self.root.as_deref(), before)
    }

    /// The changes that turn this set into `new`, in order. Nodes that both share are skipped. `is_same` returns whether
    /// two entries that compare equal are one.
    pub(crate) fn diff<'a>(
        &'a self,
        new: &'a Self,
        is_same: impl Fn(&E, &E) -> bool,
    ) -> impl Iterator<Item = Change<'a, E>>
    where
        E: Ord,
    {
        Diff::new(self.root.as_ref(), new.root.as_ref(), is_same)
    }

    /// Whether both are the same tree.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.root, &other.root) {
            (Some(own), Some(others)) => Arc::ptr_eq(own, others),
            (own, others) => own.is_none() && others.is_none(),
        }
    }

    /// Removes the entry that `query` compares equal to, and returns it.
    pub(crate) fn remove<Q: Comparable<E> + ?Sized>(&mut self, query: &Q) -> Option<E> {
        // Looked up first: a removal of nothing copies nothing.
        self.get(query)?;
        let root = Arc::make_mut(self.root.as_mut()?);
        let removed = root.remove(query);
        self.len -= usize::from(removed.is_some());
        let only = match root {
            Node::Leaf(entries) if entries.is_empty() => None,
            Node::Inner(children) if children.len() == 1 => children.pop().map(|child| child.node),
            _ => return removed,
        };
        self.root = only;
        removed
    }
}

impl<E: Clone + Ord> SortedSet<E> {
    /// Adds an entry and returns the equal one that it replaces.
    pub(crate) fn insert(&mut self, entry: E) -> Option<E> {
        self.replace(entry, |_| false)
    }

    /// Inserts an entry as [`insert`](Self::insert) does. If `is_old` accepts an entry of its leaf, it replaces that one without
    /// a comparison, which would read the objects that both refer to.
    ///
    /// The caller guarantees that the two are equal.
    pub(crate) fn replace(&mut self, entry: E, is_old: impl Fn(&E) -> bool) -> Option<E> {
        let Some(root) = &mut self.root else {
            self.root = Some(Arc::new(Node::Leaf(vec![entry])));
            self.len = 1;
            return None;
        };
        match Arc::make_mut(root).insert(entry, &is_old).0 {
            Inserted::Replaced(old) => return Some(old),
            Inserted::Added => {}
            Inserted::Split(second) => {
                let first = Child { first: root.first().clone(), node: Arc::clone(root) };
                *root = Arc::new(Node::Inner(vec![first, second]));
            }
        }
        self.len += 1;
        None
    }
}

impl<E> Clone for SortedSet<E> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), len: self.len }
    }
}

/// The child that has the entry, if any has.
fn child_of<E, Q: Comparable<E> + ?Sized>(children: &[Child<E>], query: &Q) -> usize {
    children.partition_point(|child| query.compare(&child.first) != Ordering::Less).saturating_sub(1)
}

impl<E: Clone> Node<E> {
    fn first(&self) -> &E {
        match self {
            Self::Leaf(entries) => &entries[0],
            Self::Inner(children) => &children[0].first,
        }
    }

    /// Bytes of this node and of those below it.
    fn heap_size(&self) -> usize {
        let below = match self {
            Self::Leaf(entries) => entries.capacity() * size_of::<E>(),
            Self::Inner(children) => {
                let nodes: usize = children.iter().map(|child| child.node.heap_size()).sum();
                children.capacity() * size_of::<Child<E>>() + nodes
            }
        };
        2 * size_of::<usize>() + size_of::<Self>() + below
    }

    fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Self::Leaf(_) => LEAF,
            Self::Inner(_) => INNER,
        }
    }

    /// Leaves the node empty if it had no other entry.
    fn remove<Q: Comparable<E> + ?Sized>(&mut self, query: &Q) -> Option<E> {
        match self {
            Self::Leaf(entries) => {
                let at = entries.binary_search_by(|entry| query.compare(entry).reverse()).ok()?;
                Some(entries.remove(at))
            }
            Self::Inner(children) => {
                let at = child_of(children, query);
                let child = &mut children[at];
                let node = Arc::make_mut(&mut child.node);
                let removed = node.remove(query);
                if node.len() == 0 {
                    children.remove(at);
                    return removed;
                }
                child.first = node.first().clone();
                let small = node.len() <= node.capacity() / 4;
                if small && children.len() > 1 {
                    merge(children, at.min(children.len() - 2));
                }
                removed
            }
        }
    }

    /// Moves all of a node behind the end of this one.
    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Leaf(own), Self::Leaf(mut others)) => own.append(&mut others),
            (Self::Inner(own), Self::Inner(mut others)) => own.append(&mut others),
            _ => unreachable!("all children of a node have the same height"),
        }
    }
}

/// Makes one node of a child and the next one, if both fit into one.
fn merge<E: Clone>(children: &mut Vec<Child<E>>, at: usize) {
    if children[at].node.len() + children[at + 1].node.len() > children[at].node.capacity() {
        return;
    }
    let second = children.remove(at + 1);
    Arc::make_mut(&mut children[at].node).append(Arc::unwrap_or_clone(second.node));
}

impl<E: Clone + Ord> Node<E> {
    fn insert(&mut self, entry: E, is_old: &impl Fn(&E) -> bool) -> (Inserted<E>, Position) {
        match self {
            Self::Leaf(entries) => {
                let known = entries.iter().position(is_old).map(Ok);
                let at = known.unwrap_or_else(|| entries.binary_search(&entry));
                let position = if at == Ok(0) || at == Err(0) { Position::First } else { Position::Later };
                let inserted = match at {
                    Ok(at) => Inserted::Replaced(std::mem::replace(&mut entries[at], entry)),
                    Err(at) => match put(entries, at, entry, LEAF) {
                        None => Inserted::Added,
                        Some(second) => Inserted::Split(Child {
                            first: second[0].clone(),
                            node: Arc::new(Self::Leaf(second)),
                        }),
                    },
                };
                (inserted, position)
            }
            Self::Inner(children) => {
                let at = children.partition_point(|child| child.first <= entry).saturating_sub(1);
                let child = &mut children[at];
                let (inserted, mut position) = Arc::make_mut(&mut child.node).insert(entry, is_old);
                // Otherwise the reference is the same, and counting it again would read an object.
                if position == Position::First {
                    child.first = child.node.first().clone();
                }
                if at > 0 {
                    position = Position::Later;
                }
                let Inserted::Split(second) = inserted else { return (inserted, position) };
                let inserted = match put(children, at + 1, second, INNER) {
                    None => Inserted::Added,
                    Some(second) => {
                        let first = second[0].first.clone();
                        Inserted::Split(Child { first, node: Arc::new(Self::Inner(second)) })
                    }
                };
                (inserted, position)
            }
        }
    }
}

/// Inserts into a node that may be full: returns its second half then.
fn put<T>(items: &mut Vec<T>, at: usize, item: T, full: usize) -> Option<Vec<T>> {
    if items.len() < full {
        // Not twice the room, as `Vec` would: most nodes are copied before they grow again.
        if items.len() == items.capacity() {
            items.reserve_exact((full - items.len()).min(4));
        }
        items.insert(at, item);
        return None;
    }
    // Appending leaves full nodes behind.
    let middle = if at == full { full } else { full / 2 };
    let mut second = items.split_off(middle);
    items.shrink_to_fit();
    second.reserve_exact(1);
    match at.checked_sub(middle) {
        Some(at) => second.insert(at, item),
        None => items.insert(at, item),
    }
    Some(second)
}

#[cfg(test)]
mod tests;
