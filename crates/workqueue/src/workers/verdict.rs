//! Results of a handler.

use std::time::Duration;

/// The error of a handler. `?` converts every error type into it.
///
/// It is a concrete type because the compiler could not infer the error type of a closure that only uses `?`.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a handler that did not fail. `()` converts to [`Done`](Verdict::Done).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # use std::time::Duration;
/// # use kube_workqueue::{Verdict, WorkQueue};
/// # let queue = WorkQueue::named("leases");
/// # queue.shutdown();
/// queue.run_workers(1, async |lease: String| {
///     // ... renew it ...
///     Ok(Verdict::Again(Duration::from_secs(10)))
/// }).await;
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Success.
    #[default]
    Done,
    /// Success; the key runs again after this delay.
    Again(Duration),
    /// A failure that is not logged: the key is retried with the delay of the rate limiter.
    Retry,
}

impl From<()> for Verdict {
    fn from((): ()) -> Self {
        Verdict::Done
    }
}
