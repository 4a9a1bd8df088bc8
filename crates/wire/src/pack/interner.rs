//! One copy of what many objects have in common.

use hashbrown::HashSet;
use std::{hash::Hash, sync::Arc};

/// Distinct values before it is looked whether they are still in use.
const FIRST_SWEEP: usize = 1024;

/// Keeps one copy of each value that somebody uses.
///
/// Values that nobody uses any more are forgotten when there are twice as many as were in use the last time: what
/// is kept in vain is never more than what is of use.
pub(super) struct Interner<T: ?Sized> {
    known: HashSet<Arc<T>>,
    sweep_at: usize,
}

impl<T: ?Sized + Eq + Hash> Interner<T> {
    /// The copy that everybody uses.
    pub(super) fn intern(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.known.get(&value) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.known.shrink_to(2 * self.known.len());
            self.sweep_at = FIRST_SWEEP.max(2 * self.known.len());
        }
        self.known.insert(Arc::clone(&value));
        value
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
    fn equal_values_become_one_and_what_nobody_uses_goes() {
        let mut interner = Interner::<str>::default();
        let first = interner.intern("same".into());
        assert!(Arc::ptr_eq(&first, &interner.intern("same".into())));
        for number in 0..10 * FIRST_SWEEP {
            interner.intern(number.to_string().into());
        }
        assert!(interner.known.len() <= 2 * FIRST_SWEEP, "{}", interner.known.len());
        assert!(Arc::ptr_eq(&first, &interner.intern("same".into())), "what is in use stays");
    }
}
