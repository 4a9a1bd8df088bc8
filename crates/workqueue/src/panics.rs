//! Panics in code of the user.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `user_code` and returns its result, or the message of its panic.
pub(crate) fn catch<R>(user_code: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(user_code)).map_err(|panic| message(&*panic).to_owned())
}

/// Whether two keys are equal. `Eq` of a key has to run under the lock; if it panics, the keys count as different, so that the
/// panic costs the deduplication of that key and leaves every table intact.
pub(crate) fn equal<K: Eq>(a: &K, b: &K) -> bool {
    catch_unwind(AssertUnwindSafe(|| a == b)).unwrap_or(false)
}

/// The message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
