//! The result of a reconcile.

use std::time::Duration;

/// The next step after a reconcile that did not fail. Each of them forgets earlier failures of the key.
///
/// Whatever the action, a change of the object, or of an object that the controller owns or watches, reconciles it again.
///
/// ```
/// use kube_informer_controller::Action;
/// use std::time::Duration;
///
/// assert_eq!(Action::requeue_after(Duration::from_secs(60)).delay(), Some(Duration::from_secs(60)));
/// assert_eq!(Action::done().delay(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the controller acts on the action that reconcile returns"]
pub struct Action(Next);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Done,
    AwaitChange,
    RequeueAfter(Duration),
}

impl Action {
    /// The object is in its desired state.
    pub const fn done() -> Self {
        Self(Next::Done)
    }

    /// The object is not in its desired state yet, and only a change of an object can bring it further. Differs from
    /// [`done`](Self::done) in metrics only.
    pub const fn await_change() -> Self {
        Self(Next::AwaitChange)
    }

    /// Reconciles the object again after `delay`, or earlier if something changes.
    pub const fn requeue_after(delay: Duration) -> Self {
        Self(Next::RequeueAfter(delay))
    }

    /// The same as [`requeue_after`](Self::requeue_after), by the name that it has in kube-rs.
    pub const fn requeue(delay: Duration) -> Self {
        Self::requeue_after(delay)
    }

    /// The delay of [`requeue_after`](Self::requeue_after).
    pub const fn delay(&self) -> Option<Duration> {
        match self.0 {
            Next::RequeueAfter(delay) => Some(delay),
            Next::Done | Next::AwaitChange => None,
        }
    }

    /// The label `result` of metrics.
    pub(crate) fn label(self) -> &'static str {
        match self.0 {
            Next::Done => "done",
            Next::AwaitChange => "await_change",
            Next::RequeueAfter(_) => "requeue_after",
        }
    }
}
