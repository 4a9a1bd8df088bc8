//! Replaces the `sync` module of the library.

pub(crate) use shuttle::sync::Mutex;
pub(crate) use shuttle::sync::MutexGuard;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic under the lock")
}
