//! Whether the cache is initialized, and when a client should retry if not.

use tokio::time::Instant;

use super::error::ReadError;

/// Whether the cache is initialized.
#[derive(Debug, Clone)]
pub(super) enum Readiness {
    /// The cache has read the whole state and has received every change since.
    Ready,
    Initializing {
        since: Instant,
        /// The failure that caused it, if any.
        cause: Option<String>,
    },
}

impl Readiness {
    pub(super) fn initializing(cause: Option<String>) -> Self {
        Self::Initializing { since: Instant::now(), cause }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    pub(super) fn check(&self) -> Result<(), ReadError> {
        match self {
            Self::Ready => Ok(()),
            Self::Initializing { since, cause } => {
                let retry_after = retry_after(since.elapsed().as_secs_f64());
                Err(ReadError::NotReady { retry_after, cause: cause.clone() })
            }
        }
    }
}

/// Seconds to wait: grows with the time the cache has been unavailable.
fn retry_after(downtime_seconds: f64) -> u32 {
    (0.06 * downtime_seconds).exp().clamp(1.0, 30.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_retry_delay_grows_with_the_downtime() {
        let table = [(0.0, 1), (11.0, 1), (12.0, 2), (30.0, 6), (56.0, 28), (57.0, 30), (1e9, 30)];
        for (downtime, seconds) in table {
            assert_eq!(retry_after(downtime), seconds, "after {downtime} s");
        }
    }
}
