//! Time arithmetic on durations that a caller or a server supplies: it neither panics nor wraps.
//!
//! A deadline is an `Option<Instant>`: `None` is never. `Duration::MAX`, and any other duration that the clock
//! cannot represent, therefore means never. The lints at the top of the crate reject the operators and the
//! conversions that panic.

use std::{future::Future, time::Duration};
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// A deadline passed before the future was ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

/// The deadline `duration` after `start`.
pub(crate) fn after(start: Instant, duration: Duration) -> Option<Instant> {
    start.checked_add(duration)
}

/// `duration` multiplied by `factor`, at most `Duration::MAX`. A factor that is negative or not a number counts as
/// zero.
pub(crate) fn scale(duration: Duration, factor: f64) -> Duration {
    let seconds = duration.as_secs_f64() * factor.max(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
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
    sleep_until(after(Instant::now(), duration)).await;
}

/// The output of a future, unless the deadline passes first.
pub(crate) async fn timeout_at<F: Future>(
    deadline: Option<Instant>,
    future: F,
) -> Result<F::Output, Elapsed> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, future).await.map_err(|_| Elapsed),
        None => Ok(future.await),
    }
}

/// The output of a future, unless it takes longer than `within`.
pub(crate) async fn timeout<F: Future>(within: Duration, future: F) -> Result<F::Output, Elapsed> {
    timeout_at(after(Instant::now(), within), future).await
}

/// Ticks of a period, the first one a period from now; `None` if the period is zero or never ends. Missed ticks are
/// skipped.
#[allow(clippy::disallowed_methods, reason = "the period is checked here")]
pub(crate) fn ticks(period: Duration) -> Option<Interval> {
    let first = after(Instant::now(), period).filter(|_| !period.is_zero())?;
    let mut ticks = tokio::time::interval_at(first, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    Some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_the_clock_cannot_represent_is_never() {
        let now = Instant::now();
        assert_eq!(after(now, Duration::MAX), None);
        assert_eq!(after(now, Duration::from_secs(u64::MAX)), None);
        assert_eq!(after(now, Duration::ZERO), Some(now));
    }

    #[test]
    fn scaling_saturates() {
        let second = Duration::from_secs(1);
        assert_eq!(scale(second, 1.5), Duration::from_millis(1500));
        assert_eq!(scale(Duration::MAX, 1.0), Duration::MAX);
        assert_eq!(scale(Duration::MAX, 2.0), Duration::MAX);
        assert_eq!(scale(second, f64::INFINITY), Duration::MAX);
        assert_eq!(scale(second, f64::NAN), Duration::ZERO);
        assert_eq!(scale(second, -1.0), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_period_of_zero_or_for_ever_does_not_tick() {
        assert!(ticks(Duration::ZERO).is_none() && ticks(Duration::MAX).is_none());
        let start = Instant::now();
        let first = ticks(Duration::from_secs(3)).unwrap().tick().await;
        assert_eq!(first - start, Duration::from_secs(3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_without_a_deadline_arms_no_timer() {
        // A timer, however far away, would make the paused clock jump to it.
        let start = Instant::now();
        let never = timeout(Duration::MAX, std::future::pending::<()>());
        assert_eq!(timeout(Duration::from_secs(5), never).await, Err(Elapsed));
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        assert_eq!(timeout(Duration::MAX, std::future::ready(7)).await, Ok(7));
    }
}
