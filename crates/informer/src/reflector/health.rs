//! How a reflector is, as others see it.

use super::{Failure, Input, Reflector, machine::Class};
use crate::{
    status::InformerStatus,
    telemetry::{InformerError, RelistReason},
};
use kube_informer_wire::{ListWatchError, ResourceVersion};
use tokio::time::Instant;

/// What has been failing, and since when.
#[derive(Default)]
pub(super) struct Health {
    failure: Option<Failing>,
    /// The status the log was told last.
    logged: Option<&'static str>,
}

struct Failing {
    class: Class,
    why: String,
    since: Instant,
    /// Whether it is the watch that fails: then a list does not heal it.
    watch: bool,
}

impl Health {
    pub(super) fn is_failing(&self) -> bool {
        self.failure.is_some()
    }

    pub(super) fn is_watch_failing(&self) -> bool {
        self.failure.as_ref().is_some_and(|failing| failing.watch)
    }

    fn note(&mut self, class: Class, why: String, watch: bool) {
        let before = self.failure.as_ref();
        let since = before.map_or_else(Instant::now, |failing| failing.since);
        let watch = watch || before.is_some_and(|failing| failing.watch);
        self.failure = Some(Failing { class, why, since, watch });
    }
}

impl Reflector {
    /// A list failed, or what stands in for it.
    pub(super) fn list_failed(&mut self, error: ListWatchError) -> Input {
        let failure = Failure::of(&error);
        self.note_failure(failure.class, &error, false);
        self.telemetry.failed(&InformerError::List(error));
        Input::Failed(failure)
    }

    /// A streaming list failed: nothing is wrong yet, as long as a list works.
    pub(super) fn stream_failed(&mut self, failure: Failure, error: ListWatchError) -> Input {
        self.note_failure(failure.class, &error, false);
        self.telemetry.failed(&InformerError::Watch(error));
        Input::Failed(failure)
    }

    /// A watch could not be opened, or broke.
    pub(super) fn watch_failed(&mut self, error: ListWatchError) -> Input {
        self.watch_broke(Failure::of(&error), error)
    }

    pub(super) fn watch_broke(&mut self, failure: Failure, error: ListWatchError) -> Input {
        self.note_failure(failure.class, &error, true);
        self.telemetry.failed(&InformerError::Watch(error));
        Input::Failed(failure)
    }

    /// Something failed that the machine learns of in another way.
    pub(super) fn note_failure(&mut self, class: Class, error: &ListWatchError, watch: bool) {
        self.health.note(class, error.to_string(), watch);
        if class == Class::Expired {
            self.reason = Some(RelistReason::Expired);
        }
    }

    /// The task panicked and restarts at `next`. A list does not heal that: the watch may have caused it.
    pub(super) fn note_panic(&mut self, message: &str, next: Option<Instant>) {
        self.health.note(Class::Panicked, format!("the reflector panicked: {message}"), true);
        self.failing(next);
    }

    /// Everything works, and the server was heard of just now.
    pub(super) fn recovered(&mut self, version: Option<ResourceVersion>) {
        self.health.failure = None;
        self.set_status(InformerStatus::Live { version, heard: Instant::now() });
    }

    /// What failed is tried again at `next`.
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

    /// Told to the log only when the word for it changes. A retry that gets somewhere before it fails once more
    /// is no news.
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
