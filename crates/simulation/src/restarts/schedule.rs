//! The steps of worlds with restarts.

use super::{Boot, ClockChange, Crash, Damage, DiskFault, Ending};
use crate::{
    faults::{RequestFault, StreamFault},
    schedule::{Action, Pause, Schedule, Step, at_once, fault, lifecycle, new_informer, step, write},
    subject::StopMode,
};
use crash_disk::Failing;
use std::time::Duration;

impl Schedule {
    /// The steps of a world with restarts.
    pub(crate) fn restarts(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0x0d15c);
        let length = rng.usize(100..260);
        let fault_percent = rng.u32(2..24);
        let mut steps: Vec<Step> = (0..rng.usize(0..12)).map(|_| write(&mut rng)).collect();
        for _ in 0..rng.usize(1..3) {
            steps.extend(new_informer(&mut rng, 1..4));
        }
        while steps.len() < length {
            match rng.u32(0..100) {
                roll if roll < fault_percent => steps.extend(fault(&mut rng)),
                roll if roll < fault_percent + 6 => steps.push(lifecycle(&mut rng)),
                roll if roll < fault_percent + 11 => steps.extend(restart(&mut rng)),
                roll if roll < fault_percent + 15 => steps.extend(disk_fault(&mut rng)),
                _ => steps.push(write(&mut rng)),
            }
        }
        steps.retain(|step| is_supported(step.action));
        let middle = rng.usize(steps.len() / 3..steps.len());
        steps.insert(middle, at_once(Action::Converge, &mut rng));
        Self { seed, real: seed % 2 == 1, saves: true, steps }
    }
}

/// Whether the checks allow an action. An object that a malformed item or event hides stays hidden in the next process, and
/// programs end only by crashes.
fn is_supported(action: Action) -> bool {
    let malformed = matches!(
        action,
        Action::ArmFault(RequestFault::MalformedItem { .. })
            | Action::InjectFault(StreamFault::MalformedEvent { .. })
    );
    !malformed && !matches!(action, Action::RestartProgram(_))
}

/// A crash, changes while the program is down, and a start.
fn restart(rng: &mut fastrand::Rng) -> Vec<Step> {
    let ending = match rng.u8(0..8) {
        0 => Ending::Stopped(StopMode::Drain),
        1 => Ending::Stopped(StopMode::Drop),
        2..4 => Ending::Killed,
        4..6 => Ending::KilledWriting,
        _ => Ending::PowerLost,
    };
    let may_hide_restore = rng.bool();
    let damage = Damage::random(rng);
    let mut steps = Vec::new();
    if rng.bool() {
        // The last saved change is a delete.
        steps.push(Step { action: Action::Delete, pause: until_saved(rng), pick: rng.u64(..) });
    }
    steps.push(at_once(Action::Crash(Crash { ending, damage, may_hide_restore }), rng));
    for _ in 0..rng.usize(0..4) {
        steps.push(write(rng));
    }
    match rng.u8(0..8) {
        0 => steps.push(at_once(Action::Compact, rng)),
        1..4 => {
            steps.push(at_once(Action::Restore(rng.u64(1..16)), rng));
            for _ in 0..rng.usize(0..4) {
                steps.push(at_once(Action::Burst(rng.u8(4..16)), rng));
            }
        }
        _ => {}
    }
    for _ in 0..rng.usize(0..3) {
        steps.push(write(rng));
    }
    let clock = match rng.u8(0..8) {
        0 | 1 => ClockChange::Later,
        2 => ClockChange::Back,
        _ => ClockChange::None,
    };
    steps.push(step(Action::Boot(Boot { clock }), rng));
    steps
}

/// Time in which most changes are saved.
fn until_saved(rng: &mut fastrand::Rng) -> Pause {
    Pause::Time(Duration::from_millis(rng.u64(50..1_000)))
}

/// A fault of a disk that ends after a while, or with the process.
fn disk_fault(rng: &mut fastrand::Rng) -> Vec<Step> {
    let kinds = [Failing::Writes, Failing::Syncs, Failing::Names, Failing::Reads];
    let fault = match rng.choice(kinds) {
        Some(failing) if rng.bool() => DiskFault::Failing(failing),
        _ => DiskFault::Full(rng.u64(0..4_000)),
    };
    let pick = rng.u64(..);
    let mut steps = vec![Step { action: Action::Disk(fault), pause: until_saved(rng), pick }];
    for _ in 0..rng.usize(1..5) {
        steps.push(write(rng));
    }
    if rng.u8(0..4) > 0 {
        steps.push(Step { action: Action::Disk(DiskFault::Healed), pause: until_saved(rng), pick });
    }
    steps
}
