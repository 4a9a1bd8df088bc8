//! The stages of a controller.

use kube_informer_wire::sync::lock;
use std::{fmt, sync::Mutex};

/// The stage of a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// It was not started; with leader election, another process may be leading.
    #[default]
    Waiting,
    /// It waits for the initial lists of its caches.
    Syncing,
    /// It won leadership, and waits for proof that its caches are current.
    CheckingCaches,
    Running,
    /// It waits for the reconciles in flight.
    Draining,
    /// It cannot stop: reconciles that were cancelled do not end.
    Blocked,
    Stopped,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting => "waiting to lead",
            Self::Syncing => "waiting for its caches",
            Self::CheckingCaches => "checking that its caches are current",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Blocked => "cannot stop: reconciles block their threads",
            Self::Stopped => "stopped",
        })
    }
}

/// The current phase.
#[derive(Debug, Default)]
pub(crate) struct PhaseCell(Mutex<Phase>);

impl PhaseCell {
    pub(crate) fn set(&self, phase: Phase) {
        *lock(&self.0) = phase;
    }

    pub(crate) fn get(&self) -> Phase {
        *lock(&self.0)
    }
}
