//! The lock of the queue. Model checks replace this module with a lock whose schedules they control.
//!
//! A `std` mutex rather than an async one: critical sections are a few hash table operations and never contain an
//! `.await`. The only code of the user that runs under it is `Hash`, `Eq`, `Ord` and `Clone` of keys, whose panics are caught.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::MutexGuard;

/// Locks `mutex`. No change is made while code of the user runs that could panic, so that a lock that was poisoned protects
/// intact state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
