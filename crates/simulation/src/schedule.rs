//! What happens in a world, in order: made from a seed, so that it can be repeated, and a list, so that it can
//! be cut down.

use crate::{
    handlers::Temper,
    subject::{Ending, IndexKind},
    trouble::{Blow, Condition, ENDLESS, Trap},
};
use std::time::Duration;

/// Everything that happens in a world.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    /// Whether it is the real server that answers, and not the model.
    pub(crate) real: bool,
    pub(crate) steps: Vec<Step>,
}

/// Something that happens, and the time until the next thing does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) pause: Pause,
    /// Chooses among what there is.
    pub(crate) pick: u64,
}

/// Something that happens.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Put,
    PutOdd,
    Delete,
    /// An object is replaced by another one of its name.
    Recreate,
    /// Many writes of few objects with little time in between.
    Burst(u8),
    /// The version moves on.
    Advance(u64),
    Compact,
    Restore(u64),
    /// The server goes down and comes back.
    Restart,
    Strike(Blow),
    Lay(Trap),
    Begin(Condition),
    End(Condition),
    NewInformer,
    Start,
    EndInformer(Ending),
    /// All informers end, and as many begin.
    RestartProgram(Ending),
    AddHandler(Temper),
    RemoveHandler,
    AddIndex(IndexKind),
    AwaitWrite(Duration),
    AwaitCondition(Duration),
    /// All faults end, everything comes to rest and is checked.
    Rest,
}

/// Time between two steps.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pause {
    None,
    /// Others get this many turns; the clock stands still.
    Turns(u8),
    Time(Duration),
}

impl Schedule {
    pub(crate) fn generate(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let length = rng.usize(160..400);
        // Some worlds are kind, some are not.
        let unkindness = rng.u32(8..44);
        let mut steps: Vec<Step> = (0..rng.usize(0..12)).map(|_| write(&mut rng)).collect();
        for _ in 0..rng.usize(1..4) {
            steps.push(Step { action: Action::NewInformer, pause: Pause::None, pick: rng.u64(..) });
            for _ in 0..rng.usize(4..28) {
                let action = Action::AddHandler(temper(&mut rng));
                steps.push(Step { action, pause: Pause::None, pick: rng.u64(..) });
            }
        }
        while steps.len() < length {
            match rng.u32(0..100) {
                roll if roll < unkindness => steps.extend(fault(&mut rng)),
                roll if roll < unkindness + 12 => steps.push(company(&mut rng)),
                _ => steps.push(write(&mut rng)),
            }
        }
        let middle = rng.usize(length / 3..length);
        steps.insert(middle, Step { action: Action::Rest, pause: Pause::None, pick: rng.u64(..) });
        Self { seed, real: seed % 2 == 1, steps }
    }
}

fn step(action: Action, rng: &mut fastrand::Rng) -> Step {
    let pause = match rng.u8(0..20) {
        0..6 => Pause::None,
        6..12 => Pause::Turns(rng.u8(1..12)),
        12..17 => Pause::Time(Duration::from_millis(rng.u64(1..100))),
        17..19 => Pause::Time(Duration::from_millis(rng.u64(100..5_000))),
        _ => Pause::Time(Duration::from_secs(rng.u64(5..90))),
    };
    Step { action, pause, pick: rng.u64(..) }
}

fn write(rng: &mut fastrand::Rng) -> Step {
    let action = match rng.u8(0..32) {
        0..14 => Action::Put,
        14..21 => Action::Delete,
        21..24 => Action::Recreate,
        24 => Action::PutOdd,
        25 => Action::Advance(rng.u64(1..10)),
        26..30 => Action::Burst(rng.u8(4..24)),
        _ => Action::Strike(Blow::Bookmark),
    };
    step(action, rng)
}

/// Something goes wrong.
fn fault(rng: &mut fastrand::Rng) -> Vec<Step> {
    let action = match rng.u8(0..54) {
        0 => Action::Strike(Blow::Cut),
        1 => Action::Strike(Blow::Truncate),
        2 | 3 => Action::Strike(Blow::Break),
        4 => Action::Strike(Blow::Stall),
        5 => Action::Strike(Blow::Expire),
        6 => Action::Strike(Blow::Error),
        7 | 8 => Action::Strike(Blow::Garble { version: rng.bool() }),
        9 => Action::Strike(Blow::Slow(rng.u64(1..400))),
        10..13 => Action::Compact,
        13 | 14 => Action::Restore(rng.u64(1..60)),
        15..18 => Action::Restart,
        18 => return request_trouble(Trap::Unanswered, rng),
        19 => return request_trouble(Trap::Refused, rng),
        20 => return request_trouble(Trap::ResponseLost, rng),
        21 => return request_trouble(Trap::Expired, rng),
        22 => return request_trouble(Trap::Busy { retry_after: retry_after(rng) }, rng),
        23 => return request_trouble(Trap::Busy { retry_after: 0 }, rng),
        24 => return request_trouble(Trap::Internal, rng),
        25 => return request_trouble(Trap::NotJson, rng),
        26 => return request_trouble(Trap::Late(rng.u64(1..2_000)), rng),
        27 | 28 => return request_trouble(Trap::Duplicate(rng.usize(1..6)), rng),
        29 => return list_trouble(Trap::BreakAfter(rng.usize(0..20)), rng),
        30 => return list_trouble(Trap::Malformed(rng.usize(0..8)), rng),
        31..34 => return list_trouble(Trap::Trickle, rng),
        34 | 35 => return list_trouble(Trap::Stale(rng.u64(1..20)), rng),
        36 | 37 => return list_trouble(Trap::CompactAfterList, rng),
        38 => return episode(Condition::NoStreaming, rng),
        39 => return episode(Condition::NoEndBookmark, rng),
        40 | 41 => return episode(Condition::PagesExpire, rng),
        42..44 => return episode(Condition::Lagging, rng),
        44..49 => return episode(Condition::Absent, rng),
        49 | 50 => {
            let (at, named) = (rng.usize(..), rng.bool());
            return list_trouble(Trap::UnreadableItem { at, named }, rng);
        }
        51 => return repeated_delete(rng),
        52 => return repeated_versions(rng),
        _ => {
            let conditions = [Condition::Unauthorized, Condition::Forbidden, Condition::ExpiredOverHttp];
            return episode(rng.choice(conditions).unwrap_or(Condition::Forbidden), rng);
        }
    };
    vec![step(action, rng)]
}

/// Mostly seconds, sometimes a day or more than a clock can count.
fn retry_after(rng: &mut fastrand::Rng) -> u32 {
    match rng.u8(0..8) {
        0 => 86_400,
        1 => ENDLESS,
        _ => rng.u32(1..20),
    }
}

/// Something lies in wait for a request, and some connections end so that one comes.
fn request_trouble(trap: Trap, rng: &mut fastrand::Rng) -> Vec<Step> {
    vec![at_once(Action::Lay(trap), rng), step(Action::Strike(Blow::Cut), rng)]
}

/// Something lies in wait for a list, and somebody has to list.
fn list_trouble(trap: Trap, rng: &mut fastrand::Rng) -> Vec<Step> {
    vec![at_once(Action::Lay(trap), rng), step(Action::Strike(Blow::Expire), rng)]
}

/// An object is deleted, the collection is restored to a state without it, and the object is created again at a
/// version below that of the delete, perhaps while the delete is still in flight.
fn repeated_delete(rng: &mut fastrand::Rng) -> Vec<Step> {
    let pick = rng.u64(..);
    let before = [Action::Delete, Action::Put, Action::Delete];
    let after = [Action::Restore(2), Action::Put, Action::Put, Action::Put];
    let mut steps: Vec<Step> =
        before.iter().map(|&action| Step { action, pause: Pause::Turns(rng.u8(1..12)), pick }).collect();
    steps.extend(after.iter().map(|&action| Step { action, pause: until_listed(rng), pick }));
    steps
}

/// The collection is restored, it is listed with malformed items, and the same objects are written again at versions
/// below those that they had.
fn repeated_versions(rng: &mut fastrand::Rng) -> Vec<Step> {
    // The objects of a burst depend on this part of the pick only.
    let objects = rng.u64(0..4);
    let burst = |rng: &mut fastrand::Rng| at_once(Action::Burst(rng.u8(6..14)), rng);
    let mut steps = vec![burst(rng)];
    for _ in 0..3 {
        let trap = Trap::UnreadableItem { at: rng.usize(..), named: rng.bool() };
        steps.push(at_once(Action::Lay(trap), rng));
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

/// Time in which clients that lost their watch list again, or most of them.
fn until_listed(rng: &mut fastrand::Rng) -> Pause {
    Pause::Time(Duration::from_millis(rng.u64(10..600)))
}

/// Something that lasts for a while, and perhaps much longer. Somebody has to list meanwhile.
fn episode(condition: Condition, rng: &mut fastrand::Rng) -> Vec<Step> {
    let while_it_lasts = Pause::Time(Duration::from_millis(rng.u64(100..8_000)));
    let strike = Action::Strike(Blow::Expire);
    let mut steps = vec![
        at_once(Action::Begin(condition), rng),
        Step { action: strike, pause: while_it_lasts, pick: rng.u64(..) },
    ];
    if rng.u8(0..8) > 0 {
        steps.push(step(Action::End(condition), rng));
    }
    steps
}

fn at_once(action: Action, rng: &mut fastrand::Rng) -> Step {
    Step { action, pause: Pause::None, pick: rng.u64(..) }
}

/// Informers, handlers, indexes and those who wait come and go.
fn company(rng: &mut fastrand::Rng) -> Step {
    let endings = [Ending::Drain, Ending::Drop, Ending::Abandon];
    let kinds = [IndexKind::Label, IndexKind::View, IndexKind::Field, IndexKind::Namespace];
    let action = match rng.u8(0..32) {
        0..3 => Action::NewInformer,
        3..5 => Action::Start,
        5 => Action::RestartProgram(rng.choice(endings).unwrap_or(Ending::Drop)),
        6 => Action::EndInformer(rng.choice(endings).unwrap_or(Ending::Drop)),
        7..13 => Action::AddHandler(temper(rng)),
        13..18 => Action::RemoveHandler,
        18..21 => Action::AddIndex(rng.choice(kinds).unwrap_or(IndexKind::Label)),
        21..27 => Action::AwaitWrite(Duration::from_millis(rng.u64(1..20_000))),
        _ => Action::AwaitCondition(Duration::from_millis(rng.u64(1..20_000))),
    };
    step(action, rng)
}

fn temper(rng: &mut fastrand::Rng) -> Temper {
    match rng.u8(0..16) {
        0..8 => Temper::Plain,
        8 | 9 => Temper::Panicking,
        10 | 11 => Temper::Filtering { color: rng.u64(0..3) },
        12 => Temper::Feeding,
        13 => Temper::Slow { pause: 0 },
        14 => Temper::Slow { pause: rng.u64(1..100) },
        _ => Temper::Slow { pause: rng.u64(100..20_000) },
    }
}
