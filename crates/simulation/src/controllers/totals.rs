//! Counts of what happened in worlds of controllers.

use harness::FaultCounts;
use std::fmt;

harness::faults! {
    Refused = "refused", "A connection was refused.";
    NoResponse = "no-response", "A request got no response.";
    ResponseLost = "response-lost", "The server processed a write, and the connection was reset instead of a response.";
    Dropped = "dropped-in-flight", "The process gave up a write that the server then processed.";
    Late = "late", "The server processed a write of a process that was dead already.";
    Busy = "429", "A 429 with Retry-After.";
    Internal = "500", "A 500.";
    Conflict = "409", "A 409 that the network made up.";
    RealConflict = "409-of-server", "A write of a replica was rejected because the object had changed, or existed.";
    SlowResponse = "slow-response", "The response to a request took more than half a second.";
    Delayed = "delayed", "A write was delayed by more than half a second.";
    Partitioned = "partitioned", "A replica did not reach the server for a while.";
    LeasesRejected = "leases-rejected", "The server rejected all writes of Leases of a replica for a while.";
    SlowRenewals = "slow-renewals", "The responses to the renewals of a replica took long for a while.";
    SlowWrites = "slow-writes", "The writes of a replica took long for a while.";
    StalledWatch = "stalled", "The watches of a replica delivered nothing for a while.";
    Cut = "cut", "The watches of a replica ended.";
    Lagging = "lagging", "The watch caches of the server were behind its store.";
    Compacted = "compacted", "The server compacted its history.";
    Restarted = "restarted", "The server restarted on the same store.";
    Killed = "killed", "A replica was killed at an await point.";
    KilledInReconcile = "killed-in-reconcile", "A replica was killed while it reconciled.";
    Suspended = "suspended", "A replica was suspended.";
    Stopped = "stopped", "A replica was stopped in order.";
    StoppedAtOnce = "stopped-at-once", "A replica was stopped in order as soon as it had taken a lease.";
    LeaseLost = "lease-lost", "A replica ended because it lost the lease.";
    ReconcileFailed = "reconcile-failed", "A reconcile failed.";
    Cancelled = "cancelled", "A reconcile was cancelled.";
    Recreated = "recreated", "A name was re-created at once with a new uid.";
    ChildDeleted = "child-deleted", "A user deleted or changed a child.";
    Moved = "moved", "A lease moved from one replica to another.";
}

/// Totals of one world or of many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of worlds.
    pub seeds: u64,
    /// Changes of sites by users.
    pub writes: u64,
    /// Reconciles that began.
    pub reconciles: u64,
    /// Cleanups that began.
    pub cleanups: u64,
    /// Writes of replicas whose lease and preconditions were checked.
    pub checked_writes: u64,
    /// Commits of children.
    pub children: u64,
    faults: FaultCounts<Fault>,
}

impl Totals {
    pub(super) fn add_fault(&mut self, fault: Fault) {
        self.faults.add(fault, 1);
    }

    /// How often a fault took effect.
    pub fn count(&self, fault: Fault) -> u64 {
        self.faults.count(fault)
    }

    /// Adds other totals.
    pub fn add(&mut self, other: &Self) {
        self.seeds += other.seeds;
        self.writes += other.writes;
        self.reconciles += other.reconciles;
        self.cleanups += other.cleanups;
        self.checked_writes += other.checked_writes;
        self.children += other.children;
        self.faults.add_all(&other.faults);
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, writes, reconciles, cleanups, checked_writes, children, faults } = self;
        write!(f, "seeds={seeds} writes={writes} reconciles={reconciles} cleanups={cleanups}")?;
        write!(f, " checked-writes={checked_writes} children={children}{faults}")
    }
}
