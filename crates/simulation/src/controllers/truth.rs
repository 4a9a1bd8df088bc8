//! The true state of a world: the objects in the store, the reconciles in flight, and the effects outside the
//! cluster.

mod departures;
mod objects;
mod recorder;
mod rules;
mod specification;

pub(super) use departures::CONTROLLER;
pub(super) use objects::Child;
pub(super) use objects::SiteState;
pub(super) use recorder::record;
pub(super) use rules::WriteRequest;

use super::{
    settings::Settings,
    totals::{Fault, Totals},
};
use crate::log::Log;
use departures::Departures;
use kube_informer_wire::sync::lock;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use tokio::{sync::mpsc, time::Instant};

/// The truth of a world.
pub(super) struct Truth {
    state: Mutex<State>,
    pub(super) log: Arc<Log>,
    pub(super) settings: Settings,
    /// Names that are to be created again.
    recreate: mpsc::UnboundedSender<String>,
}

#[derive(Default)]
pub(super) struct State {
    /// By name, as they are stored.
    pub(super) sites: BTreeMap<String, SiteState>,
    pub(super) children: BTreeMap<String, Child>,
    /// The holder of each Lease; empty if it has none.
    pub(super) leases: BTreeMap<String, String>,
    /// The Leases that any replica may take, and since when.
    pub(super) free: BTreeMap<String, Instant>,
    departures: Departures,
    /// The reconciles in flight, by the name of the site.
    running: BTreeMap<String, Vec<Work>>,
    started: u64,
    /// The effects outside the cluster: the value of each account, by the uid of its site.
    pub(super) accounts: BTreeMap<String, String>,
    /// The uids of sites whose cleanup has begun.
    cleaned: BTreeSet<String>,
    /// The uids of sites that have the finalizer of a user.
    pub(super) user_finalizers: BTreeSet<String>,
    /// The names that a user creates again as soon as they are gone.
    pub(super) recreated: BTreeSet<String>,
    /// Number of commits of sites and children, and of effects.
    pub(super) changes: u64,
    pub(super) totals: Totals,
}

/// A reconcile in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Work {
    id: u64,
    process: String,
    uid: String,
}

impl Truth {
    pub(super) fn new(settings: Settings, log: &Arc<Log>) -> (Arc<Self>, mpsc::UnboundedReceiver<String>) {
        let (recreate, names) = mpsc::unbounded_channel();
        let mut state = State::default();
        state.totals.seeds = 1;
        let truth = Self { state: Mutex::new(state), log: Arc::clone(log), settings, recreate };
        (Arc::new(truth), names)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Records a fault that took effect.
    pub(super) fn record_fault(&self, fault: Fault) {
        self.lock().totals.add_fault(fault);
        self.log.note(format_args!("fault {}", fault.name()));
    }

    /// The names of the sites that are being reconciled.
    pub(super) fn in_flight(&self) -> Vec<String> {
        let state = self.lock();
        let running = state.running.iter().filter(|(_, running)| !running.is_empty());
        running.map(|(name, _)| name.clone()).collect()
    }

    /// The holder of a lease in the store; empty if there is none.
    pub(super) fn holder(&self, lease: &str) -> String {
        self.lock().leases.get(lease).cloned().unwrap_or_default()
    }

    /// A lease that any replica may have taken for longer than this.
    pub(super) fn free_for(&self, longer: Duration) -> Option<String> {
        let state = self.lock();
        let mut free = state.free.iter().filter(|(_, since)| since.elapsed() > longer);
        free.next().map(|(lease, _)| lease.clone())
    }

    /// The leases of a process in the store.
    pub(super) fn leases_of(&self, process: &str) -> Vec<String> {
        let state = self.lock();
        let held = state.leases.iter().filter(|(_, holder)| *holder == process);
        held.map(|(lease, _)| lease.clone()).collect()
    }
}
