//! The tasks of one informer: who runs them, and how they end.

use crate::{
    controller::Controller,
    handler::Deliver,
    listener::{self, Listener},
    reflector::Reflector,
    telemetry::Telemetry,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::{runtime::Handle, task::JoinSet};
use tokio_util::sync::CancellationToken;

/// What happens to events that are on their way when an informer stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// What has been read from the server is applied, and handlers hear of it, before it ends.
    Drain,
    /// A call that is running ends; nothing else is delivered.
    Drop,
}

/// The tasks of one informer. Dropping this aborts them all.
pub(super) struct Tasks {
    /// Held while tasks are started or taken out, never over an `.await`.
    state: Mutex<State>,
    telemetry: Arc<Telemetry>,
    /// Cancelled when the informer begins to stop.
    stopped: CancellationToken,
    /// Cancelled when what is on its way is to be dropped.
    dropping: CancellationToken,
    /// Cancelled when nothing runs any more.
    finished: CancellationToken,
}

enum State {
    New { reflectors: Vec<Reflector>, pending: Vec<Arc<Listener>> },
    Running(Running),
    Stopped,
}

struct Running {
    runtime: Handle,
    reflectors: JoinSet<()>,
    controller: JoinSet<()>,
    listeners: JoinSet<()>,
}

impl Tasks {
    pub(super) fn new(reflectors: Vec<Reflector>, telemetry: Arc<Telemetry>) -> Self {
        Self {
            state: Mutex::new(State::New { reflectors, pending: Vec::new() }),
            telemetry,
            stopped: CancellationToken::new(),
            dropping: CancellationToken::new(),
            finished: CancellationToken::new(),
        }
    }

    pub(super) fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(*self.lock(), State::Stopped)
    }

    /// Resolves when the informer begins to stop.
    pub(super) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Starts what has not been started.
    pub(super) fn start(&self, controller: &Arc<Controller>) {
        // Outside a runtime this panics: before anything has been taken out.
        let runtime = Handle::current();
        let mut state = self.lock();
        let State::New { reflectors, pending } = &mut *state else { return };
        let (reflectors, pending) = (std::mem::take(reflectors), std::mem::take(pending));
        let mut running = Running {
            runtime,
            reflectors: JoinSet::new(),
            controller: JoinSet::new(),
            listeners: JoinSet::new(),
        };
        for listener in pending {
            running.listen(listener, &self.telemetry);
        }
        let (controller, stop) = (Arc::clone(controller), self.dropping.clone());
        running.controller.spawn(async move { controller.run(stop).await });
        for reflector in reflectors {
            running.reflectors.spawn(reflector.run());
        }
        *state = State::Running(running);
    }

    /// Sees to it that a listener's events reach its handler.
    pub(super) fn deliver(&self, listener: Arc<Listener>, deliver: Deliver) {
        listener.set_handler(deliver);
        match &mut *self.lock() {
            State::New { pending, .. } => {
                // One that was removed in the meantime is no longer of interest.
                pending.retain(|listener| !*listener.has_ended().borrow());
                pending.push(listener);
            }
            State::Running(running) => running.listen(listener, &self.telemetry),
            State::Stopped => listener.ended(),
        }
    }

    /// Ends everything, in the order of the pipeline. When this returns, nothing runs any more, whoever else
    /// has asked for it before.
    pub(super) async fn stop(&self, stop: Stop, controller: &Arc<Controller>) {
        let state = std::mem::replace(&mut *self.lock(), State::Stopped);
        self.stopped.cancel();
        if stop == Stop::Drop {
            self.dropping.cancel();
            close_listeners(controller, Stop::Drop);
        }
        if matches!(state, State::Stopped) {
            self.finished.cancelled().await;
            return;
        }
        let _finish = Finish { controller, finished: &self.finished };
        if let State::Running(mut running) = state {
            running.reflectors.shutdown().await;
            controller.queue.close();
            finish(&mut running.controller).await;
            close_listeners(controller, Stop::Drain);
            finish(&mut running.listeners).await;
        }
        close_listeners(controller, stop);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        self.stopped.cancel();
        if let State::New { pending, .. } = &*self.lock() {
            pending.iter().for_each(|listener| listener.ended());
        }
    }
}

impl Running {
    fn listen(&mut self, listener: Arc<Listener>, telemetry: &Arc<Telemetry>) {
        // Those that ended are forgotten here, so that coming and going handlers leave nothing behind.
        while self.listeners.try_join_next().is_some() {}
        if let Some(handler) = listener.take_handler() {
            let calls = listener::run(listener, handler, Arc::clone(telemetry));
            self.listeners.spawn_on(calls, &self.runtime);
        }
    }
}

/// Whatever ends a stop, also that nobody waits for it any more: the listeners end, and everybody learns it.
struct Finish<'a> {
    controller: &'a Controller,
    finished: &'a CancellationToken,
}

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.controller.queue.close();
        let listeners: Vec<_> = self.controller.between_batches().listeners().cloned().collect();
        listeners.iter().for_each(|listener| listener.stopped());
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
