//! What happens in a world, in order: made from a seed, so that it can be repeated, and a list, so that it can
//! be cut down.

use crate::{
    handlers::Temper,
    subject::{Ending, IndexKind},
    trouble::{Blow, Condition, Trap},
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
        let length = rng.usize(140..380);
        // Some worlds are kind, some are not.
        let unkindness = rng.u32(5..40);
        let mut steps: Vec<Step> = (0..rng.usize(0..12)).map(|_| write(&mut rng)).collect();
        for _ in 0..rng.usize(1..4) {
            steps.push(Step { action: Action::NewInformer, pause: Pause::None, pick: rng.u64(..) });
            for _ in 0..rng.usize(4..28) {
                let action = Action::AddHandler(temper(&mut rng));
                steps.push(Step { action, pause: Pause::None, pick: rng.u64(..) });
            }
        }
        while steps.len() < length {
            let step = match rng.u32(0..100) {
                roll if roll < unkindness => fault(&mut rng),
                roll if roll < unkindness + 12 => company(&mut rng),
                _ => write(&mut rng),
            };
            steps.push(step);
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

fn fault(rng: &mut fastrand::Rng) -> Step {
    let conditions = [
        Condition::Unauthorized,
        Condition::Forbidden,
        Condition::Absent,
        Condition::PagesExpire,
        Condition::NoEndBookmark,
        Condition::NoStreaming,
        Condition::ExpiredOverHttp,
        Condition::Lagging,
    ];
    let condition = rng.choice(conditions).unwrap_or(Condition::Absent);
    let action = match rng.u8(0..56) {
        0..4 => Action::Strike(Blow::Cut),
        4 | 5 => Action::Strike(Blow::Truncate),
        6..9 => Action::Strike(Blow::Break),
        9 => Action::Strike(Blow::Stall),
        10 | 11 => Action::Strike(Blow::Expire),
        12 => Action::Strike(Blow::Error),
        13 | 14 => Action::Strike(Blow::Garble { version: rng.bool() }),
        15 => Action::Strike(Blow::Slow(rng.u64(1..400))),
        16..20 => Action::Compact,
        20 | 21 => Action::Restore(rng.u64(1..60)),
        22 | 23 => Action::Restart,
        24 => Action::Lay(Trap::Unanswered),
        25 => Action::Lay(Trap::Refused),
        26 => Action::Lay(Trap::AnswerLost),
        27 | 28 => Action::Lay(Trap::Expired),
        29 => Action::Lay(Trap::Busy { retry_after: rng.u32(1..20) }),
        30 => Action::Lay(Trap::Busy { retry_after: 0 }),
        31 => Action::Lay(Trap::Internal),
        32 => Action::Lay(Trap::NotJson),
        33 => Action::Lay(Trap::Malformed(rng.usize(0..20))),
        34 => Action::Lay(Trap::Late(rng.u64(1..2_000))),
        35 | 36 => Action::Lay(Trap::BreakAfter(rng.usize(0..20))),
        37 => Action::Lay(Trap::Trickle),
        38 | 39 => Action::Lay(Trap::Duplicate(rng.usize(1..6))),
        40 | 41 => Action::Lay(Trap::Stale(rng.u64(1..20))),
        42 | 43 => Action::Lay(Trap::CompactAfterList),
        44..49 => Action::Begin(condition),
        _ => Action::End(condition),
    };
    step(action, rng)
}

/// Informers, handlers, indexes and those who wait come and go.
fn company(rng: &mut fastrand::Rng) -> Step {
    let endings = [Ending::Drain, Ending::Drop, Ending::Abandon];
    let kinds = [IndexKind::Label, IndexKind::View, IndexKind::Field, IndexKind::Namespace];
    let action = match rng.u8(0..32) {
        0..2 => Action::NewInformer,
        2..6 => Action::Start,
        6 if rng.bool() => Action::RestartProgram(rng.choice(endings).unwrap_or(Ending::Drop)),
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
