//! A simulated process, which can be killed or suspended at each poll of its futures.

use kube_informer_wire::sync::lock;
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, Waker},
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};

/// How long a resumed process may take to notice that its leases have expired.
const RECOVERY: Duration = Duration::from_secs(1);

/// A process: its futures make no progress while it is suspended, and none after it was killed.
///
/// Its informers are tasks of the library, which run on. They only read, and the network delivers nothing to them.
pub(super) struct Process {
    pub(super) name: String,
    state: Mutex<State>,
    died: Notify,
}

#[derive(Default)]
struct State {
    polls: u64,
    kill_at: Option<u64>,
    dead: bool,
    suspended: bool,
    resumed: Option<Instant>,
    wakers: Vec<Waker>,
}

impl Process {
    pub(super) fn new(name: String) -> Arc<Self> {
        Arc::new(Self { name, state: Mutex::default(), died: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Kills the process at one of its next polls; at once if that is zero.
    pub(super) fn kill_after(&self, polls: u64) {
        let mut state = self.lock();
        if polls == 0 {
            drop(state);
            return self.end();
        }
        let at = state.polls + polls;
        state.kill_at = Some(state.kill_at.map_or(at, |known| known.min(at)));
    }

    /// Kills the process now.
    pub(super) fn end(&self) {
        self.lock().dead = true;
        self.died.notify_one();
    }

    pub(super) fn suspend(&self) {
        self.lock().suspended = true;
    }

    pub(super) fn resume(&self) {
        let mut state = self.lock();
        if std::mem::take(&mut state.suspended) {
            state.resumed = Some(Instant::now());
        }
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// The process is not killed later on.
    pub(super) fn spare(&self) {
        self.lock().kill_at = None;
    }

    pub(super) fn is_dead(&self) -> bool {
        self.lock().dead
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.lock().suspended
    }

    /// Whether the process may not know yet that its leases have expired, because it was suspended. No lease prevents what it does
    /// outside the cluster then.
    pub(super) fn is_recovering(&self) -> bool {
        let state = self.lock();
        state.suspended || state.resumed.is_some_and(|resumed| resumed.elapsed() < RECOVERY)
    }

    /// Resolves when the process was killed.
    pub(super) async fn died(&self) {
        while !self.is_dead() {
            self.died.notified().await;
        }
    }

    /// Whether a future of the process may be polled.
    fn may_run(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if state.dead {
            return false;
        }
        if state.suspended {
            state.wakers.push(waker.clone());
            return false;
        }
        state.polls += 1;
        if state.kill_at.is_some_and(|at| state.polls >= at) {
            drop(state);
            self.end();
            return false;
        }
        true
    }

    /// A future of the process.
    pub(super) fn run<F: Future>(self: &Arc<Self>, future: F) -> Running<F> {
        Running { process: Arc::clone(self), future: Box::pin(future) }
    }
}

/// A future of a process. It is polled only while the process runs.
pub(super) struct Running<F> {
    process: Arc<Process>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Running<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.process.may_run(context.waker()) {
            true => self.future.as_mut().poll(context),
            false => Poll::Pending,
        }
    }
}
