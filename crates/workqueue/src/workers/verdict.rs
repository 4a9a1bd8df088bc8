//! Results of a handler.

use std::time::Duration;

/// The error of a handler. `?` converts every error type into it.
///
/// It is a concrete type because the compiler cannot infer the error type of a closure that only uses `?`.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// The next step for a key whose handler returned `Ok`. `()` converts to [`Done`](Verdict::Done).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// # use std::time::Duration;
/// # use kube_workqueue::{Verdict, WorkQueue};
/// # let queue = WorkQueue::named("leases");
/// # queue.shutdown();
/// queue.run_workers(1, async |lease: String| {
///     // ... renew it ...
///     Ok(Verdict::RequeueAfter(Duration::from_secs(10)))
/// }).await;
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Success.
    #[default]
    Done,
    /// Success; the key is added again after this delay.
    RequeueAfter(Duration),
    /// Retries the key with the delay of the rate limiter, without logging an error.
    Retry,
}

impl From<()> for Verdict {
    fn from((): ()) -> Self {
        Verdict::Done
    }
}
