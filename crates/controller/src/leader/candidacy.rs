//! A lease as a process that waits for it knows it, for health reports.

use kube_informer_wire::sync::lock;
use std::{sync::Mutex, time::Duration};
use tokio::time::Instant;

/// The state of a process that does not hold the lease yet.
pub(crate) struct Candidacy {
    /// Namespace and name of the Lease.
    lease: String,
    /// How long attempts may fail. A server that restarts is back within a lease duration; a process that fails for longer
    /// would not replace a leader that ends.
    patience: Duration,
    state: Mutex<State>,
}

enum State {
    /// No attempt has ended yet.
    Trying,
    HeldBy(String),
    Failing {
        since: Instant,
        why: String,
    },
}

impl Candidacy {
    pub(super) fn new(lease: String, patience: Duration) -> Self {
        Self { lease, patience, state: Mutex::new(State::Trying) }
    }

    /// Another process holds the lease.
    pub(super) fn held_by(&self, holder: &str) {
        *lock(&self.state) = State::HeldBy(holder.to_owned());
    }

    /// An attempt to acquire the lease failed.
    pub(super) fn failed(&self, why: &str) {
        let mut state = lock(&self.state);
        let since = match *state {
            State::Failing { since, .. } => since,
            State::Trying | State::HeldBy(_) => Instant::now(),
        };
        *state = State::Failing { since, why: why.to_owned() };
    }

    /// The state as text; an error if this process cannot take over.
    pub(crate) fn report(&self) -> Result<String, String> {
        match &*lock(&self.state) {
            State::Trying => Ok("waiting to lead".to_owned()),
            State::HeldBy(holder) => Ok(format!("waiting to lead; held by {holder}")),
            State::Failing { since, why } => {
                let text = format!("waiting to lead; cannot acquire {}: {why}", self.lease);
                if since.elapsed() > self.patience { Err(text) } else { Ok(text) }
            }
        }
    }
}
