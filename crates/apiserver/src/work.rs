//! The work on one request: steps done, and whether its client still waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The client no longer waits: it disconnected, or the deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request was abandoned")]
pub(crate) struct Abandoned;

/// Counts a resource that a loop over all resources visits. Only tests read the count.
#[inline]
pub(crate) fn count_visit() {
    #[cfg(test)]
    visits::add();
}

/// Visits by the current thread.
#[cfg(test)]
pub(crate) mod visits {
    use std::cell::Cell;

    thread_local! {
        static VISITS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn add() {
        VISITS.set(VISITS.get() + 1);
    }

    pub(crate) fn count() -> u64 {
        VISITS.get()
    }
}

/// The work on one request. Clones count together.
///
/// 1. Loops over what a client sent count one step for each element, each lookup and each comparison. Steps are what tests measure.
/// 2. Once the work is abandoned, the next step fails, and with it everything before the result is stored. Nothing is undone after that.
#[derive(Debug, Clone, Default)]
pub(crate) struct Work(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    steps: AtomicU64,
    abandoned: AtomicBool,
    /// Whether it runs between other requests, where it must not take long.
    brief: bool,
    postponed: AtomicBool,
}

/// The cost of CEL rules that is evaluated between other requests: about a millisecond.
const BRIEF_RULE_COST: u64 = 20_000;

impl Work {
    /// Counts one step, unless the work is abandoned.
    pub(crate) fn step(&self) -> Result<(), Abandoned> {
        self.steps(1)
    }

    /// Counts several steps that are about to be done in one go.
    pub(crate) fn steps(&self, count: usize) -> Result<(), Abandoned> {
        self.0.steps.fetch_add(count as u64, Ordering::Relaxed);
        self.check()
    }

    /// Fails if the work is abandoned.
    pub(crate) fn check(&self) -> Result<(), Abandoned> {
        if self.0.abandoned.load(Ordering::Relaxed) { Err(Abandoned) } else { Ok(()) }
    }

    /// Work between other requests. Once it takes long it is [postponed](Self::postpone).
    pub(crate) fn brief() -> Self {
        Self(Arc::new(Progress { brief: true, ..Progress::default() }))
    }

    /// The largest cost of CEL rules before the work has to be postponed; `None` if it may take its time.
    pub(crate) fn rule_allowance(&self) -> Option<u64> {
        self.0.brief.then_some(BRIEF_RULE_COST)
    }

    /// Abandons work that takes too long here, so that it is repeated elsewhere.
    pub(crate) fn postpone(&self) -> Abandoned {
        self.0.postponed.store(true, Ordering::Relaxed);
        self.abandon();
        Abandoned
    }

    /// Whether the work was abandoned to be repeated.
    pub(crate) fn is_postponed(&self) -> bool {
        self.0.postponed.load(Ordering::Relaxed)
    }

    /// The steps so far.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.0.steps.load(Ordering::Relaxed)
    }

    pub(crate) fn abandon(&self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }

    /// Abandons the work when the guard is dropped.
    pub(crate) fn awaited(&self) -> Awaited {
        Awaited(self.clone())
    }
}

/// A caller that waits for the result. Dropping it abandons the work, without effect if the work has ended.
#[derive(Debug)]
pub(crate) struct Awaited(Work);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
