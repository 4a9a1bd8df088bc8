//! Delays between retries.

use crate::time;
use std::time::Duration;

/// The longest `Retry-After` that is honoured unless configured.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(600);

/// The shortest delay: without one, a failing server would be requested as fast as it fails.
const MIN_DELAY: Duration = Duration::from_millis(1);

/// Delays that double with each failure, with jitter.
///
/// 1. The n-th delay in a row, counting from 0, is uniform in `[d, 2d)` with `d = min(start * 2^n, cap)`; `start` and `cap` are at least a
///    millisecond.
/// 2. `Retry-After` is a lower bound of the delay, up to `max_retry_after`, with up to a tenth on top so that the
///    clients which a server rejected do not all return at once. A longer one counts as `max_retry_after`.
/// 3. A success resets it, and so does [`rewind_once`](Self::rewind_once) once between two successes.
/// 4. No duration makes it panic or wrap: a delay that cannot be represented is `Duration::MAX`.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    start: Duration,
    cap: Duration,
    max_retry_after: Duration,
    /// Failures since it was last reset.
    failures: u32,
    /// Whether [`rewind_once`](Self::rewind_once) has been called since the last success.
    rewound_once: bool,
}

impl Backoff {
    pub(crate) fn new(start: Duration, cap: Duration) -> Self {
        let unset = Self { start, cap, max_retry_after: MAX_RETRY_AFTER, failures: 0, rewound_once: false };
        unset.range(start, cap)
    }

    /// Sets the first delay and the longest one.
    pub(crate) fn range(self, start: Duration, cap: Duration) -> Self {
        Self { start: start.max(MIN_DELAY), cap: cap.max(MIN_DELAY), ..self }
    }

    /// Limits the `Retry-After` that is honoured.
    pub(crate) fn max_retry_after(self, max_retry_after: Duration) -> Self {
        Self { max_retry_after, ..self }
    }

    /// The next delay. `retry_after` is the server's `Retry-After`.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>, rng: &mut fastrand::Rng) -> Duration {
        let doubled = self.start.saturating_mul(1u32.checked_shl(self.failures).unwrap_or(u32::MAX));
        self.failures = self.failures.saturating_add(1).min(31);
        let own = time::scale(doubled.min(self.cap), 1.0 + rng.f64());
        retry_after.map_or(own, |requested| {
            own.max(time::scale(requested.min(self.max_retry_after), 1.0 + rng.f64() / 10.0))
        })
    }

    pub(crate) fn rewind(&mut self) {
        (self.failures, self.rewound_once) = (0, false);
    }

    /// Resets the delays after a failure that shows that the server works. Only the first call since a success does so: a server
    /// that fails in this way every time must not receive requests at the shortest delay.
    pub(crate) fn rewind_once(&mut self) {
        if !std::mem::replace(&mut self.rewound_once, true) {
            self.failures = 0;
        }
    }
}

impl Default for Backoff {
    /// As in client-go: from 0.8 s to 30 s.
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
    fn a_long_retry_after_counts_as_the_limit() {
        let mut rng = fastrand::Rng::with_seed(1);
        for asked in [Duration::from_secs(86_400), Duration::from_secs(u64::MAX), Duration::MAX] {
            let wait = Backoff::default().next(Some(asked), &mut rng);
            assert!((MAX_RETRY_AFTER..=Duration::from_secs(660)).contains(&wait), "{asked:?}: {wait:?}");
            let short =
                Backoff::default().max_retry_after(Duration::from_secs(60)).next(Some(asked), &mut rng);
            assert!((60.0..66.0).contains(&short.as_secs_f64()), "{asked:?}: {short:?}");
        }
    }

    #[test]
    fn there_is_always_a_delay() {
        let mut rng = fastrand::Rng::with_seed(1);
        for (start, cap) in [(0, 0), (0, 1000), (1000, 0)] {
            let mut backoff = Backoff::default().range(Duration::from_secs(start), Duration::from_secs(cap));
            for _ in 0..40 {
                assert!(backoff.next(Some(Duration::ZERO), &mut rng) >= MIN_DELAY, "{start} {cap}");
            }
        }
        let mut grows = Backoff::new(Duration::ZERO, Duration::from_secs(1));
        assert!((0..20).map(|_| grows.next(None, &mut rng)).any(|delay| delay >= Duration::from_secs(1)));
    }

    #[test]
    fn no_duration_makes_it_panic() {
        let mut rng = fastrand::Rng::with_seed(1);
        let all = [0, 1, 1 << 40, u64::MAX / 2, u64::MAX].map(Duration::from_secs);
        for start in all {
            for cap in all {
                for asked in all {
                    let mut backoff = Backoff::new(start, cap).max_retry_after(Duration::MAX);
                    for _ in 0..40 {
                        assert!(backoff.next(Some(asked), &mut rng) >= asked.max(start.min(cap)));
                    }
                }
            }
        }
    }

    #[test]
    fn retry_after_is_a_lower_bound() {
        let mut rng = fastrand::Rng::with_seed(1);
        let wait = Backoff::default().next(Some(Duration::from_secs(20)), &mut rng).as_secs_f64();
        assert!((20.0..22.0).contains(&wait), "{wait}");
    }
}
