//! The life of one worker.

use std::any::Any;
use std::fmt::Debug;
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tracing::{error, warn};

use super::verdict::{HandlerError, Verdict};
use crate::item::Item;
use crate::queue::WorkQueue;

/// How often the gauges of work in flight are brought up to date, as in client-go.
const REFRESH: Duration = Duration::from_millis(500);

/// Takes keys and handles them until told to stop, or until no more will come.
pub(super) async fn work<K, F, Fut, V>(queue: &WorkQueue<K>, handler: &F, mut stop: watch::Receiver<bool>)
where
    K: Clone + Eq + Hash + Debug + Send + Sync + 'static,
    F: Fn(K) -> Fut,
    Fut: Future<Output = Result<V, HandlerError>>,
    V: Into<Verdict>,
{
    let mut stopped = pin!(stop.wait_for(|stop| *stop));
    loop {
        let item = tokio::select! {
            biased;
            _ = &mut stopped => return,
            item = queue.get() => item,
        };
        let Some(item) = item else { return };
        let key = item.key().clone();
        let outcome = AssertUnwindSafe(async { handler(key).await }).catch_unwind().await;
        conclude(queue, item, outcome.map(|result| result.map(Into::into)));
    }
}

type Outcome = Result<Result<Verdict, HandlerError>, Box<dyn Any + Send>>;

fn conclude<K>(queue: &WorkQueue<K>, item: Item<K>, outcome: Outcome)
where
    K: Clone + Eq + Hash + Debug + Send + Sync + 'static,
{
    let (queue, key) = (queue.name(), item.key());
    match outcome {
        Ok(Ok(Verdict::Done)) => item.forget(),
        Ok(Ok(Verdict::Again(delay))) => item.again(delay),
        Ok(Ok(Verdict::Retry)) => item.retry(),
        Ok(Err(error)) => {
            let failures = item.num_requeues() + 1;
            warn!(queue, ?key, failures, error = chain(&*error), "work failed and will be retried");
            item.retry();
        }
        Err(panic) => {
            let failures = item.num_requeues() + 1;
            error!(
                queue,
                ?key,
                failures,
                panic = message(&*panic),
                "worker panicked; the key will be retried"
            );
            item.retry();
        }
    }
}

/// An error with its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Keeps the gauges of work in flight up to date for as long as it is polled.
pub(super) async fn refresh_metrics<K: Clone + Eq + Hash + Send + Sync + 'static>(queue: &WorkQueue<K>) {
    if queue.shared.metrics().is_none() {
        return std::future::pending().await;
    }
    loop {
        queue.refresh_metrics();
        #[allow(clippy::disallowed_methods, reason = "the duration is a constant")]
        tokio::time::sleep(REFRESH).await;
    }
}
