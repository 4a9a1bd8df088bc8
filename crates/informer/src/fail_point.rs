//! Places at which a test can make a task of the informer panic.

use std::{fmt, sync::Arc};

/// A place in a task of the informer.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailPoint {
    /// The reflector decides what to do next.
    ReflectorStep,
    /// The reflector has read an event of the watch and has not queued it yet.
    ReflectorEvent,
    /// The controller has taken a batch from the queue.
    BatchTaken,
    /// The controller has applied a batch to a store that is not published yet.
    BatchApplied,
    /// The store shows a batch, of which no handler has been notified.
    BatchPublished,
    /// One more handler has been given a batch.
    BatchQueued,
    /// All handlers have been given a batch, which is not committed yet.
    BatchDelivered,
    /// The task of a handler has taken an event and has not called the handler yet.
    HandlerCall,
    /// The handler has returned.
    HandlerReturned,
    /// Compaction is between two steps.
    Compacting,
    /// A change is about to be saved.
    Saving,
}

/// Called at each [`FailPoint`]; may panic.
#[derive(Clone, Default)]
pub(crate) struct FailPoints(Option<Arc<dyn Fn(FailPoint) + Send + Sync>>);

impl FailPoints {
    pub(crate) fn new(hook: impl Fn(FailPoint) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    pub(crate) fn at(&self, point: FailPoint) {
        if let Some(hook) = &self.0 {
            hook(point);
        }
    }
}

impl fmt::Debug for FailPoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FailPoints({})", if self.0.is_some() { "set" } else { "none" })
    }
}
