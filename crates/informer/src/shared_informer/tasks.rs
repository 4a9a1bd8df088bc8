//! The tasks of one informer, and how they end.

use crate::{
    compaction::Upkeep,
    controller::Controller,
    fail_point::FailPoints,
    handler::Deliver,
    listener::{self, Listener},
    persist::Persister,
    reflector::Reflector,
    supervision::Supervision,
    telemetry::Task,
};
use futures_util::{FutureExt, future::BoxFuture};
use kube_informer_wire::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::{runtime::Handle, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// The treatment of events that are not delivered yet when an informer stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Events that were read from the server are applied and delivered first.
    Drain,
    /// A call that is running ends; nothing else is delivered.
    Drop,
}

/// The tasks of one informer. Dropping this aborts them all.
pub(super) struct Tasks {
    /// Held while tasks are spawned or taken out, never over an `.await` or a drop of code of the user.
    state: Mutex<State>,
    supervision: Arc<Supervision>,
    fail_points: FailPoints,
    /// Cancelled when undelivered events are to be dropped.
    dropping: CancellationToken,
    /// Cancelled when the store no longer changes, and is to be saved.
    save_and_end: CancellationToken,
    /// Cancelled when nothing runs any more.
    finished: CancellationToken,
}

enum State {
    New {
        reflectors: Vec<Reflector>,
        upkeep: Option<Upkeep>,
        persister: Option<Box<Persister>>,
        pending: Vec<Arc<Listener>>,
    },
    Running(Running),
    Stopped,
}

struct Running {
    runtime: Handle,
    supervision: Arc<Supervision>,
    fail_points: FailPoints,
    reflectors: JoinSet<()>,
    controller: JoinSet<()>,
    compaction: JoinSet<()>,
    persister: JoinSet<()>,
    listeners: JoinSet<()>,
}

impl Tasks {
    pub(super) fn new(
        reflectors: Vec<Reflector>,
        upkeep: Upkeep,
        persister: Option<Persister>,
        supervision: Arc<Supervision>,
        fail_points: FailPoints,
    ) -> Self {
        let (upkeep, persister) = (Some(upkeep), persister.map(Box::new));
        Self {
            state: Mutex::new(State::New { reflectors, upkeep, persister, pending: Vec::new() }),
            supervision,
            fail_points,
            dropping: CancellationToken::new(),
            save_and_end: CancellationToken::new(),
            finished: CancellationToken::new(),
        }
    }

    pub(super) fn supervision(&self) -> &Supervision {
        &self.supervision
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(*self.lock(), State::Stopped)
    }

    /// Starts the tasks, once.
    pub(super) fn start(&self, controller: &Arc<Controller>) {
        // Outside a runtime this panics: before anything has been taken out.
        let runtime = Handle::current();
        let mut parked = Vec::new();
        let mut state = self.lock();
        let State::New { reflectors, upkeep, persister, pending } = &mut *state else { return };
        let (reflectors, pending) = (std::mem::take(reflectors), std::mem::take(pending));
        let compact = upkeep.take().map(|upkeep| upkeep.run(Arc::clone(&self.supervision)));
        let stop = &self.save_and_end;
        let save = persister.take().map(|task| task.run(stop.clone(), Arc::clone(&self.supervision)));
        let mut running = Running {
            runtime,
            supervision: Arc::clone(&self.supervision),
            fail_points: self.fail_points.clone(),
            reflectors: JoinSet::new(),
            controller: JoinSet::new(),
            compaction: JoinSet::new(),
            persister: JoinSet::new(),
            listeners: JoinSet::new(),
        };
        for listener in pending {
            parked.extend(running.listen(listener));
        }
        let run =
            run_controller(Arc::clone(controller), self.dropping.clone(), Arc::clone(&self.supervision));
        let run = Parked::new(self.supervision.guard(Task::Controller, run));
        running.controller.spawn_on(run.unpark(), &running.runtime);
        parked.push(run);
        for reflector in reflectors {
            let run = Parked::new(self.supervision.guard(Task::Reflector, reflector.run()));
            running.reflectors.spawn_on(run.unpark(), &running.runtime);
            parked.push(run);
        }
        if let Some(compact) = compact {
            let run = Parked::new(self.supervision.guard(Task::Compaction, compact));
            running.compaction.spawn_on(run.unpark(), &running.runtime);
            parked.push(run);
        }
        if let Some(save) = save {
            let run = Parked::new(self.supervision.guard(Task::Persister, save));
            running.persister.spawn_on(run.unpark(), &running.runtime);
            parked.push(run);
        }
        *state = State::Running(running);
        drop(state);
        drop(parked);
    }

    /// Calls a handler with the events of its listener from now on, or from the start on.
    pub(super) fn deliver(&self, listener: Arc<Listener>, deliver: Deliver) {
        listener.set_handler(deliver);
        let mut state = self.lock();
        let parked = match &mut *state {
            State::New { pending, .. } => {
                pending.retain(|listener| !*listener.has_ended().borrow());
                pending.push(listener);
                return;
            }
            State::Running(running) => running.listen(listener),
            State::Stopped => {
                drop(state);
                listener.ended();
                return;
            }
        };
        drop(state);
        drop(parked);
    }

    /// Makes tasks that were never started stop: they will not be.
    pub(super) fn refuse(&self) {
        let state = std::mem::replace(&mut *self.lock(), State::Stopped);
        self.supervision.stop();
        self.finished.cancel();
        drop(state);
    }

    /// Ends all tasks, in the order of the pipeline. When this returns no task runs, also if another call began the stop.
    pub(super) async fn stop(&self, stop: Stop, controller: &Arc<Controller>) {
        let state = std::mem::replace(&mut *self.lock(), State::Stopped);
        self.supervision.stop();
        if stop == Stop::Drop {
            self.dropping.cancel();
            close_listeners(controller, Stop::Drop);
        }
        if matches!(state, State::Stopped) {
            self.finished.cancelled().await;
            return;
        }
        let _finish = Finish { controller, supervision: &self.supervision, finished: &self.finished };
        if let State::Running(mut running) = state {
            running.reflectors.shutdown().await;
            controller.queue.close();
            finish(&mut running.controller).await;
            self.save_and_end.cancel();
            finish(&mut running.persister).await;
            close_listeners(controller, Stop::Drain);
            finish(&mut running.listeners).await;
            running.compaction.shutdown().await;
        }
        close_listeners(controller, stop);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.supervision.stop();
        if let State::New { pending, .. } = &*self.lock() {
            pending.iter().for_each(|listener| listener.ended());
        }
    }
}

impl Running {
    /// Starts the task of a listener. The result is to be dropped without the lock.
    #[must_use]
    fn listen(&mut self, listener: Arc<Listener>) -> Option<Parked> {
        // Those that ended are removed here, so that handlers that come and go leave nothing behind.
        while self.listeners.try_join_next().is_some() {}
        let handler = listener.take_handler()?;
        let calls = listener::run(listener, handler, Arc::clone(&self.supervision), self.fail_points.clone());
        let calls = Parked::new(self.supervision.guard(Task::Handler, calls));
        self.listeners.spawn_on(calls.unpark(), &self.runtime);
        Some(calls)
    }
}

/// The future of a task until the task runs.
///
/// A runtime that is shut down drops what is spawned on it at once. The future owns code of the user (handler, source, error
/// hook), which must not be dropped under our lock: so the task only takes the future from here, and the one who spawned it
/// drops this after the lock.
struct Parked(Arc<Mutex<Option<BoxFuture<'static, ()>>>>);

impl Parked {
    fn new(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(future.boxed()))))
    }

    /// The future of the task.
    fn unpark(&self) -> impl Future<Output = ()> + Send + use<> {
        let parked = Arc::clone(&self.0);
        async move {
            let future = lock(&parked).take();
            drop(parked);
            if let Some(future) = future {
                future.await;
            }
        }
    }
}

/// The future of the controller. If it is dropped, streams end after what they have still to take.
fn run_controller(
    controller: Arc<Controller>,
    stop: CancellationToken,
    supervision: Arc<Supervision>,
) -> impl Future<Output = ()> + Send {
    let end = EndListeners(Arc::clone(&controller));
    async move {
        controller.run(stop, &supervision).await;
        drop(end);
    }
}

/// Ends the listeners with the task of the controller, after which no event is queued.
struct EndListeners(Arc<Controller>);

impl Drop for EndListeners {
    fn drop(&mut self) {
        close_listeners(&self.0, Stop::Drain);
    }
}

/// Ends the listeners and announces the end of a stop, also if the future of the stop is dropped.
struct Finish<'a> {
    controller: &'a Controller,
    supervision: &'a Supervision,
    finished: &'a CancellationToken,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.controller.queue.close();
        let listeners: Vec<_> = self.controller.between_batches().listeners().cloned().collect();
        listeners.iter().for_each(|listener| listener.stopped());
        self.supervision.telemetry().release_name();
        self.finished.cancel();
    }
}

pub(super) fn close_listeners(controller: &Controller, stop: Stop) {
    // Closing may drop a handler, which is not ours to know: not under the lock.
    let listeners: Vec<_> = controller.between_batches().listeners().cloned().collect();
    listeners.iter().for_each(|listener| listener.close(stop == Stop::Drain));
}

async fn finish(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
