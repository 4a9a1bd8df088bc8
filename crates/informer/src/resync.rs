//! Resync periods of the informer and its handlers.

use crate::time;
use std::time::Duration;
use tokio::time::Instant;

/// The shortest period of a handler.
const MIN_PERIOD: Duration = Duration::from_secs(1);

/// How often an informer checks whether a handler is due: the rules of client-go.
///
/// 1. An informer that was built without a period never resyncs, whatever its handlers request.
/// 2. Before the start, a handler with a shorter period shortens the one of the informer. After the start, such a handler
///    gets the period of the informer.
/// 3. The effective period of a handler is a multiple of the informer's, rounded up.
#[derive(Debug, Clone)]
pub(crate) struct CheckPeriod {
    period: Duration,
    started: bool,
}

impl CheckPeriod {
    pub(crate) fn new(period: Duration) -> Self {
        Self { period, started: false }
    }

    pub(crate) fn start(&mut self) {
        self.started = true;
    }

    /// The period; `None` is never.
    pub(crate) fn get(&self) -> Option<Duration> {
        (!self.period.is_zero()).then_some(self.period)
    }

    /// Adds a handler that requests a period; zero is never. Returns the period it gets.
    pub(crate) fn request(&mut self, requested: Duration) -> Duration {
        if requested.is_zero() {
            return requested;
        }
        let requested = requested.max(MIN_PERIOD);
        if self.period.is_zero() {
            tracing::warn!(
                ?requested,
                "no resyncs for this handler: give the informer or the factory a resync period"
            );
        }
        if requested >= self.period {
            return requested;
        }
        if !self.started {
            self.period = requested;
        }
        requested.max(self.period)
    }
}

/// When one handler is due.
#[derive(Debug, Clone)]
pub(crate) struct Due {
    /// The period of the handler; zero is never.
    period: Duration,
    /// `None` is never.
    next: Option<Instant>,
}

impl Due {
    pub(crate) fn new(period: Duration, check: &CheckPeriod, now: Instant) -> Self {
        let mut due = Self { period, next: None };
        due.next = time::after(now, due.effective_period(check));
        due
    }

    fn effective_period(&self, check: &CheckPeriod) -> Duration {
        match check.get() {
            Some(period) if !self.period.is_zero() => self.period.max(period),
            _ => Duration::ZERO,
        }
    }

    /// Whether the handler is due now; if so, its next time is set.
    pub(crate) fn take(&mut self, check: &CheckPeriod, now: Instant) -> bool {
        let period = self.effective_period(check);
        let due = !period.is_zero() && self.next.is_some_and(|next| next <= now);
        if due {
            self.next = time::after(now, period);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn before_the_start_the_shortest_period_counts() {
        let mut check = CheckPeriod::new(secs(12 * 3600));
        assert_eq!(check.request(secs(60)), secs(60));
        assert_eq!(check.get(), Some(secs(60)));
        assert_eq!(check.request(Duration::from_millis(200)), secs(1));
        assert_eq!(check.get(), Some(secs(1)));
    }

    #[test]
    fn after_the_start_short_periods_are_raised() {
        let mut check = CheckPeriod::new(secs(10));
        check.start();
        assert_eq!(check.request(secs(3)), secs(10));
        assert_eq!(check.request(secs(30)), secs(30));
        assert_eq!(check.get(), Some(secs(10)));
    }

    #[test]
    fn an_informer_without_a_period_never_resyncs() {
        let now = Instant::now();
        let mut check = CheckPeriod::new(Duration::ZERO);
        let asked = check.request(secs(3));
        assert!(!Due::new(asked, &check, now).take(&check, now + secs(1000)));
        assert_eq!(check.get(), None);
    }

    #[test]
    fn a_period_without_end_is_never_due() {
        let now = Instant::now();
        for (informer, handler) in
            [(secs(60), Duration::MAX), (Duration::MAX, secs(60)), (Duration::MAX, Duration::MAX)]
        {
            let mut check = CheckPeriod::new(informer);
            check.start();
            let mut due = Due::new(check.request(handler), &check, now);
            assert!(!due.take(&check, now + secs(1 << 40)), "{informer:?} {handler:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn due_times_are_rounded_up_to_ticks() {
        let start = Instant::now();
        let mut check = CheckPeriod::new(secs(2));
        let mut three = Due::new(check.request(secs(3)), &check, start);
        let due = (1..=6).map(|i| three.take(&check, start + secs(2 * i))).collect::<Vec<_>>();
        assert_eq!(due, [false, true, false, true, false, true]);
        assert!(!Due::new(Duration::ZERO, &check, start).take(&check, start + secs(100)));
    }
}
