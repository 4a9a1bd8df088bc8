//! The tasks of one informer: who runs them, and how they end.

use super::Pending;
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
}

enum State {
    New { reflectors: Vec<Reflector>, pending: Vec<Pending> },
    Running(Running),
    Stopped,
}

struct Running {
    runtime: Handle,
    reflectors: JoinSet<()>,
    controller: JoinSet<()>,
    stop_controller: CancellationToken,
    listeners: JoinSet<()>,
}

impl Tasks {
    pub(super) fn new(reflectors: Vec<Reflector>, telemetry: Arc<Telemetry>) -> Self {
        Self {
            state: Mutex::new(State::New { reflectors, pending: Vec::new() }),
            telemetry,
            stopped: CancellationToken::new(),
        }
    }

    pub(super) fn telemetry(&self) -> &Telemetry {
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
        let mut state = self.lock();
        let State::New { reflectors, pending } = &mut *state else { return };
        let (reflectors, pending) = (std::mem::take(reflectors), std::mem::take(pending));
        let mut running = Running {
            runtime: Handle::current(),
            reflectors: JoinSet::new(),
            controller: JoinSet::new(),
            stop_controller: CancellationToken::new(),
            listeners: JoinSet::new(),
        };
        for (listener, deliver) in pending {
            running.listen(listener, deliver, &self.telemetry);
        }
        let (controller, stop) = (Arc::clone(controller), running.stop_controller.clone());
        running.controller.spawn(async move { controller.run(stop).await });
        for reflector in reflectors {
            running.reflectors.spawn(reflector.run());
        }
        *state = State::Running(running);
    }

    /// Sees to it that a listener's events reach its handler.
    pub(super) fn deliver(&self, listener: Arc<Listener>, deliver: Deliver) {
        match &mut *self.lock() {
            State::New { pending, .. } => {
                // One that was removed in the meantime is no longer of interest.
                pending.retain(|(listener, _)| !*listener.has_ended().borrow());
                pending.push((listener, deliver));
            }
            State::Running(running) => running.listen(listener, deliver, &self.telemetry),
            State::Stopped => listener.ended(),
        }
    }

    /// Ends everything, in the order of the pipeline. When this returns, nothing runs any more.
    pub(super) async fn stop(&self, stop: Stop, controller: &Arc<Controller>) {
        let state = std::mem::replace(&mut *self.lock(), State::Stopped);
        self.stopped.cancel();
        controller.queue.close();
        if let State::Running(mut running) = state {
            running.reflectors.shutdown().await;
            if stop == Stop::Drop {
                running.stop_controller.cancel();
            }
            finish(&mut running.controller).await;
            close_listeners(controller, stop);
            finish(&mut running.listeners).await;
        } else {
            close_listeners(controller, stop);
        }
        for listener in controller.between_batches().listeners() {
            listener.ended();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    fn listen(&mut self, listener: Arc<Listener>, deliver: Deliver, telemetry: &Arc<Telemetry>) {
        // Those that ended are forgotten here, so that coming and going handlers leave nothing behind.
        while self.listeners.try_join_next().is_some() {}
        self.listeners.spawn_on(listener::run(listener, deliver, Arc::clone(telemetry)), &self.runtime);
    }
}

fn close_listeners(controller: &Controller, stop: Stop) {
    for listener in controller.between_batches().listeners() {
        listener.close(stop == Stop::Drain);
    }
}

async fn finish(tasks: &mut JoinSet<()>) {
    while tasks.join_next().await.is_some() {}
}
