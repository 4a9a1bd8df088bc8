//! Waiting for a condition.

use std::{error, fmt, time::Duration};

/// Time between two checks of a condition.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A condition did not hold within its time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedOut {
    timeout: Duration,
    what: String,
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timed out after {:?} waiting until {}", self.timeout, self.what)
    }
}

impl error::Error for TimedOut {}

/// Checks a condition repeatedly until it holds. `what` describes it in the error. A check that takes longer than the
/// timeout is cancelled.
///
/// # Errors
/// An error of the condition, or [`TimedOut`] if it does not hold within `timeout`.
pub async fn wait_until<E: From<TimedOut>>(
    timeout: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> Result<bool, E>,
) -> Result<(), E> {
    let checks = async {
        while !condition().await? {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    };
    let timed_out = |_| Err(TimedOut { timeout, what: what.to_owned() }.into());
    tokio::time::timeout(timeout, checks).await.unwrap_or_else(timed_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_condition_is_checked_until_it_holds() {
        let mut checks = 0;
        let waited =
            wait_until::<TimedOut>(Duration::from_secs(1), "it was checked three times", async || {
                checks += 1;
                Ok(checks == 3)
            });
        assert_eq!((waited.await, checks), (Ok(()), 3));
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_that_never_holds_is_named() {
        let waited = wait_until::<TimedOut>(Duration::from_secs(1), "it rains", async || Ok(false)).await;
        assert_eq!(waited.unwrap_err().to_string(), "timed out after 1s waiting until it rains");
    }
}
