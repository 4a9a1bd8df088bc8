//! What a reconcile function receives besides its object.

mod writes;

use crate::{events::EventType, leadership::NotLeading, run::Shared, shards::Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_informer::{Object, ObjectKey};
use std::{fmt, sync::Arc, time::Duration};

/// The context of one reconcile. Cloning is a reference count.
#[derive(Clone)]
pub struct Context {
    shared: Arc<Shared>,
    key: ObjectKey,
    failures: u32,
    /// The object for which the key was admitted, if objects are divided among replicas.
    subject: Option<Subject>,
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, key: ObjectKey, failures: u32, subject: Option<Subject>) -> Self {
        Self { shared, key, failures, subject }
    }

    /// Whether the object of the key may be reconciled: another one of the same name may belong to another replica.
    pub(crate) fn admits<T>(&self, object: Option<&Object<T>>) -> bool {
        self.subject.as_ref().is_none_or(|subject| subject.is(object))
    }

    /// Checks that a write may be sent whose request takes up to `margin`.
    fn check_lease(&self, margin: Duration) -> Result<(), NotLeading> {
        self.shared.gate.check(margin)?;
        self.subject.as_ref().map_or(Ok(()), |subject| subject.leadership.check(margin))
    }

    /// Whether writes need a lease.
    fn needs_lease(&self) -> bool {
        self.shared.gate.is_set() || self.subject.is_some()
    }

    /// The key that is reconciled.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The name of the controller.
    pub fn controller(&self) -> &str {
        &self.shared.settings.name
    }

    /// Number of failures of this key in a row before this reconcile.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Records an event about an object: `reason` is a word in CamelCase, `note` a sentence for people. Never waits and never
    /// fails; repeated events are counted.
    pub fn event<T>(&self, about: &Object<T>, event_type: EventType, reason: &str, note: &str) {
        // Others report what happens to the object from then on.
        if self.subject.as_ref().is_none_or(|subject| subject.leadership.is_leading()) {
            self.shared.recorder.record(about, event_type, reason, note);
        }
    }

    /// A condition of an object, observed now at its generation: for [`Conditions::set`](crate::Conditions::set).
    #[must_use = "a condition has to be set in a status"]
    pub fn condition<T>(
        &self,
        of: &Object<T>,
        condition_type: &str,
        status: bool,
        reason: &str,
        message: &str,
    ) -> Condition {
        Condition {
            type_: condition_type.to_owned(),
            status: if status { "True" } else { "False" }.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: of.generation(),
            last_transition_time: Time(self.shared.settings.wall_clock.now()),
        }
    }

    /// The client of the controller: for reads from the server, and for requests that have no method here. Writes with it are
    /// not remembered.
    pub fn client(&self) -> &kube::Client {
        &self.shared.client
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({} {})", self.controller(), self.key)
    }
}
