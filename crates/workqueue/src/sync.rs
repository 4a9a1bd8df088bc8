//! The lock of the queue. Model checks replace this module with a lock whose schedules they control.
//!
//! A `std` mutex rather than an async one: critical sections are a few hash table operations and never contain an
//! `.await`. The only code of the user that runs under it is `Hash`, `Eq` and `Clone` of keys.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::MutexGuard;

/// Locks `mutex`. A panic under the lock can only come from `Hash`, `Eq` or `Clone` of a key; that key may be lost, but
/// the queue stays usable for all others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
