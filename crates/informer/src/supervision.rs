//! Restarts of tasks that panicked.

use crate::{reflector::Backoff, time};
use std::{any::Any, time::Duration};
use tokio::time::Instant;

/// A task that ran this long before it panicked is restarted after the shortest wait.
const STABLE: Duration = Duration::from_secs(60);
/// Longest part of a panic message that is kept.
const MESSAGE_CHARS: usize = 200;

/// When a task that panicked is restarted.
pub(crate) struct Restarts {
    backoff: Backoff,
    rng: fastrand::Rng,
    started: Instant,
}

impl Restarts {
    pub(crate) fn new(seed: u64) -> Self {
        let (backoff, rng) = (Backoff::default(), fastrand::Rng::with_seed(seed));
        Self { backoff, rng, started: Instant::now() }
    }

    /// The task starts now.
    pub(crate) fn started(&mut self) {
        self.started = Instant::now();
    }

    /// The task has panicked. Returns when to restart it.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        if self.started.elapsed() >= STABLE {
            self.backoff.rewind();
        }
        time::after(Instant::now(), self.backoff.next(None, &mut self.rng))
    }
}

/// The first line of the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    text.lines().next().unwrap_or_default().chars().take(MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waits_grow_until_a_task_has_been_stable() {
        let mut restarts = Restarts::new(1);
        let wait = |restarts: &mut Restarts| restarts.next().unwrap() - Instant::now();
        let first = wait(&mut restarts);
        assert!(first < Duration::from_millis(1600), "{first:?}");
        assert!((0..5).all(|_| wait(&mut restarts) > first));
        restarts.started();
        tokio::time::advance(STABLE).await;
        assert!(wait(&mut restarts) < Duration::from_millis(1600));
    }

    #[test]
    fn messages_are_one_short_line() {
        assert_eq!(panic_message(&"a\nb"), "a");
        assert_eq!(panic_message(&"x".repeat(1000)).len(), MESSAGE_CHARS);
        assert_eq!(panic_message(&7), "no message");
    }
}
