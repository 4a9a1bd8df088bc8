//! Supervision of the tasks of one informer: panics are reported and followed by a restart, and a task that was aborted
//! is reported.

use crate::{
    reflector::Backoff,
    status::InformerStatus,
    telemetry::{Task, Telemetry},
    time,
};
use std::{
    any::Any,
    collections::BTreeMap,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

/// A task that ran this long before it panicked is restarted after the shortest delay.
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

/// A task that all partitions depend on. Reflectors have a status of their own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TaskId {
    Controller,
    /// The name of the handler, and a number that is unique among handlers of that name.
    Handler(Arc<str>, usize),
    Compaction,
    Persister,
}

impl TaskId {
    fn task(&self) -> Task {
        match self {
            Self::Controller => Task::Controller,
            Self::Handler(..) => Task::Handler,
            Self::Compaction => Task::Compaction,
            Self::Persister => Task::Persister,
        }
    }

    fn describe(&self, message: &str) -> String {
        match self {
            Self::Controller => format!("the controller panicked: {message}"),
            Self::Handler(name, _) => format!("the task of handler {name} panicked: {message}"),
            Self::Compaction => format!("compaction panicked: {message}"),
            Self::Persister => format!("saving the cache panicked: {message}"),
        }
    }
}

/// Failures of the tasks of an informer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Board {
    stopped: bool,
    /// Why and since when tasks are aborted, which are not restarted.
    lost: Option<(String, Instant)>,
    panicked: BTreeMap<TaskId, InformerStatus>,
}

impl Board {
    /// The status of the informer, if it is not that of its reflectors.
    pub(crate) fn status(&self) -> Option<InformerStatus> {
        if self.stopped {
            return Some(InformerStatus::Stopped);
        }
        let lost = self.lost.clone().map(|(why, since)| InformerStatus::Failed { since, why, next: None });
        lost.or_else(|| self.panicked.values().next().cloned())
    }
}

/// Receives the reports of the tasks of one informer.
///
/// 1. A panic is reported once to status, metrics, error hook and log, and followed by a restart with backoff.
/// 2. A task whose future is dropped before the informer is stopped was aborted, which only the shutdown of a runtime
///    does. The informer has failed for good. That is reported once, whatever the number of tasks.
/// 3. While the informer stops, a task that panics is not restarted, so that the stop completes.
pub(crate) struct Supervision {
    telemetry: Arc<Telemetry>,
    board: watch::Sender<Board>,
    stopping: CancellationToken,
    lost: CancellationToken,
}

impl Supervision {
    pub(crate) fn new(telemetry: Arc<Telemetry>) -> Self {
        let (stopping, lost) = (CancellationToken::new(), CancellationToken::new());
        Self { telemetry, board: watch::Sender::default(), stopping, lost }
    }

    pub(crate) fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    pub(crate) fn board(&self) -> watch::Receiver<Board> {
        self.board.subscribe()
    }

    pub(crate) fn status(&self) -> Option<InformerStatus> {
        self.board.borrow().status()
    }

    /// The informer stops: from here on tasks may end.
    pub(crate) fn stop(&self) {
        self.stopping.cancel();
        self.board.send_modify(|board| board.stopped = true);
    }

    /// Resolves when the informer begins to stop.
    pub(crate) async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Resolves with the reason once tasks were aborted, which are not restarted.
    pub(crate) async fn lost(&self) -> String {
        self.lost.cancelled().await;
        self.board.borrow().lost.as_ref().map_or_else(String::new, |(why, _)| why.clone())
    }

    /// Reports that a task panicked. Returns when to restart it; `None` if the informer is stopping.
    pub(crate) fn panicked(
        &self,
        id: &TaskId,
        panic: Box<dyn Any + Send>,
        restarts: &mut Restarts,
    ) -> Option<Restart> {
        let (message, next) = (panic_message(&*panic), restarts.next());
        let why = id.describe(&message);
        self.board.send_modify(|board| {
            let since = board.panicked.get(id).and_then(InformerStatus::failing_since);
            let since = since.unwrap_or_else(Instant::now);
            board.panicked.insert(id.clone(), InformerStatus::Failed { since, why: why.clone(), next });
        });
        self.report(id.task(), why);
        (!self.stopping.is_cancelled()).then_some(Restart(next))
    }

    /// Waits until a task is to be restarted, or the informer stops.
    pub(crate) async fn wait(&self, Restart(next): Restart) {
        tokio::select! {
            biased;
            () = self.stopping() => {}
            () = time::sleep_until(next) => {}
        }
    }

    /// Reports that a task that panicked works again, or has ended.
    pub(crate) fn recovered(&self, id: &TaskId) {
        self.board.send_if_modified(|board| board.panicked.remove(id).is_some());
    }

    /// Wraps a future so that it is reported if it is dropped before it has ended.
    pub(crate) fn guard<F: Future<Output = ()>>(
        self: &Arc<Self>,
        task: Task,
        future: F,
    ) -> impl Future<Output = ()> + use<F> {
        // Outside the future, which may be dropped before it is polled.
        let guard = Guard { supervision: Arc::clone(self), task, ended: false };
        async move {
            future.await;
            guard.end();
        }
    }

    fn gone(&self, task: Task) {
        if self.stopping.is_cancelled() {
            return;
        }
        let why = match std::thread::panicking() {
            true => {
                format!("the task of the {task} panicked and cannot be restarted: has its runtime a timer?")
            }
            false => format!("the task of the {task} was aborted: has its runtime been shut down?"),
        };
        let first = self.board.send_if_modified(|board| {
            let first = board.lost.is_none();
            board.lost.get_or_insert_with(|| (why.clone(), Instant::now()));
            first
        });
        if first {
            self.lost.cancel();
            self.report(task, why);
        }
    }

    /// Log, metrics and error hook are user code, which may panic.
    fn report(&self, task: Task, why: String) {
        let _ = catch_unwind(AssertUnwindSafe(|| self.telemetry.task_failed(task, why)));
    }
}

/// When a task is restarted.
pub(crate) struct Restart(Option<Instant>);

/// Reports a task whose future is dropped before it has ended.
struct Guard {
    supervision: Arc<Supervision>,
    task: Task,
    ended: bool,
}

impl Guard {
    fn end(mut self) {
        self.ended = true;
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.ended {
            self.supervision.gone(self.task);
        }
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
