//! Counts of injected faults and checks of a run, and its failures.

pub(crate) use kube_informer_wire::sync::lock;

use harness::FaultCounts;
use kube_informer::Uid;
use std::{
    collections::HashMap,
    fmt::{self, Display},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

harness::faults! {
    Killed = "killed", "The server was killed and restarted with an empty store.";
    Replaced = "replaced", "The server was stopped and another one, with other data, started on its port.";
    Paused = "paused", "The server was paused for longer than its clients' timeouts, and continued.";
    ServerKilled = "server-killed-on-etcd", "The server was killed and restarted on the same etcd.";
    EtcdKilled = "etcd-killed", "etcd was killed and restarted while the server ran.";
    EtcdCompacted = "etcd-compacted", "The history in etcd was compacted.";
    Reset = "reset", "A connection was reset.";
    Mute = "mute", "A connection was accepted and never carried a byte.";
    BlackHole = "black-hole", "A connection stayed open and stopped carrying bytes.";
    Trickle = "trickle", "Bytes arrived one at a time.";
    Cut = "cut", "A connection was closed at some byte.";
    HalfClosed = "half-closed", "One direction of a connection was closed.";
    Refused = "refused", "Connections were refused.";
    HandlerPanic = "handler-panic", "A handler panicked.";
    HandlerAdded = "handler-added", "A handler was added to a running informer.";
    HandlerRemoved = "handler-removed", "A handler was removed from a running informer.";
    InformerStopped = "informer-stopped", "An informer was stopped and another one started.";
    WorkFailed = "work-failed", "A worker failed on a key.";
    WriteFailed = "write-failed", "A write failed, or its outcome is unknown.";
}

/// The counts and failures of a run.
pub struct Report {
    /// Writes that the server acknowledged.
    pub writes: AtomicU64,
    /// Events that handlers and streams received.
    pub delivered: AtomicU64,
    /// Caches that were compared with a LIST.
    pub checks: AtomicU64,
    /// Waits of writers for their own write in a cache.
    pub awaited: AtomicU64,
    faults: Mutex<FaultCounts<Fault>>,
    failed: AtomicBool,
    failures: Mutex<Vec<String>>,
    /// The server epoch in which an object was created, if known.
    creation_epochs: Mutex<HashMap<Uid, u64>>,
}

/// Failures that are kept. Later ones are mostly consequences of the first.
const MAX_FAILURES: usize = 20;

impl Report {
    /// Creates an empty report.
    pub fn new() -> Self {
        Self {
            writes: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            checks: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
            faults: Mutex::default(),
            failed: AtomicBool::new(false),
            failures: Mutex::default(),
            creation_epochs: Mutex::default(),
        }
    }

    pub(crate) fn record_fault(&self, fault: Fault) {
        lock(&self.faults).add(fault, 1);
    }

    /// Returns how often a fault was injected.
    pub fn fault_count(&self, fault: Fault) -> u64 {
        lock(&self.faults).count(fault)
    }

    /// Records a failed check.
    pub(crate) fn fail(&self, what: impl Display) {
        self.failed.store(true, Ordering::Relaxed);
        let mut failures = lock(&self.failures);
        if failures.len() < MAX_FAILURES {
            failures.push(what.to_string());
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns the first failures.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    pub(crate) fn record_creation(&self, uid: Uid, epoch: u64) {
        lock(&self.creation_epochs).insert(uid, epoch);
    }

    /// Returns whether an object may be newer than another one of the same name.
    pub(crate) fn may_be_newer(&self, (uid, version): (Uid, u64), than: (Uid, u64)) -> bool {
        let epochs = lock(&self.creation_epochs);
        match (epochs.get(&uid), epochs.get(&than.0)) {
            (Some(epoch), Some(before)) => (epoch, version) > (before, than.1),
            _ => true,
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (writes, delivered) = (count(&self.writes), count(&self.delivered));
        let (checks, awaited) = (count(&self.checks), count(&self.awaited));
        let faults = lock(&self.faults);
        write!(f, "writes={writes} delivered={delivered} checks={checks} awaited={awaited}{faults}")
    }
}
