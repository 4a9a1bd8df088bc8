//! What happened, counted, and what went wrong.

use kube_informer::Uid;
use std::{
    collections::HashMap,
    fmt::{self, Display},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

harness::faults! {
    Killed = "killed", "The server was killed and came back without anything it knew.";
    Replaced = "replaced", "The server was ended and another store state served on its port.";
    Paused = "paused", "The server was stopped for longer than clients tolerate, and went on.";
    ServerKilled = "server-killed-on-etcd", "The server was killed and started again over the same etcd.";
    EtcdKilled = "etcd-killed", "etcd was killed and started again under the server.";
    EtcdCompacted = "etcd-compacted", "The history in etcd was dropped.";
    Reset = "reset", "A connection was reset.";
    Mute = "mute", "A connection was accepted and nothing said.";
    BlackHole = "black-hole", "A connection stayed open and nothing went through it any more.";
    Trickle = "trickle", "Bytes came one at a time.";
    Cut = "cut", "A connection was closed at some byte.";
    HalfClosed = "half-closed", "One direction of a connection was closed.";
    Refused = "refused", "Nobody listened.";
    HandlerPanic = "handler-panic", "A handler panicked.";
    HandlerAdded = "handler-added", "A handler was added while everything ran.";
    HandlerRemoved = "handler-removed", "A handler was removed while everything ran.";
    InformerStopped = "informer-stopped", "An informer was stopped while everything ran, and another one started.";
    WorkFailed = "work-failed", "A worker failed on a key.";
    WriteFailed = "write-failed", "A write was not answered, or with an error.";
}

/// What happened in a run.
pub struct Ledger {
    /// Writes that the server acknowledged.
    pub writes: AtomicU64,
    /// Calls that handlers and streams got.
    pub delivered: AtomicU64,
    /// Caches that were compared with a LIST.
    pub checks: AtomicU64,
    /// Times somebody waited for a write of his to be in a cache.
    pub awaited: AtomicU64,
    struck: Vec<AtomicU64>,
    failed: AtomicBool,
    failures: Mutex<Vec<String>>,
    /// In which life of the server an object was made, where that is certain.
    born: Mutex<HashMap<Uid, u64>>,
}

/// Failures that are kept; the first ones tell the most.
const KEPT: usize = 20;

impl Ledger {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self {
            writes: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            checks: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
            struck: Fault::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            failed: AtomicBool::new(false),
            failures: Mutex::default(),
            born: Mutex::default(),
        }
    }

    pub(crate) fn strike(&self, fault: Fault) {
        self.struck[fault as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// How often a fault struck.
    pub fn struck(&self, fault: Fault) -> u64 {
        self.struck[fault as usize].load(Ordering::Relaxed)
    }

    /// Something that must not happen has happened.
    pub(crate) fn fail(&self, what: impl Display) {
        self.failed.store(true, Ordering::Relaxed);
        let mut failures = lock(&self.failures);
        if failures.len() < KEPT {
            failures.push(what.to_string());
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What went wrong, the first of it.
    pub fn failures(&self) -> Vec<String> {
        lock(&self.failures).clone()
    }

    pub(crate) fn born(&self, uid: Uid, life: u64) {
        lock(&self.born).insert(uid, life);
    }

    /// Whether one object is later than another of its name, as far as that can be known.
    pub(crate) fn is_later(&self, (uid, version): (Uid, u64), than: (Uid, u64)) -> bool {
        let born = lock(&self.born);
        match (born.get(&uid), born.get(&than.0)) {
            (Some(life), Some(before)) => (life, version) > (before, than.1),
            _ => true,
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (writes, delivered) = (count(&self.writes), count(&self.delivered));
        let (checks, awaited) = (count(&self.checks), count(&self.awaited));
        write!(f, "writes={writes} delivered={delivered} checks={checks} awaited={awaited}")?;
        for &fault in Fault::ALL {
            write!(f, " {}={}", fault.name(), self.struck(fault))?;
        }
        Ok(())
    }
}

/// A lock whose holders do nothing that could leave it half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
