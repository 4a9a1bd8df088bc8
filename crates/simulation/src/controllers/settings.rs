//! The settings of a world, generated from its seed.

use kube_informer::{ShardRange, Uid};
use std::{num::NonZeroU32, time::Duration};

/// How replicas divide the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Division {
    /// One replica leads.
    Leader,
    /// Each replica holds some of these shards.
    Shards(NonZeroU32),
}

/// How the operator names children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// By site and slot, applied.
    Derived,
    /// A new name for each create: the operator finds children in its cache only.
    Unique,
}

/// The settings of a world.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) replicas: usize,
    pub(super) division: Division,
    pub(super) naming: Naming,
    /// Whether the operator has a finalizer and an account for each site.
    pub(super) finalizer: bool,
    /// Whether the operator also reconciles deleted sites.
    pub(super) by_key: bool,
    pub(super) concurrency: usize,
    pub(super) lease: Duration,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
    pub(super) write_timeout: Duration,
    pub(super) drain_timeout: Duration,
    /// Of 256 requests, the number with a fault.
    pub(super) fault_rate: u8,
    /// Of 32 pauses of the operator, the number of long ones.
    pub(super) slowness: u8,
    /// Whether leases change hands after convergence, which takes long.
    pub(super) hands_over: bool,
    /// Whether replicas are stopped in quick succession after convergence.
    pub(super) succession: bool,
    pub(super) linger: bool,
    pub(super) streaming_lists: bool,
    pub(super) handler_bound: usize,
    pub(super) seed: u64,
}

/// In milliseconds: how long a lease lasts, when a holder gives it up, the time between two renewals, and how long a write may take.
/// Short leases expire often. A write that is sent just before a holder gives up arrives in time with the first two only: with the
/// others it depends on the check before the write.
const TIMINGS: [(u64, u64, u64, u64); 4] = [
    (15_000, 10_000, 2_000, 5_000),
    (6_000, 4_000, 1_000, 2_500),
    (15_000, 13_000, 2_000, 6_000),
    (6_000, 5_000, 1_000, 3_000),
];

/// The name of the lease, or the beginning of the names of those of shards.
pub(super) const LEASE: &str = "sites";

impl Settings {
    pub(super) fn random(rng: &mut fastrand::Rng) -> Self {
        let shards = NonZeroU32::new(rng.u32(2..=6)).unwrap_or(NonZeroU32::MIN);
        let division = if rng.u8(0..5) < 2 { Division::Leader } else { Division::Shards(shards) };
        let (lease, renew, retry, write) = rng.choice(TIMINGS).unwrap_or(TIMINGS[0]);
        Self {
            replicas: rng.usize(2..=5),
            division,
            naming: if rng.bool() { Naming::Derived } else { Naming::Unique },
            finalizer: rng.bool(),
            by_key: rng.u8(0..3) == 0,
            concurrency: rng.usize(1..=3),
            lease: Duration::from_millis(lease),
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
            write_timeout: Duration::from_millis(write),
            drain_timeout: Duration::from_millis(rng.u64(500..8_000)),
            fault_rate: rng.choice([0, 6, 20, 48]).unwrap_or(0),
            slowness: rng.choice([0, 1, 4]).unwrap_or(0),
            hands_over: rng.u8(0..3) == 0,
            succession: rng.u8(0..3) == 0,
            linger: rng.bool(),
            streaming_lists: rng.bool(),
            handler_bound: rng.choice([2, 1024]).unwrap_or(2),
            seed: rng.u64(..),
        }
    }

    /// The name of the lease that a write for a site needs.
    pub(super) fn lease_of(&self, uid: &str) -> String {
        match self.division {
            Division::Leader => LEASE.to_owned(),
            Division::Shards(count) => format!("{LEASE}-{}", ShardRange::index_of(Uid::from(uid), count)),
        }
    }

    /// The names of all leases.
    pub(super) fn leases(&self) -> Vec<String> {
        match self.division {
            Division::Leader => vec![LEASE.to_owned()],
            Division::Shards(count) => (0..count.get()).map(|shard| format!("{LEASE}-{shard}")).collect(),
        }
    }

    /// The longest delay of a request. A write that is sent while its lease allows it arrives before others take the lease.
    pub(super) fn longest_delay(&self) -> Duration {
        self.write_timeout * 9 / 10
    }

    /// The longest time of a renewal whose response is not late: an elector waits for half of its deadline.
    pub(super) fn longest_renewal(&self) -> Duration {
        self.renew_deadline * 9 / 20
    }
}
