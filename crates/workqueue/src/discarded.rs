//! Keys to be dropped after the lock is released.

use crate::delayed::DelayedKeys;
use crate::panics;

/// Keys that an operation has removed. Dropping a key may run code of the user, which may use the queue, so it must not
/// happen under the lock.
pub(crate) struct Discarded<K> {
    /// The usual case, one key, without an allocation.
    first: Option<K>,
    more: Vec<K>,
    /// Delayed keys that a shutdown dropped as a whole.
    delayed: Option<DelayedKeys<K>>,
}

impl<K> Default for Discarded<K> {
    fn default() -> Self {
        Self { first: None, more: Vec::new(), delayed: None }
    }
}

impl<K> Discarded<K> {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.delayed.is_none()
    }

    pub(crate) fn push(&mut self, key: K) {
        match &self.first {
            None => self.first = Some(key),
            Some(_) => self.more.push(key),
        }
    }

    /// Drops the keys. Must be called without the lock. A drop that panics does not keep the others from being dropped, nor
    /// reaches the caller, who may be unwinding already.
    pub(crate) fn drop_each(self) {
        let delayed = self.delayed.into_iter().flat_map(DelayedKeys::into_keys);
        for key in self.first.into_iter().chain(self.more).chain(delayed) {
            if let Err(panic) = panics::catch(|| drop(key)) {
                tracing::error!(panic, "the drop of a key panicked");
            }
        }
    }

    /// Discards all delayed keys. Only the first call of an operation has any.
    pub(crate) fn set_delayed(&mut self, delayed: DelayedKeys<K>) {
        self.delayed.get_or_insert(delayed);
    }
}
