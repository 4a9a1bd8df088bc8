//! The status of a reflector.

use super::{Failure, Input, Reflector, machine::Class};
use crate::{
    status::InformerStatus,
    telemetry::{InformerError, RelistReason},
};
use kube_informer_wire::{ListWatchError, ResourceVersion};
use tokio::time::Instant;

/// The failing operation, and since when it fails.
#[derive(Default)]
pub(super) struct Health {
    failure: Option<Failing>,
    /// The status in the last log line.
    logged: Option<&'static str>,
}

struct Failing {
    class: Class,
    why: String,
    since: Instant,
    recovery: Recovery,
}

/// The success that ends a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recovery {
    List,
    /// Only a watch: a list may succeed while every watch fails.
    Watch,
}

impl Health {
    pub(super) fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    pub(super) fn is_watch_failing(&self) -> bool {
        self.failure.as_ref().is_some_and(|failing| failing.recovery == Recovery::Watch)
    }

    fn note(&mut self, class: Class, why: String, recovery: Recovery) {
        let before = self.failure.as_ref();
        let since = before.map_or_else(Instant::now, |failing| failing.since);
        let recovery = if self.is_watch_failing() { Recovery::Watch } else { recovery };
        self.failure = Some(Failing { class, why, since, recovery });
    }
}

impl Reflector {
    pub(super) fn list_failed(&mut self, error: ListWatchError) -> Input {
        let failure = Failure::of(&error);
        self.note_failure(failure.class, &error, Recovery::List);
        self.telemetry.failed(&InformerError::List(error));
        Input::Failed(failure)
    }

    /// A streaming list failed, which a paged list may replace.
    pub(super) fn stream_failed(&mut self, failure: Failure, error: ListWatchError) -> Input {
        self.note_failure(failure.class, &error, Recovery::List);
        self.telemetry.failed(&InformerError::Watch(error));
        Input::Failed(failure)
    }

    pub(super) fn note_watch_failure(&mut self, class: Class, error: &ListWatchError) {
        self.note_failure(class, error, Recovery::Watch);
    }

    fn note_failure(&mut self, class: Class, error: &ListWatchError, recovery: Recovery) {
        let why = match class {
            Class::Absent => format!("{} ({error})", self.telemetry.unserved()),
            _ => error.to_string(),
        };
        self.health.note(class, why, recovery);
        if class == Class::Expired {
            self.reason = Some(RelistReason::Expired);
        }
    }

    /// The task panicked and restarts at `next`. The watch may have caused it.
    pub(super) fn note_panic(&mut self, message: &str, next: Option<Instant>) {
        self.health.note(Class::Panicked, format!("the reflector panicked: {message}"), Recovery::Watch);
        self.failing(next);
    }

    /// Everything works, and the server has just sent something.
    pub(super) fn recovered(&mut self, version: Option<ResourceVersion>) {
        self.health.failure = None;
        self.set_status(match &self.restored {
            Some((version, age)) if !self.machine.is_proven() => {
                InformerStatus::Restored { version: version.clone(), age: *age }
            }
            _ => InformerStatus::Live { version, last_contact: Instant::now() },
        });
    }

    /// The failed request is retried at `next`.
    pub(super) fn failing(&mut self, next: Option<Instant>) {
        let Some(Failing { class, why, since, .. }) = &self.health.failure else { return };
        let (since, why) = (*since, why.clone());
        self.set_status(match class {
            Class::Denied => InformerStatus::Denied { since, why, next },
            Class::Absent => InformerStatus::Absent { since, why, next },
            Class::Panicked => InformerStatus::Failed { since, why, next },
            _ => InformerStatus::Retrying { since, why, next },
        });
    }

    /// Sets the status, and logs it when its word changes. A retry that fails again is not logged.
    pub(super) fn set_status(&mut self, status: InformerStatus) {
        let word = status.word();
        let retry = self.health.is_failing() && matches!(status, InformerStatus::Syncing { .. });
        self.status.send_replace(status);
        if !retry && self.health.logged != Some(word) {
            self.health.logged = Some(word);
            self.telemetry.status_changed(self.namespace.as_deref(), &self.status.borrow());
        }
    }
}
