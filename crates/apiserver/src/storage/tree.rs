//! A persistent tree of documents by key.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use super::stored::{Change, Stored};

/// Documents by key, in key order. Cloning is O(1), and clones share their unchanged nodes.
pub(crate) type Tree = OrdMap<Arc<str>, Arc<Stored>>;

/// Applies a change to a tree.
pub(crate) fn apply(tree: &mut Tree, change: &Change) {
    match &change.current {
        Some(stored) => tree.insert(Arc::clone(&stored.key), Arc::clone(stored)),
        None => tree.remove(&**change.key()),
    };
}

/// Returns the documents under a prefix that ends in `/`, from a key on.
///
/// Finds both bounds in the tree, so that no key between them is compared.
pub(crate) fn scan<'t>(tree: &'t Tree, prefix: &str, start: &str) -> impl Iterator<Item = &'t Arc<Stored>> {
    let end = format!("{}0", prefix.trim_end_matches('/')); // the byte after `/`
    let start = start.max(prefix);
    let range =
        (start < &*end).then(|| tree.range::<_, str>((Bound::Included(start), Bound::Excluded(&*end))));
    range.into_iter().flatten().map(|(_, stored)| stored)
}
