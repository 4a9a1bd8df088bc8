//! One shared copy of equal values.

use hashbrown::HashSet;
use std::{hash::Hash, sync::Arc};

/// Number of distinct values before the first removal of unused ones.
const FIRST_SWEEP: usize = 1024;

/// Keeps one copy of each value in use.
///
/// Unused values are removed when there are twice as many values as the last removal left, and at least [`FIRST_SWEEP`], and by
/// [`sweep`](Self::sweep).
pub(super) struct Interner<T: ?Sized> {
    known: HashSet<Arc<T>>,
    sweep_at: usize,
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    /// Returns the shared copy.
    pub(super) fn intern(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.known.get(&value) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.sweep();
        }
        self.known.insert(Arc::clone(&value));
        value
    }

    /// Removes unused values.
    pub(super) fn sweep(&mut self) {
        self.known.retain(|known| Arc::strong_count(known) > 1);
        self.known.shrink_to(2 * self.known.len());
        self.sweep_at = FIRST_SWEEP.max(2 * self.known.len());
    }

    /// Bytes on the heap; `len` is the size of a value.
    pub(super) fn heap_size(&self, len: impl Fn(&T) -> usize) -> usize {
        let values: usize = self.known.iter().map(|value| 2 * size_of::<usize>() + len(value)).sum();
        values + self.known.allocation_size()
    }
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: FIRST_SWEEP }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_shared_and_unused_ones_removed() {
        let mut interner = Interner::<str>::default();
        let first = interner.intern("same".into());
        assert!(Arc::ptr_eq(&first, &interner.intern("same".into())));
        for number in 0..10 * FIRST_SWEEP {
            interner.intern(number.to_string().into());
        }
        assert!(interner.known.len() <= 2 * FIRST_SWEEP, "{}", interner.known.len());
        assert!(Arc::ptr_eq(&first, &interner.intern("same".into())), "a value in use stays");
    }
}
