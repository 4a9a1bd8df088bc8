//! Threads for requests with much computation, so that they do not delay others.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use http::Extensions;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError};
use tokio::task::{JoinError, spawn_blocking};

use crate::work::{Abandoned, Work};

/// Requests that may wait or run at once, as many as kube-apiserver has mutating requests in flight.
const MAX_REQUESTS: usize = 200;
/// Requests of one connection among them.
const MAX_PER_CONNECTION: usize = 25;

/// A bounded pool for requests with much computation.
///
/// 1. They run on threads of their own, on half of the processors: the tasks of all other requests keep the rest.
/// 2. One connection computes one request at a time, and connections take turns.
/// 3. A request whose client no longer waits is abandoned at its next [step](Work::step). It keeps its thread and the turn
///    of its connection until then.
/// 4. Beyond 200 requests, or 25 of one connection, the next is refused with 429.
#[derive(Debug)]
pub(crate) struct CpuPool {
    /// Requests that may wait or run at once.
    requests: Semaphore,
    /// Requests that may run at once.
    threads: Arc<Semaphore>,
}

/// The pool did not run a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PoolError {
    #[error("too many large requests, please try again later")]
    Full,
    #[error("the server is shutting down")]
    ShuttingDown,
    #[error(transparent)]
    Abandoned(#[from] Abandoned),
}

/// The turn of a connection: it has one request in the pool at a time. Travels with each of its requests.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionTurn {
    turn: Arc<Semaphore>,
    /// Requests that may wait or run at once.
    requests: Arc<Semaphore>,
}

impl ConnectionTurn {
    pub(crate) fn new() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { turn: semaphore(1), requests: semaphore(MAX_PER_CONNECTION) }
    }
}

/// The permits of a request to wait in the pool.
struct Permits<'p> {
    _pool: SemaphorePermit<'p>,
    _connection: Option<OwnedSemaphorePermit>,
}

impl CpuPool {
    pub(crate) fn new() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZero::get);
        Self::with_threads(processors.div_ceil(2))
    }

    fn with_threads(threads: usize) -> Self {
        Self { requests: Semaphore::new(MAX_REQUESTS), threads: Arc::new(Semaphore::new(threads)) }
    }

    /// A pool that refuses every request.
    #[cfg(test)]
    pub(crate) fn full() -> Self {
        Self { requests: Semaphore::new(0), threads: Arc::new(Semaphore::new(1)) }
    }

    /// Runs `request` in the pool. `work` is the request's own, and is abandoned if the caller stops waiting.
    pub(crate) async fn run<T, E, F>(&self, extensions: &Extensions, work: &Work, request: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<PoolError> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let _awaited = work.awaited();
        let _permits = self.acquire(extensions)?;
        let turn = turn(extensions).await;
        let thread = Arc::clone(&self.threads).acquire_owned().await.ok();
        work.check().map_err(PoolError::from)?;
        let runtime = Handle::current();
        let done = spawn_blocking(move || {
            // Released when the request has ended, even if its client no longer waits.
            let _permits = (turn, thread);
            runtime.block_on(request)
        });
        joined(done.await)?
    }

    /// Calls `step` in the pool until it returns a result. Between two steps the thread is free for other requests, in the order in which
    /// they wait: of several long requests none waits for the whole of another.
    pub(crate) async fn run_in_steps<T, E, S>(
        &self,
        extensions: &Extensions,
        work: &Work,
        mut step: S,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<PoolError> + Send + 'static,
        S: FnMut() -> Result<Option<T>, E> + Send + 'static,
    {
        let _awaited = work.awaited();
        let _permits = self.acquire(extensions)?;
        let _turn = turn(extensions).await;
        loop {
            let thread = Arc::clone(&self.threads).acquire_owned().await.ok();
            work.check().map_err(PoolError::from)?;
            let done = spawn_blocking(move || {
                let _permit = thread;
                (step(), step)
            });
            let result;
            (result, step) = joined(done.await)?;
            if let Some(value) = result? {
                return Ok(value);
            }
        }
    }

    fn acquire(&self, extensions: &Extensions) -> Result<Permits<'_>, PoolError> {
        let refused = |error| match error {
            TryAcquireError::NoPermits => PoolError::Full,
            TryAcquireError::Closed => PoolError::ShuttingDown,
        };
        let connection = extensions.get::<ConnectionTurn>();
        let connection = connection.map(|turn| Arc::clone(&turn.requests).try_acquire_owned()).transpose();
        let connection = connection.map_err(refused)?;
        Ok(Permits { _pool: self.requests.try_acquire().map_err(refused)?, _connection: connection })
    }
}

/// Waits until the connection has no other request in the pool.
async fn turn(extensions: &Extensions) -> Option<OwnedSemaphorePermit> {
    let turn = extensions.get::<ConnectionTurn>()?;
    Arc::clone(&turn.turn).acquire_owned().await.ok()
}

/// The result of a thread. A panic continues in the caller.
fn joined<T>(result: Result<T, JoinError>) -> Result<T, PoolError> {
    result.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => PoolError::ShuttingDown,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use std::time::Duration;

    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    use super::*;

    fn connection() -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(ConnectionTurn::new());
        extensions
    }

    /// A request that occupies its thread until the test ends it, or it is abandoned.
    fn busy(
        work: &Work,
    ) -> (
        oneshot::Receiver<()>,
        std::sync::mpsc::Sender<()>,
        impl Future<Output = Result<u64, PoolError>> + Send + use<>,
    ) {
        let (started, has_started) = oneshot::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let work = work.clone();
        let request = async move {
            let _ = started.send(());
            loop {
                work.step()?;
                if ended.recv_timeout(Duration::from_millis(1))
                    != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
                {
                    return Ok(7);
                }
            }
        };
        (has_started, end, request)
    }

    #[tokio::test]
    async fn requests_compute_beside_the_tasks_of_the_runtime() {
        let pool = CpuPool::with_threads(1);
        let (work, extensions) = (Work::default(), connection());
        let (started, end, request) = busy(&work);
        let run = pool.run(&extensions, &work, request);
        let beside = async {
            // The only thread of this runtime is free while the request computes.
            started.await.expect("the request runs");
            end.send(()).expect("it still runs");
        };
        let (result, ()) = tokio::join!(run, beside);
        assert_eq!(result.ok(), Some(7));
    }

    #[tokio::test]
    async fn an_abandoned_request_ends_and_frees_its_thread() {
        let pool = CpuPool::with_threads(1);
        let (work, extensions) = (Work::default(), connection());
        let (started, _end, request) = busy(&work);
        {
            let run = pool.run(&extensions, &work, request);
            tokio::select! {
                _ = run => panic!("it does not end by itself"),
                _ = started => {}
            }
        }
        assert!(work.check().is_err());
        let next = Work::default();
        assert_eq!(pool.run(&extensions, &next, async { Ok::<_, PoolError>(1) }).await.ok(), Some(1));
    }

    #[tokio::test]
    async fn one_connection_has_one_request_in_the_pool() {
        let pool = CpuPool::with_threads(2);
        let (one, other) = (connection(), connection());
        let work = Work::default();
        let (started, end, request) = busy(&work);
        let first = pool.run(&one, &work, request);
        let queued = Work::default();
        let second = pool.run(&one, &queued, async { Ok::<_, PoolError>(2) });
        let beside = async {
            started.await.expect("the first request runs");
            let third = Work::default();
            assert_eq!(
                pool.run(&other, &third, async { Ok::<_, PoolError>(3) }).await.ok(),
                Some(3),
                "another connection"
            );
            assert_eq!(pool.threads.available_permits(), 1, "the second request waits for the first");
            end.send(()).expect("it still runs");
        };
        let (first, second, ()) = tokio::join!(first, second, beside);
        assert_eq!((first.ok(), second.ok()), (Some(7), Some(2)));
    }

    #[tokio::test]
    async fn a_long_request_lets_others_take_steps() {
        let pool = CpuPool::with_threads(1);
        let (one, other) = (connection(), connection());
        let is_done = Arc::new(AtomicBool::new(false));
        // Ends only after the other request, which needs the same thread five times.
        let until_done = {
            let (is_done, mut steps) = (Arc::clone(&is_done), 0);
            move || {
                steps += 1;
                assert!(steps < 100_000, "the other request gets no turn");
                Ok::<_, PoolError>(is_done.load(SeqCst).then_some(()))
            }
        };
        let mut left = 5;
        let five_steps = move || {
            left -= 1;
            Ok::<_, PoolError>((left == 0).then(|| is_done.store(true, SeqCst)))
        };
        let (long, short) = (Work::default(), Work::default());
        let (long, short) = tokio::join!(
            pool.run_in_steps(&one, &long, until_done),
            pool.run_in_steps(&other, &short, five_steps)
        );
        assert_eq!((long, short), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn one_connection_does_not_take_all_permits() {
        let pool = CpuPool::with_threads(1);
        let (greedy, other, work) = (connection(), connection(), Work::default());
        let (started, _end, request) = busy(&work);
        let mut held = Box::pin(pool.run(&greedy, &work, request));
        tokio::select! {
            _ = &mut held => panic!("it does not end by itself"),
            _ = started => {}
        }
        let waiting: Vec<Work> = (1..MAX_PER_CONNECTION).map(|_| Work::default()).collect();
        let mut queue: Vec<_> = waiting
            .iter()
            .map(|work| Box::pin(pool.run(&greedy, work, async { Ok::<_, PoolError>(0) })))
            .collect();
        for request in &mut queue {
            assert_eq!(request.as_mut().now_or_never(), None, "it waits for its turn");
        }
        let (refused, next) = (Work::default(), Work::default());
        let refused = pool.run(&greedy, &refused, async { Ok::<_, PoolError>(1) });
        assert_eq!(refused.await, Err(PoolError::Full));
        let mut admitted = std::pin::pin!(pool.run(&other, &next, async { Ok::<_, PoolError>(2) }));
        assert_eq!(admitted.as_mut().now_or_never(), None, "it waits for the thread");
        drop((held, queue));
        assert_eq!(admitted.await, Ok(2));
    }

    #[tokio::test]
    async fn too_many_requests_are_refused() {
        let pool = CpuPool::full();
        let (extensions, work) = (Extensions::new(), Work::default());
        let refused = pool.run(&extensions, &work, async { Ok::<_, PoolError>(()) });
        assert_eq!(refused.now_or_never(), Some(Err(PoolError::Full)));
    }
}
