//! Panics of the tasks of an informer, and the check that each is visible.

use crate::{log::Log, totals::Fault};
use kube_informer::{FailPoint, InformerError, InformerStatus, Task};
use kube_informer_wire::sync::lock;
use std::{
    fmt,
    panic::resume_unwind,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;

/// A task that panicked is restarted after this time at the earliest.
const RESTART_DELAY: Duration = Duration::from_millis(800);

/// Makes tasks panic at random fail points. It checks these promises:
///
/// 1. Each panic is reported to the error hook, once and at once.
/// 2. The status is `Failed` until the task is restarted.
#[derive(Clone, Default)]
pub(crate) struct TaskPanics {
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for TaskPanics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.left())
    }
}

#[derive(Default)]
struct State {
    /// The remaining number of panics.
    left: u32,
    rng: Option<fastrand::Rng>,
    injected: u64,
    reported: u64,
    /// When a reflector or the controller panicked last. A handler may be removed before it is restarted.
    last: Option<Instant>,
}

impl TaskPanics {
    pub(crate) fn new(times: u32, seed: u64) -> Self {
        let rng = (times > 0).then(|| fastrand::Rng::with_seed(seed));
        let state = Arc::new(Mutex::new(State { left: times, rng, ..State::default() }));
        Self { state }
    }

    /// Whether tasks panic at all.
    pub(crate) fn is_on(&self) -> bool {
        lock(&self.state).rng.is_some()
    }

    /// The number of panics that are left.
    pub(crate) fn left(&self) -> u32 {
        lock(&self.state).left
    }

    /// No task panics from now on.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        (state.left, state.last) = (0, None);
    }

    /// To be called at each fail point.
    pub(crate) fn at(&self, point: FailPoint, log: &Log) {
        let mut state = lock(&self.state);
        let chosen = state.left > 0 && state.rng.as_mut().is_some_and(|rng| rng.u8(0..40) == 0);
        if chosen {
            state.left -= 1;
            state.injected += 1;
            drop(state);
            log.note(format_args!("a task panics at {point:?}"));
            log.record_fault(Fault::TaskPanic);
            resume_unwind(Box::new("simulated"));
        }
    }

    /// To be called by the error hook.
    pub(crate) fn report(&self, error: &InformerError) {
        if let InformerError::TaskFailed { task, .. } = error {
            let mut state = lock(&self.state);
            state.reported += 1;
            if *task != Task::Handler {
                state.last = Some(Instant::now());
            }
        }
    }

    /// Checks that every panic was reported, and that the status of a single informer shows the last one.
    pub(crate) fn check(&self, status: Option<&InformerStatus>) -> Result<(), String> {
        let state = lock(&self.state);
        if state.injected != state.reported {
            return Err(format!("{} tasks panicked, {} were reported", state.injected, state.reported));
        }
        let failed = state.last.is_some_and(|last| last.elapsed() < RESTART_DELAY);
        match status {
            Some(status) if failed && !status.is_failed() => {
                Err(format!("a task has panicked and is not restarted yet, and the status is {status}"))
            }
            _ => Ok(()),
        }
    }
}
