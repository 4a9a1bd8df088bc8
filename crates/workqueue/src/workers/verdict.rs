//! What a handler says of a key.

use std::time::Duration;

/// The error of a handler: anything that `?` can turn into it, which is every error type.
///
/// One concrete type, because the error of a closure that only uses `?` could not be inferred otherwise.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// What becomes of a key whose handler did not fail. `()` stands for [`Done`](Verdict::Done).
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
pub enum Verdict {
    /// Success.
    #[default]
    Done,
    /// Success, and the key is to run again after this delay.
    Again(Duration),
    /// No success, though nothing to report: run again when the rate limiter allows it.
    Retry,
}

impl From<()> for Verdict {
    fn from((): ()) -> Self {
        Verdict::Done
    }
}
