//! Whether the cache can answer, and when to come back if not.

use tokio::time::Instant;

use super::error::ReadError;

/// Whether the cache shows the store.
#[derive(Debug, Clone)]
pub(super) enum Readiness {
    /// It was filled and has heard every change since.
    Ready,
    /// It is being filled.
    Filling {
        /// Since when.
        since: Instant,
        /// What went wrong, if something did.
        cause: Option<String>,
    },
}

impl Readiness {
    pub(super) fn filling(cause: Option<String>) -> Self {
        Self::Filling { since: Instant::now(), cause }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self, Self::Ready)
    }

    pub(super) fn check(&self) -> Result<(), ReadError> {
        match self {
            Self::Ready => Ok(()),
            Self::Filling { since, cause } => {
                let retry_after = retry_after(since.elapsed().as_secs_f64());
                Err(ReadError::NotReady { retry_after, cause: cause.clone() })
            }
        }
    }
}

/// Seconds to wait: the longer the cache has been down, the longer it may still take.
fn retry_after(downtime_seconds: f64) -> u32 {
    (0.06 * downtime_seconds).exp().clamp(1.0, 30.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_wait_longer_the_longer_it_takes() {
        let table = [(0.0, 1), (11.0, 1), (12.0, 2), (30.0, 6), (56.0, 28), (57.0, 30), (1e9, 30)];
        for (downtime, seconds) in table {
            assert_eq!(retry_after(downtime), seconds, "after {downtime} s");
        }
    }
}
