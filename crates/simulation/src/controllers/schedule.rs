//! The schedule of a world: what users do, and which faults happen.

use super::settings::Settings;
use std::time::Duration;

/// The schedule of a world.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    pub(super) seed: u64,
    pub(super) settings: Settings,
    pub(super) steps: Vec<Step>,
}

/// A step, and the time after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) action: Action,
    /// Chooses the site, the replica and other details.
    pub(super) pick: u64,
    pub(super) pause: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    /// Creates a site, or changes its specification.
    Put,
    Delete,
    /// Deletes a site and creates it again as soon as it is gone.
    Recreate,
    /// Deletes or changes a child.
    ChangeChild,
    /// Adds a finalizer of a user to a site, or removes it.
    UserFinalizer,
    /// Kills a replica at one of its next polls.
    Kill {
        polls: u64,
    },
    Stop,
    /// Starts a replica that has ended.
    Start,
    Suspend(Duration),
    Partition(Duration),
    /// The writes of Leases of a replica are rejected for this time.
    RejectLeases(Duration),
    /// The watches of a replica deliver nothing for this time.
    Stall(Duration),
    /// Resets all connections of a replica.
    Cut,
    /// The watch caches of the server are behind its store for this time.
    Lag(Duration),
    Compact,
    RestartServer(Duration),
}

impl Schedule {
    pub(super) fn generate(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0xc0_47_40_11);
        let settings = Settings::random(&mut rng);
        let steps = rng.usize(30..80);
        let steps = (0..steps).map(|_| Step::random(&mut rng)).collect();
        Self { seed, settings, steps }
    }
}

impl Step {
    fn random(rng: &mut fastrand::Rng) -> Self {
        let action = match rng.u8(0..60) {
            0..14 => Action::Put,
            14..19 => Action::Delete,
            19..27 => Action::Recreate,
            27..30 => Action::ChangeChild,
            30..33 => Action::UserFinalizer,
            33..39 => Action::Kill { polls: rng.u64(0..300) },
            39..41 => Action::Stop,
            41..46 => Action::Start,
            46 | 47 => Action::Suspend(Duration::from_millis(rng.u64(0..40_000))),
            48 | 49 => Action::Partition(Duration::from_millis(rng.u64(0..40_000))),
            50..53 => Action::RejectLeases(Duration::from_millis(rng.u64(0..40_000))),
            53 | 54 => Action::Stall(time(rng, 40_000)),
            55 => Action::Cut,
            56 | 57 => Action::Lag(time(rng, 10_000)),
            58 => Action::Compact,
            _ => Action::RestartServer(time(rng, 3_000)),
        };
        let pause = match rng.u8(0..20) {
            0..5 => Duration::ZERO,
            5..11 => Duration::from_millis(rng.u64(1..60)),
            11..17 => Duration::from_millis(rng.u64(60..2_000)),
            _ => Duration::from_millis(rng.u64(2_000..20_000)),
        };
        Self { action, pick: rng.u64(..), pause }
    }
}

/// A duration up to a maximum, often a short one.
fn time(rng: &mut fastrand::Rng, longest: u64) -> Duration {
    let most = rng.u64(1..=longest);
    Duration::from_millis(rng.u64(0..=most))
}
