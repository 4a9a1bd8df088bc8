//! The loop of one worker.

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
use crate::panics;
use crate::queue::WorkQueue;

/// Interval at which the gauges of keys in flight are updated, as in client-go.
const REFRESH: Duration = Duration::from_millis(500);

/// Calls `handler` with keys of the queue until `stop` is set or the queue is exhausted.
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
        let outcome = AssertUnwindSafe(async { handler(item.key().clone()).await }).catch_unwind().await;
        // `Debug` of the key and `Display` of the error may panic too, which must not end the worker.
        let finished = panics::catch(|| finish(queue, item, outcome.map(|result| result.map(Into::into))));
        if let Err(panic) = finished {
            error!(queue = queue.name(), panic, "cannot log a failure; the key will be retried");
        }
    }
}

type Outcome = Result<Result<Verdict, HandlerError>, Box<dyn Any + Send>>;

/// Finishes an item according to what its handler returned.
fn finish<K>(queue: &WorkQueue<K>, item: Item<K>, outcome: Outcome)
where
    K: Clone + Eq + Hash + Debug + Send + Sync + 'static,
{
    let (queue, key) = (queue.name(), item.key());
    match outcome {
        Ok(Ok(Verdict::Done)) => item.forget(),
        Ok(Ok(Verdict::RequeueAfter(delay))) => item.requeue_after(delay),
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
                panic = panics::message(&*panic),
                "worker panicked; the key will be retried"
            );
            item.retry();
        }
    }
}

/// An error and its sources, on one line.
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

/// Updates the gauges of keys in flight for as long as it is polled.
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
