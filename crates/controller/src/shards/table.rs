//! The shards as a replica knows them: their Leases as they were last seen, and which of them it holds.

use super::{
    lease::ShardLease,
    rules::{self, LeaseState},
};
use crate::{clock::BootClock, leadership::Leadership};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube_informer::{ObjectKey, ResourceVersion, ShardRange, Uid};
use kube_informer_wire::sync::lock;
use std::{
    fmt,
    num::NonZeroU32,
    sync::{Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The shards as a replica knows them.
///
/// 1. A shard is held from the moment at which its Lease was acquired until all its reconciles have ended.
/// 2. Reconciles start only in shards that are ready.
pub(crate) struct Table {
    identity: String,
    name: String,
    count: NonZeroU32,
    lease_duration: Duration,
    clock: BootClock,
    /// Invariant: as many as `count`. Held for one lookup or change.
    shards: Mutex<Vec<Shard>>,
    /// Changes with everything here.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Shard {
    seen: Option<Seen>,
    tenure: Option<Tenure>,
}

/// A Lease as it was last seen.
struct Seen {
    lease: ShardLease,
    /// When its spec was first seen like this.
    at: Duration,
}

/// The time in which this replica holds a shard.
#[derive(Clone)]
pub(crate) struct Tenure {
    /// Valid in this time only: the next time in which this replica holds the shard has another one.
    pub(crate) leadership: Leadership,
    /// Cancelled when the Lease was lost: reconciles end at once.
    pub(crate) lost: CancellationToken,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It waits for proof that its caches are current.
    Preparing,
    /// It reconciles objects of the shard.
    Ready,
    /// It waits for the reconciles in flight.
    Draining,
}

/// A Lease that this replica should ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) lease: String,
    /// The version of the Lease: the request is void if it has changed.
    pub(super) version: ResourceVersion,
}

impl Table {
    pub(super) fn new(
        identity: String,
        name: String,
        count: NonZeroU32,
        lease_duration: Duration,
        clock: BootClock,
    ) -> Self {
        let shards = (0..count.get()).map(|_| Shard::default()).collect();
        let changed = watch::Sender::new(());
        Self { identity, name, count, lease_duration, clock, shards: Mutex::new(shards), changed }
    }

    /// The shard of an object.
    pub(super) fn shard_of(&self, uid: Uid) -> u32 {
        ShardRange::index_of(uid, self.count)
    }

    pub(super) fn all(&self) -> std::ops::Range<u32> {
        0..self.count.get()
    }

    /// The name of the Lease of a shard.
    pub(super) fn lease_name(&self, shard: u32) -> String {
        format!("{}-{shard}", self.name)
    }

    /// Receives a value after each change.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shard>> {
        lock(&self.shards)
    }

    fn shard_of_lease(&self, lease: &Lease) -> Option<usize> {
        let name = lease.metadata.name.as_deref()?.strip_prefix(&self.name)?.strip_prefix('-')?;
        let shard = name.parse::<u32>().ok().filter(|shard| *shard < self.count.get())?;
        usize::try_from(shard).ok()
    }

    /// A Lease was seen.
    pub(super) fn observe(&self, lease: &Lease) {
        let Some(shard) = self.shard_of_lease(lease) else { return };
        let (found, now) = (ShardLease::new(lease), self.clock.now());
        if let Some(shard) = self.lock().get_mut(shard) {
            match &mut shard.seen {
                Some(seen) if found.version.is_older_than(&seen.lease.version) => {}
                // A Lease is valid from its last change on, not from that of an annotation.
                Some(seen) if seen.lease.spec == found.spec => seen.lease = found,
                seen => *seen = Some(Seen { lease: found, at: now }),
            }
        }
        self.changed.send_replace(());
    }

    /// A Lease was deleted.
    pub(super) fn forget(&self, lease: &Lease) {
        let Some(shard) = self.shard_of_lease(lease) else { return };
        if let Some(shard) = self.lock().get_mut(shard) {
            shard.seen = None;
        }
        self.changed.send_replace(());
    }

    /// The version of the Lease of a shard as it was last seen.
    pub(super) fn lease_version(&self, shard: u32) -> Option<ResourceVersion> {
        Some(get(&self.lock(), shard)?.seen.as_ref()?.lease.version.clone())
    }

    /// Resolves when the Lease of a shard is seen with another version than this one.
    pub(super) async fn lease_changed(&self, shard: u32, known: Option<ResourceVersion>) {
        let mut changes = self.changes();
        while self.lease_version(shard) == known {
            // The sender is in `self`.
            let _ = changes.changed().await;
        }
    }

    /// The Lease of a shard as it was last seen, and when.
    pub(super) fn last_seen(&self, shard: u32) -> Option<(LeaseSpec, Duration)> {
        let shards = self.lock();
        let seen = get(&shards, shard)?.seen.as_ref()?;
        Some((seen.lease.spec.clone(), seen.at))
    }

    fn state(&self, shard: u32) -> Option<LeaseState> {
        let now = self.clock.now();
        get(&self.lock(), shard)?.state(now)
    }

    /// How long to wait before this replica may try to take a shard.
    pub(super) fn wait_to_take(&self, shard: u32) -> Duration {
        rules::wait_to_take(self.state(shard).as_ref(), &self.identity, self.lease_duration)
    }

    /// Whether another replica asked for a shard that this one holds.
    pub(super) fn is_requested(&self, shard: u32) -> bool {
        rules::is_requested(self.state(shard).as_ref(), &self.identity)
    }

    /// The shard that this replica should ask for.
    pub(super) fn request(&self) -> Option<Request> {
        let now = self.clock.now();
        // The version is that of the state that decided: a Lease that is seen in between may name another replica.
        let shards = self.lock();
        let states: Vec<_> = shards.iter().map(|shard| shard.state(now)).collect();
        let shard = rules::request(&states, &self.identity)?;
        let version = shards.get(shard)?.seen.as_ref()?.lease.version.clone();
        drop(shards);
        Some(Request { lease: self.lease_name(u32::try_from(shard).ok()?), version })
    }

    /// The requests of this replica for shards that it does not hold, as they were last seen.
    pub(super) fn requested(&self) -> Vec<Request> {
        let shards = self.lock();
        let seen =
            shards.iter().enumerate().filter_map(|(shard, held)| Some((shard, &held.seen.as_ref()?.lease)));
        let own =
            seen.filter(|(_, lease)| lease.preferred == self.identity && lease.holder() != self.identity);
        own.filter_map(|(shard, lease)| {
            Some(Request {
                lease: self.lease_name(u32::try_from(shard).ok()?),
                version: lease.version.clone(),
            })
        })
        .collect()
    }

    /// This replica holds a shard from now on.
    pub(super) fn begin(&self, shard: u32, leadership: Leadership) -> CancellationToken {
        let lost = CancellationToken::new();
        let tenure = Tenure { leadership, lost: lost.clone(), stage: Stage::Preparing };
        self.change(shard, |held| held.tenure = Some(tenure));
        lost
    }

    pub(super) fn set_stage(&self, shard: u32, stage: Stage) {
        self.change(shard, |held| {
            if let Some(tenure) = &mut held.tenure {
                tenure.stage = stage;
            }
        });
    }

    /// This replica does not hold a shard any more.
    pub(super) fn end(&self, shard: u32) {
        self.change(shard, |held| held.tenure = None);
    }

    fn change(&self, shard: u32, change: impl FnOnce(&mut Shard)) {
        let at = usize::try_from(shard).unwrap_or(usize::MAX);
        if let Some(shard) = self.lock().get_mut(at) {
            change(shard);
        }
        self.changed.send_replace(());
    }

    /// The tenure of a shard in which reconciles may start.
    pub(super) fn ready(&self, shard: u32) -> Option<Tenure> {
        let shards = self.lock();
        let tenure = get(&shards, shard)?.tenure.clone();
        tenure.filter(|tenure| tenure.stage == Stage::Ready && tenure.leadership.is_leading())
    }

    /// Whether no other replica reconciles, or will reconcile, an object of the shard that was deleted at `version`. Only the holder of
    /// the shard knows: a Lease that looks free may have been taken meanwhile.
    pub(super) fn is_released(
        &self,
        shard: u32,
        controller: &str,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> bool {
        let shards = self.lock();
        let Some(shard) = get(&shards, shard) else { return false };
        let progress = shard.seen.as_ref().and_then(|seen| seen.lease.progress.get(controller));
        shard.is_held() || progress.is_some_and(|progress| progress.has_released(key, version))
    }

    /// The keys for which other replicas may reconcile an object that was deleted at `version`, with their shards. `None` if a holder
    /// does not show that it has reached this version.
    pub(super) fn busy_since(
        &self,
        controller: &str,
        version: &ResourceVersion,
    ) -> Option<Vec<(u32, ObjectKey)>> {
        let mut busy = Vec::new();
        for (index, shard) in (0..).zip(self.lock().iter()).filter(|(_, shard)| !shard.is_held()) {
            let progress = shard.seen.as_ref()?.lease.progress.get(controller)?;
            if !progress.has_reached(version) {
                return None;
            }
            busy.extend(progress.busy.iter().filter_map(|key| Some((index, key.parse().ok()?))));
        }
        Some(busy)
    }

    /// The shards that this replica holds, for reports.
    pub(crate) fn report(&self) -> String {
        let shards = self.lock();
        let of = |stage: Stage| {
            let held = (0..).zip(shards.iter()).filter_map(|(index, shard)| {
                Some(index)
                    .filter(|_: &u32| shard.tenure.as_ref().is_some_and(|tenure| tenure.stage == stage))
            });
            held.map(|index| index.to_string()).collect::<Vec<_>>().join(",")
        };
        let mut text = format!("of {} holds [{}]", self.count, of(Stage::Ready));
        for (stage, what) in
            [(Stage::Preparing, "checking that its caches are current for"), (Stage::Draining, "draining")]
        {
            let shards = of(stage);
            if !shards.is_empty() {
                text.push_str(&format!("; {what} [{shards}]"));
            }
        }
        text
    }

    /// The name of the division into shards.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({} {})", self.name, self.report())
    }
}

impl Shard {
    fn is_held(&self) -> bool {
        self.tenure.as_ref().is_some_and(|tenure| tenure.leadership.is_leading())
    }

    fn state(&self, now: Duration) -> Option<LeaseState> {
        let Seen { lease, at } = self.seen.as_ref()?;
        Some(LeaseState {
            holder: lease.holder().to_owned(),
            preferred: lease.preferred.clone(),
            duration: lease.duration(),
            age: now.saturating_sub(*at),
        })
    }
}

fn get(shards: &[Shard], shard: u32) -> Option<&Shard> {
    shards.get(usize::try_from(shard).ok()?)
}
