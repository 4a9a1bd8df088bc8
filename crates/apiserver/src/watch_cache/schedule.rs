//! The times at which a watch ends and its bookmarks are due.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The timer of one watch, set to the next bookmark or the end.
pub(super) struct Schedule {
    end: Instant,
    bookmark: Option<Instant>,
    /// `None` if the watch gets no bookmarks.
    period: Option<Duration>,
    before_end: Duration,
    /// Set to the earlier of `end` and `bookmark`. Created when first needed: a watch that never waits needs none.
    timer: Option<Pin<Box<Sleep>>>,
}

/// The timer that has fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Bookmark,
    End,
}

impl Schedule {
    pub(super) fn new(
        now: Instant,
        length: Duration,
        period: Option<Duration>,
        before_end: Duration,
    ) -> Self {
        // Clients may request any timeout; a year does not overflow an `Instant`.
        let end = now + length.min(Duration::from_secs(365 * 24 * 3600));
        let bookmark = period.and_then(|period| next_bookmark(now, end, period, before_end));
        Self { end, bookmark, period, before_end, timer: None }
    }

    pub(super) fn due(&self, now: Instant) -> Due {
        if now >= self.end {
            Due::End
        } else if self.bookmark.is_some_and(|at| now >= at) {
            Due::Bookmark
        } else {
            Due::Nothing
        }
    }

    /// Schedules the next bookmark.
    pub(super) fn bookmark_done(&mut self, now: Instant) {
        self.bookmark = self.period.and_then(|period| next_bookmark(now, self.end, period, self.before_end));
    }

    /// Completes at the next bookmark or at the end.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_at(self.bookmark.map_or(self.end, |bookmark| bookmark.min(self.end)), cx)
    }

    /// Completes at the end.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_at(self.end, cx)
    }

    fn poll_at(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(cx)
    }
}

/// Returns the time one period from now, or `before_end` before the end if that is earlier.
fn next_bookmark(now: Instant, end: Instant, period: Duration, before_end: Duration) -> Option<Instant> {
    let regular = Some(now + period).filter(|at| *at < end);
    let last = end.checked_sub(before_end).filter(|at| *at > now);
    match (regular, last) {
        (Some(regular), Some(last)) => Some(regular.min(last)),
        (regular, last) => regular.or(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const BEFORE: Duration = Duration::from_secs(2);

    /// Seconds after the start at which a watch of this length sends bookmarks.
    fn bookmarks(length: u64) -> Vec<u64> {
        let start = Instant::now();
        let mut schedule = Schedule::new(start, Duration::from_secs(length), Some(MINUTE), BEFORE);
        let mut times = Vec::new();
        while let Some(at) = schedule.bookmark {
            assert_eq!(schedule.due(at), Due::Bookmark);
            times.push((at - start).as_secs());
            schedule.bookmark_done(at);
        }
        times
    }

    #[test]
    fn bookmarks_are_due_every_minute_and_shortly_before_the_end() {
        assert_eq!(bookmarks(150), [60, 120, 148]);
        assert_eq!(bookmarks(61), [59]);
        assert_eq!(bookmarks(5), [3]);
    }

    #[test]
    fn a_watch_that_ends_at_once_sends_no_bookmark() {
        assert!(bookmarks(1).is_empty());
        assert!(bookmarks(2).is_empty());
    }

    #[test]
    fn the_end_takes_precedence_over_a_bookmark() {
        let start = Instant::now();
        let schedule = Schedule::new(start, Duration::from_secs(5), Some(MINUTE), BEFORE);
        assert_eq!(schedule.due(start), Due::Nothing);
        assert_eq!(schedule.due(start + Duration::from_secs(5)), Due::End);
        let silent = Schedule::new(start, Duration::from_secs(500), None, BEFORE);
        assert_eq!(silent.due(start + Duration::from_secs(499)), Due::Nothing);
    }

    #[test]
    fn an_absurd_length_does_not_overflow() {
        let schedule = Schedule::new(Instant::now(), Duration::MAX, Some(MINUTE), BEFORE);
        assert_eq!(schedule.due(Instant::now()), Due::Nothing);
    }
}
