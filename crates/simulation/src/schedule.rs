//! The steps of a world: generated from a seed, so that they can be repeated, and a list, so that it can be shrunk.

use crate::{
    faults::{Condition, RequestFault, StreamFault},
    handlers::Behaviour,
    restarts::{Boot, Crash, DiskFault},
    retry_after::RetryAfter,
    subject::{IndexKind, StopMode, time_limit},
};
use std::{ops::Range, time::Duration};

/// The steps of a world.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    /// Whether the backend is the embedded API server, and not the model.
    pub(crate) real: bool,
    /// Whether informers save their caches.
    pub(crate) saves: bool,
    pub(crate) steps: Vec<Step>,
}

/// An action, and the time until the next one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) pause: Pause,
    /// A random number that selects the object, handler or informer of the action.
    pub(crate) pick: u64,
}

/// An action of the world around the informers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Put,
    /// Writes an object that a server would reject.
    PutInvalid,
    Delete,
    /// Deletes an object and creates another one of the same name.
    Recreate,
    /// Many writes of a few objects, with short pauses.
    Burst(u8),
    /// Writes another resource, so that the version advances.
    Advance(u64),
    Compact,
    /// Restores the state of this many versions ago.
    Restore(u64),
    /// Restarts the server.
    Restart,
    /// Injects a fault into open responses.
    InjectFault(StreamFault),
    /// Arms a fault for a later request.
    ArmFault(RequestFault),
    BeginCondition(Condition),
    EndCondition(Condition),
    NewInformer,
    Start,
    StopInformer(StopMode),
    /// Stops all informers and starts the same number.
    RestartProgram(StopMode),
    AddHandler(Behaviour),
    RemoveHandler,
    AddIndex(IndexKind),
    AwaitWrite(Duration),
    AwaitCondition(Duration),
    /// Ends the program, whose informers save their caches.
    Crash(Crash),
    /// Starts the program again.
    Boot(Boot),
    /// Injects a fault into the disk of an informer, or ends it.
    Disk(DiskFault),
    /// Ends all faults, waits for convergence, and checks everything.
    Converge,
}

/// Time between two steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pause {
    None,
    /// Yields this often to other tasks; the time does not advance.
    Yields(u8),
    Time(Duration),
}

impl Schedule {
    pub(crate) fn generate(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let length = rng.usize(160..400);
        let fault_percent = rng.u32(8..44);
        let mut steps: Vec<Step> = (0..rng.usize(0..12)).map(|_| write(&mut rng)).collect();
        for _ in 0..rng.usize(1..4) {
            steps.extend(new_informer(&mut rng, 4..28));
        }
        while steps.len() < length {
            match rng.u32(0..100) {
                roll if roll < fault_percent => steps.extend(fault(&mut rng)),
                roll if roll < fault_percent + 12 => steps.push(lifecycle(&mut rng)),
                _ => steps.push(write(&mut rng)),
            }
        }
        let middle = rng.usize(length / 3..length);
        steps.insert(middle, Step { action: Action::Converge, pause: Pause::None, pick: rng.u64(..) });
        Self { seed, real: seed % 2 == 1, saves: false, steps }
    }
}

/// A new informer with handlers.
pub(crate) fn new_informer(rng: &mut fastrand::Rng, handlers: Range<usize>) -> Vec<Step> {
    let mut steps = vec![at_once(Action::NewInformer, rng)];
    for _ in 0..rng.usize(handlers) {
        let action = Action::AddHandler(behaviour(rng));
        steps.push(at_once(action, rng));
    }
    steps
}

pub(crate) fn step(action: Action, rng: &mut fastrand::Rng) -> Step {
    let pause = match rng.u8(0..20) {
        0..6 => Pause::None,
        6..12 => Pause::Yields(rng.u8(1..12)),
        12..17 => Pause::Time(Duration::from_millis(rng.u64(1..100))),
        17..19 => Pause::Time(Duration::from_millis(rng.u64(100..5_000))),
        _ => Pause::Time(Duration::from_secs(rng.u64(5..90))),
    };
    Step { action, pause, pick: rng.u64(..) }
}

pub(crate) fn write(rng: &mut fastrand::Rng) -> Step {
    let action = match rng.u8(0..32) {
        0..14 => Action::Put,
        14..21 => Action::Delete,
        21..24 => Action::Recreate,
        24 => Action::PutInvalid,
        25 => Action::Advance(rng.u64(1..10)),
        26..30 => Action::Burst(rng.u8(4..24)),
        _ => Action::InjectFault(StreamFault::Bookmark),
    };
    step(action, rng)
}

pub(crate) fn fault(rng: &mut fastrand::Rng) -> Vec<Step> {
    let action = match rng.u8(0..55) {
        0 => Action::InjectFault(StreamFault::Cut),
        1 => Action::InjectFault(StreamFault::Truncate),
        2 | 3 => Action::InjectFault(StreamFault::Break),
        4 => Action::InjectFault(StreamFault::Stall),
        5 => Action::InjectFault(StreamFault::Expire),
        6 => Action::InjectFault(StreamFault::Error),
        7 | 8 => Action::InjectFault(StreamFault::MalformedEvent { with_version: rng.bool() }),
        9 => Action::InjectFault(StreamFault::Slow(rng.u64(1..400))),
        10..13 => Action::Compact,
        13 | 14 => Action::Restore(rng.u64(1..60)),
        15..18 => Action::Restart,
        18 => return request_fault(RequestFault::NoResponse, rng),
        19 => return request_fault(RequestFault::Refused, rng),
        20 => return request_fault(RequestFault::ResponseLost, rng),
        21 => return request_fault(RequestFault::Expired, rng),
        22 => return request_fault(RequestFault::Busy { retry_after: RetryAfter::random(rng) }, rng),
        23 => return request_fault(RequestFault::Busy { retry_after: RetryAfter::None }, rng),
        24 => return request_fault(RequestFault::Internal, rng),
        25 => return request_fault(RequestFault::NotJson, rng),
        26 => return request_fault(RequestFault::Delayed(rng.u64(1..2_000)), rng),
        27 | 28 => return request_fault(RequestFault::Duplicate(rng.usize(1..6)), rng),
        29 => return list_fault(RequestFault::BreakAfter(rng.usize(0..20)), rng),
        30 => return list_fault(RequestFault::MalformedList(rng.usize(0..8)), rng),
        31..34 => return list_fault(RequestFault::Trickle, rng),
        34 | 35 => return list_fault(RequestFault::Stale(rng.u64(1..20)), rng),
        36 | 37 => return list_fault(RequestFault::CompactAfterList, rng),
        38 => return episode(Condition::NoStreaming, rng),
        39 => return episode(Condition::NoEndBookmark, rng),
        40 | 41 => return episode(Condition::PagesExpire, rng),
        42..44 => return episode(Condition::Lagging, rng),
        44..49 => return episode(Condition::Absent, rng),
        49 | 50 => {
            let (at, with_key) = (rng.usize(..), rng.bool());
            return list_fault(RequestFault::MalformedItem { at, with_key }, rng);
        }
        51 => return repeated_delete(rng),
        52 => return repeated_versions(rng),
        53 => return request_fault(RequestFault::StrangeHeaders, rng),
        _ => {
            let conditions = [Condition::Unauthorized, Condition::Forbidden, Condition::ExpiredOverHttp];
            return episode(rng.choice(conditions).unwrap_or(Condition::Forbidden), rng);
        }
    };
    vec![step(action, rng)]
}

/// Arms a fault for a request, and ends some watches so that clients send one.
fn request_fault(fault: RequestFault, rng: &mut fastrand::Rng) -> Vec<Step> {
    vec![at_once(Action::ArmFault(fault), rng), step(Action::InjectFault(StreamFault::Cut), rng)]
}

/// Arms a fault for a list, and expires some watches so that clients list.
fn list_fault(fault: RequestFault, rng: &mut fastrand::Rng) -> Vec<Step> {
    vec![at_once(Action::ArmFault(fault), rng), step(Action::InjectFault(StreamFault::Expire), rng)]
}

/// Deletes an object, restores a state without it, and creates it again at a version below that of the delete,
/// sometimes while the delete is still in flight.
fn repeated_delete(rng: &mut fastrand::Rng) -> Vec<Step> {
    let pick = rng.u64(..);
    let before = [Action::Delete, Action::Put, Action::Delete];
    let after = [Action::Restore(2), Action::Put, Action::Put, Action::Put];
    let mut steps: Vec<Step> =
        before.iter().map(|&action| Step { action, pause: Pause::Yields(rng.u8(1..12)), pick }).collect();
    steps.extend(after.iter().map(|&action| Step { action, pause: until_listed(rng), pick }));
    steps
}

/// Restores the collection, lists it with malformed items, and writes the same objects again at versions below those
/// that they had.
fn repeated_versions(rng: &mut fastrand::Rng) -> Vec<Step> {
    // The objects of a burst depend only on this part of the pick.
    let objects = rng.u64(0..4);
    let burst = |rng: &mut fastrand::Rng| at_once(Action::Burst(rng.u8(6..14)), rng);
    let mut steps = vec![burst(rng)];
    for _ in 0..3 {
        let fault = RequestFault::MalformedItem { at: rng.usize(..), with_key: rng.bool() };
        steps.push(at_once(Action::ArmFault(fault), rng));
    }
    steps.push(at_once(Action::Restore(rng.u64(4..14)), rng));
    steps.extend([burst(rng), burst(rng), burst(rng)]);
    for step in &mut steps {
        step.pick = step.pick / 4 * 4 + objects;
        if matches!(step.action, Action::Restore(_) | Action::Burst(_)) {
            step.pause = until_listed(rng);
        }
    }
    steps
}

/// Time in which most clients that lost their watch list again.
fn until_listed(rng: &mut fastrand::Rng) -> Pause {
    Pause::Time(Duration::from_millis(rng.u64(10..600)))
}

/// A condition that lasts for a while, sometimes until the next convergence. Some watches expire, so that clients list
/// meanwhile.
fn episode(condition: Condition, rng: &mut fastrand::Rng) -> Vec<Step> {
    let while_it_lasts = Pause::Time(Duration::from_millis(rng.u64(100..8_000)));
    let expire = Action::InjectFault(StreamFault::Expire);
    let mut steps = vec![
        at_once(Action::BeginCondition(condition), rng),
        Step { action: expire, pause: while_it_lasts, pick: rng.u64(..) },
    ];
    if rng.u8(0..8) > 0 {
        steps.push(step(Action::EndCondition(condition), rng));
    }
    steps
}

pub(crate) fn at_once(action: Action, rng: &mut fastrand::Rng) -> Step {
    Step { action, pause: Pause::None, pick: rng.u64(..) }
}

/// Adds or removes informers, handlers, indexes and waits.
pub(crate) fn lifecycle(rng: &mut fastrand::Rng) -> Step {
    let endings = [StopMode::Drain, StopMode::Drop, StopMode::Abandon];
    let kinds = [IndexKind::Label, IndexKind::View, IndexKind::Field, IndexKind::Namespace, IndexKind::Tag];
    let action = match rng.u8(0..32) {
        0..3 => Action::NewInformer,
        3..5 => Action::Start,
        5 => Action::RestartProgram(rng.choice(endings).unwrap_or(StopMode::Drop)),
        6 => Action::StopInformer(rng.choice(endings).unwrap_or(StopMode::Drop)),
        7..13 => Action::AddHandler(behaviour(rng)),
        13..18 => Action::RemoveHandler,
        18..21 => Action::AddIndex(rng.choice(kinds).unwrap_or(IndexKind::Label)),
        21..27 => Action::AwaitWrite(time_limit(rng)),
        _ => Action::AwaitCondition(time_limit(rng)),
    };
    step(action, rng)
}

fn behaviour(rng: &mut fastrand::Rng) -> Behaviour {
    match rng.u8(0..16) {
        0..8 => Behaviour::Plain,
        8 | 9 => Behaviour::Panicking,
        10 | 11 => Behaviour::Filtering { color: rng.u64(0..3) },
        12 => Behaviour::Enqueueing,
        13 => Behaviour::Slow { pause: 0 },
        14 => Behaviour::Slow { pause: rng.u64(1..100) },
        _ => Behaviour::Slow { pause: rng.u64(100..20_000) },
    }
}
