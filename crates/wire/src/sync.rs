//! Locks that survive a panic, for the crates of this workspace. Not part of the API.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks `mutex`, also after a thread panicked while it held the lock.
///
/// A poisoned lock is no reason to fail: critical sections in this workspace leave their data consistent wherever they may
/// panic, and the panic itself is reported by the task that it ends.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
