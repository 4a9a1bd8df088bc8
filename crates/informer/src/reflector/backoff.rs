//! How long to wait before asking again.

use std::time::Duration;

/// Waiting times that double from failure to failure and are never the same for two clients.
///
/// 1. The n-th wait in a row is uniform in `[d, 2d)` with `d = min(start * 2^n, cap)`.
/// 2. A server that asks for more gets more: its wish is a lower bound, with up to a tenth on top so that the
///    clients it turned away do not come back together.
/// 3. Success rewinds.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    start: Duration,
    cap: Duration,
    /// Failures since the last success.
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(start: Duration, cap: Duration) -> Self {
        Self { start, cap, failures: 0 }
    }

    pub(crate) fn next(&mut self, asked: Option<Duration>, rng: &mut fastrand::Rng) -> Duration {
        let doubled = self.start.saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = (self.failures + 1).min(31);
        let own = doubled.min(self.cap).mul_f64(1.0 + rng.f64());
        asked.map_or(own, |asked| own.max(asked.mul_f64(1.0 + rng.f64() / 10.0)))
    }

    pub(crate) fn rewind(&mut self) {
        self.failures = 0;
    }
}

impl Default for Backoff {
    /// client-go's: from 0.8 s to 30 s.
    fn default() -> Self {
        Self::new(Duration::from_millis(800), Duration::from_secs(30))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_and_rewind() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut backoff = Backoff::default();
        for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0, 30.0] {
            let wait = backoff.next(None, &mut rng).as_secs_f64();
            assert!((base..2.0 * base).contains(&wait), "{base}: {wait}");
        }
        for _ in 0..100 {
            assert!(backoff.next(None, &mut rng) <= Duration::from_secs(60));
        }
        backoff.rewind();
        assert!(backoff.next(None, &mut rng) < Duration::from_millis(1600));
    }

    #[test]
    fn the_server_is_never_asked_earlier_than_it_wants() {
        let mut rng = fastrand::Rng::with_seed(1);
        let wait = Backoff::default().next(Some(Duration::from_secs(20)), &mut rng).as_secs_f64();
        assert!((20.0..22.0).contains(&wait), "{wait}");
    }
}
