//! The lock of the queue. Model checks replace this module with a lock whose every schedule they control.
//!
//! A `std` mutex rather than an async one: the critical sections are a few hash map operations and never
//! span an `.await` or a call into user code.

pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::MutexGuard;

/// Locks `mutex`. A panic while the lock was held can only come from the key's own `Hash`, `Eq` or `Clone`;
/// such a key may be lost, but the queue stays usable for all others.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
