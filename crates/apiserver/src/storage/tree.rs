//! Documents by key, in key order, in a tree whose copies share what did not change.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::stored::{Change, Stored};

/// Documents by key. Copying it is O(1).
pub(crate) type Tree = OrdMap<Arc<str>, Arc<Stored>>;

/// Repeats a change.
pub(crate) fn apply(tree: &mut Tree, change: &Change) {
    match &change.current {
        Some(stored) => tree.insert(Arc::clone(&stored.key), Arc::clone(stored)),
        None => tree.remove(&**change.key()),
    };
}

/// Documents under a prefix, from a key on.
pub(crate) fn scan<'t>(
    tree: &'t Tree,
    prefix: &'t str,
    start: &str,
) -> impl Iterator<Item = &'t Arc<Stored>> {
    let start = start.max(prefix);
    tree.range::<_, str>((Bound::Included(start), Bound::Unbounded))
        .map(|(_, stored)| stored)
        .take_while(move |stored| stored.key.starts_with(prefix))
}
