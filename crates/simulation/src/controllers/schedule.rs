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
    /// Chooses the site, the replica and other details. An odd number chooses a replica that holds a lease, if there is one.
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
    /// The responses to the renewals of a replica take long for this time.
    SlowRenewals(Duration),
    /// The writes of a replica take long for this time.
    SlowWrites(Duration),
    /// The watches of a replica deliver nothing for this time.
    Stall(Duration),
    /// Resets all connections of a replica, which ends a stall.
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
        let count = rng.usize(30..80);
        let mut steps = Vec::new();
        while steps.len() < count {
            match rng.u8(0..20) {
                0 => steps.extend(expiring_lease(&mut rng, &settings)),
                1 => steps.extend(unseen_object(&mut rng)),
                _ => steps.push(Step::random(&mut rng)),
            }
        }
        Self { seed, settings, steps }
    }
}

/// A replica loses its leases while it writes: its last renewal takes long, later ones are rejected, and it may end or be suspended
/// before it gives the leases up.
fn expiring_lease(rng: &mut fastrand::Rng, settings: &Settings) -> Vec<Step> {
    let Settings { lease, renew_deadline, retry_period, .. } = *settings;
    let pick = rng.u64(..) | 1;
    let mut steps = Vec::new();
    if rng.bool() {
        let time = retry_period * 3 / 2;
        steps.push(Step { action: Action::SlowRenewals(time), pick, pause: time });
    }
    let rejected = Step { action: Action::RejectLeases(lease * 2), pick, pause: Duration::ZERO };
    let slow = Step { action: Action::SlowWrites(lease), pick, pause: fraction(rng, renew_deadline) };
    steps.extend([rejected, slow]);
    for _ in 0..rng.usize(1..4) {
        let pause = Duration::from_millis(rng.u64(0..400));
        steps.push(Step { action: Action::Put, pick: rng.u64(..), pause });
    }
    let end = match rng.u8(0..4) {
        0 => Action::Kill { polls: rng.u64(0..30) },
        1 | 2 => Action::Suspend(fraction(rng, lease * 2)),
        _ => return steps,
    };
    steps.push(Step { action: end, pick, pause: fraction(rng, lease) });
    steps
}

/// An object is created, reconciled and re-created while the watches of a replica stall. That one then receives the last state only:
/// in a list, or because its handlers coalesce events.
fn unseen_object(rng: &mut fastrand::Rng) -> Vec<Step> {
    // The same site each time, not one that is being reconciled.
    let (stalled, site) = (rng.u64(..) | 1, rng.u64(..1_000_000) * 3);
    let millis = |rng: &mut fastrand::Rng, range| Duration::from_millis(rng.u64(range));
    let time = millis(rng, 100..2_000);
    let stall = Action::Stall(time + millis(rng, 0..300));
    let mut steps = vec![
        // No replica knows an earlier one any more.
        Step { action: Action::Delete, pick: site, pause: millis(rng, 2_000..8_000) },
        Step { action: Action::SlowWrites(time * 4), pick: rng.u64(..) | 1, pause: Duration::ZERO },
        Step { action: Action::SlowWrites(time * 4), pick: rng.u64(..) | 1, pause: Duration::ZERO },
        Step { action: stall, pick: stalled, pause: Duration::ZERO },
        Step { action: Action::Put, pick: site, pause: time },
        Step { action: Action::Recreate, pick: site, pause: millis(rng, 0..100) },
    ];
    if rng.bool() {
        steps.push(Step { action: Action::Compact, pick: stalled, pause: Duration::ZERO });
        steps.push(Step { action: Action::Cut, pick: stalled, pause: millis(rng, 0..2_000) });
    }
    steps
}

fn fraction(rng: &mut fastrand::Rng, of: Duration) -> Duration {
    of.mul_f64(rng.f64())
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
