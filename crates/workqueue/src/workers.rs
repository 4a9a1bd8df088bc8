//! Workers that take keys and call a handler.

mod run;
mod verdict;

use std::fmt::{self, Debug};
use std::future::Future;
use std::hash::Hash;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::task::JoinSet;

pub use verdict::HandlerError;
pub use verdict::Verdict;

use crate::queue::WorkQueue;
use run::{refresh_metrics, work};

/// Running workers: a future that resolves when the queue is shut down and empty.
///
/// The workers run only while it, or [`until`](RunWorkers::until), is awaited. Dropping it cancels the handlers; their
/// keys are retried.
#[must_use = "workers do nothing unless awaited"]
pub struct RunWorkers<F> {
    workers: Pin<Box<F>>,
    stop: watch::Sender<bool>,
}

impl<F: Future<Output = ()>> RunWorkers<F> {
    /// Runs the workers until `stop` resolves. Then no worker takes another key, and the future resolves when the keys in
    /// flight are finished. The queue stays open and keeps its keys.
    pub async fn until(self, stop: impl Future) {
        let Self { mut workers, stop: signal } = self;
        let mut stop = pin!(stop);
        tokio::select! {
            biased;
            _ = &mut stop => {}
            () = &mut workers => return,
        }
        signal.send_replace(true);
        workers.await;
    }
}

impl<F> fmt::Debug for RunWorkers<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunWorkers").finish_non_exhaustive()
    }
}

impl<F: Future<Output = ()>> Future for RunWorkers<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.workers.as_mut().poll(cx)
    }
}

impl<K: Clone + Eq + Hash + Debug + Send + Sync + 'static> WorkQueue<K> {
    /// Runs `count` workers (at least one) that call `handler` with the keys of this queue, all in the task that awaits
    /// the result. The handler may borrow from its environment.
    ///
    /// - `Ok(())`: the key is done and its failures are forgotten. `Ok` of a [`Verdict`] can ask for another run.
    /// - `Err`: logged, and retried with the delay of the rate limiter. Any error converts with `?`.
    /// - A panic: treated like an error.
    ///
    /// The workers take turns on one thread. For handlers that compute more than they wait, see
    /// [`spawn_workers`](WorkQueue::spawn_workers).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// # use kube_workqueue::WorkQueue;
    /// let queue = WorkQueue::named("numbers");
    /// let limit = 10;
    /// queue.add("7".to_owned());
    /// queue.add("8".to_owned());
    /// queue.shutdown();
    /// queue.run_workers(4, async |key: String| {
    ///     let number: u32 = key.parse()?;
    ///     assert!(number < limit);
    ///     Ok(())
    /// }).await;
    /// # }
    /// ```
    pub fn run_workers<F, V>(
        &self,
        count: usize,
        handler: F,
    ) -> RunWorkers<impl Future<Output = ()> + use<K, F, V>>
    where
        F: AsyncFn(K) -> Result<V, HandlerError>,
        V: Into<Verdict>,
    {
        let (stop, stopped) = watch::channel(false);
        let queue = self.clone();
        let workers = async move {
            let handler = &handler;
            let call = |key| handler(key);
            let all: FuturesUnordered<_> =
                (0..count.max(1)).map(|_| work(&queue, &call, stopped.clone())).collect();
            tokio::select! {
                biased;
                () = all.for_each(|()| std::future::ready(())) => {}
                () = refresh_metrics(&queue) => {}
            }
            queue.refresh_metrics();
        };
        RunWorkers { workers: Box::pin(workers), stop }
    }

    /// Like [`run_workers`](WorkQueue::run_workers), but each worker is a task, so they run in parallel on a runtime with
    /// several threads. They start immediately, and stop when the returned future is dropped.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn spawn_workers<F, Fut, V>(
        &self,
        count: usize,
        handler: F,
    ) -> RunWorkers<impl Future<Output = ()> + Send + use<K, F, Fut, V>>
    where
        F: Fn(K) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<V, HandlerError>> + Send + 'static,
        V: Into<Verdict> + Send + 'static,
    {
        let (stop, stopped) = watch::channel(false);
        let handler = Arc::new(handler);
        let mut tasks = JoinSet::new();
        for _ in 0..count.max(1) {
            let (queue, handler, stopped) = (self.clone(), Arc::clone(&handler), stopped.clone());
            tasks.spawn(async move { work(&queue, &*handler, stopped).await });
        }
        let queue = self.clone();
        let workers = async move {
            tokio::select! {
                biased;
                () = async { while tasks.join_next().await.is_some() {} } => {}
                () = refresh_metrics(&queue) => {}
            }
            queue.refresh_metrics();
        };
        RunWorkers { workers: Box::pin(workers), stop }
    }
}
