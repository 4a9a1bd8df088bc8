//! What a server can tell about the reader of its stream.

use std::{future::poll_fn, pin::pin};

/// Awaits the next part of a stream, and calls `waited` whenever the reader polls again after it had to wait.
///
/// A reader handles several events together, as long as it gets one at each poll, and drops all of them if it panics. So a poll
/// alone does not show that it has applied the event before. It has when it waits.
pub(crate) async fn after_waits<T>(next: impl Future<Output = T>, mut waited: impl FnMut()) -> T {
    let mut next = pin!(next);
    let mut is_pending = false;
    poll_fn(|task| {
        if is_pending {
            waited();
        }
        let poll = next.as_mut().poll(task);
        is_pending = poll.is_pending();
        poll
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_poll_without_a_wait_shows_nothing() {
        let mut waits = 0;
        assert_eq!(after_waits(std::future::ready(1), || waits += 1).now_or_never(), Some(1));
        assert_eq!(waits, 0);
    }

    #[tokio::test]
    async fn a_poll_after_a_wait_shows_that_everything_before_is_applied() {
        let mut waits = 0;
        after_waits(tokio::task::yield_now(), || waits += 1).await;
        assert_eq!(waits, 1);
    }
}
