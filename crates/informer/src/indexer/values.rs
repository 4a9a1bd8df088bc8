//! The distinct values of an index.

use super::sorted::SortedSet;
use equivalent::{Comparable, Equivalent};
use std::{
    borrow::Borrow,
    cmp::Ordering,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// Identifies a distinct value of one index.
pub(super) type ValueId = u64;

/// The distinct values of an index, in order.
///
/// `Ord` of the values is code of the user. It runs only here, only to find a value, and a panic changes nothing.
pub(super) struct Values<V> {
    sorted: SortedSet<Shared<V>>,
    next: ValueId,
}

/// A value with its id. Everything that refers to the value shares this copy.
pub(super) struct Shared<V>(Arc<Distinct<V>>);

struct Distinct<V> {
    id: ValueId,
    /// `None` only while it is dropped.
    value: Option<V>,
}

/// `Ord` of a value panicked.
#[derive(Debug)]
pub(super) struct OrdPanicked;

/// Drops a value, which is code of the user: a panic in it must interrupt nothing.
pub(super) fn drop_value<V>(value: V) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
}

impl<V: Ord> Values<V> {
    pub(super) fn new() -> Self {
        Self { sorted: SortedSet::new(), next: 0 }
    }

    /// Finds a value. A panic of `Ord` reaches the caller.
    pub(super) fn get<Q: Ord + ?Sized>(&self, value: &Q) -> Option<&Shared<V>>
    where
        V: Borrow<Q>,
    {
        self.sorted.get(&Probe(value))
    }

    /// Finds a value, or adds it.
    pub(super) fn get_or_insert(&mut self, value: V) -> Result<Shared<V>, OrdPanicked> {
        let found = catch_unwind(AssertUnwindSafe(|| self.sorted.get(&Probe(&value)).cloned()));
        match found {
            Ok(None) => self.insert(value),
            found => {
                drop_value(value);
                found.ok().flatten().ok_or(OrdPanicked)
            }
        }
    }

    /// Adds a value that is not there.
    fn insert(&mut self, value: V) -> Result<Shared<V>, OrdPanicked> {
        let new = Shared(Arc::new(Distinct { id: self.next, value: Some(value) }));
        // Comparisons come before any change of the tree, so that it is intact after a panic.
        let inserted = catch_unwind(AssertUnwindSafe(|| drop(self.sorted.insert(new.clone()))));
        inserted.map_err(|_| OrdPanicked)?;
        self.next += 1;
        Ok(new)
    }

    /// Removes a value. If `Ord` panics it stays, which costs memory only: no object refers to it.
    pub(super) fn remove(&mut self, value: &Shared<V>) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.sorted.remove(value)));
    }

    /// Bytes on the heap, without those that the values have there.
    pub(super) fn heap_size(&self) -> usize {
        let value = 2 * size_of::<usize>() + size_of::<Distinct<V>>();
        self.sorted.heap_size() + self.sorted.len() * value
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Shared<V>> {
        self.sorted.iter()
    }
}

impl<V> Clone for Values<V> {
    fn clone(&self) -> Self {
        Self { sorted: self.sorted.clone(), next: self.next }
    }
}

impl<V> Shared<V> {
    pub(super) fn id(&self) -> ValueId {
        self.0.id
    }

    pub(super) fn value(&self) -> &V {
        self.0.value.as_ref().expect("a value is there until it is dropped")
    }
}

impl<V> Clone for Shared<V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<V: Ord> PartialEq for Shared<V> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<V: Ord> Eq for Shared<V> {}

impl<V: Ord> PartialOrd for Shared<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V: Ord> Ord for Shared<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) { Ordering::Equal } else { self.value().cmp(other.value()) }
    }
}

/// The drop of a value is code of the user, and may happen while a tree is changed: a panic must not interrupt that.
impl<V> Drop for Distinct<V> {
    fn drop(&mut self) {
        drop_value(self.value.take());
    }
}

/// A borrowed value that is looked for.
struct Probe<'a, Q: ?Sized>(&'a Q);

impl<V: Ord + Borrow<Q>, Q: Ord + ?Sized> Equivalent<Shared<V>> for Probe<'_, Q> {
    fn equivalent(&self, shared: &Shared<V>) -> bool {
        self.0 == shared.value().borrow()
    }
}

impl<V: Ord + Borrow<Q>, Q: Ord + ?Sized> Comparable<Shared<V>> for Probe<'_, Q> {
    fn compare(&self, shared: &Shared<V>) -> Ordering {
        self.0.cmp(shared.value().borrow())
    }
}
