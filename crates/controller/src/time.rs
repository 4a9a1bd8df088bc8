//! Time arithmetic on durations of a caller: it neither panics nor wraps. A deadline that the clock cannot represent is
//! `None`, which is never.

use std::{future::Future, time::Duration};
use tokio::time::Instant;

/// A deadline passed before the future was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

/// The deadline `duration` from now.
pub(crate) fn from_now(duration: Duration) -> Option<Instant> {
    Instant::now().checked_add(duration)
}

/// Resolves at the deadline.
pub(crate) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Resolves after `duration`.
pub(crate) async fn sleep(duration: Duration) {
    sleep_until(from_now(duration)).await;
}

/// The output of a future, unless it takes longer than `within`.
pub(crate) async fn timeout<F: Future>(within: Duration, future: F) -> Result<F::Output, Elapsed> {
    match from_now(within) {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.map_err(|_| Elapsed),
        None => Ok(future.await),
    }
}
