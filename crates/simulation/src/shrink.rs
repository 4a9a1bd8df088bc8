//! Shrinks the schedule of a failure to the steps that cause it.

use crate::{
    schedule::Schedule,
    world::{Failure, run_schedule},
};

/// Maximum number of runs for shrinking.
const TRIES: usize = 400;

/// A shrunk schedule that still fails.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The remaining steps, in order.
    pub steps: Vec<String>,
    /// The failure that they cause.
    pub failure: Failure,
}

/// Shrinks the schedule of a seed that fails; `None` if it does not fail.
pub fn shrink(seed: u64) -> Option<Shrunk> {
    shrink_schedule(Schedule::generate(seed))
}

/// Shrinks the schedule of a world with restarts.
pub fn shrink_restarts(seed: u64) -> Option<Shrunk> {
    shrink_schedule(Schedule::restarts(seed))
}

fn shrink_schedule(mut schedule: Schedule) -> Option<Shrunk> {
    let mut failure = run_schedule(&schedule, None).failure?;
    schedule.steps.truncate(failure.steps);
    let (mut size, mut tries) = (schedule.steps.len() / 2, 0);
    while size > 0 && tries < TRIES {
        let mut at = 0;
        while at < schedule.steps.len() && tries < TRIES {
            tries += 1;
            let mut shorter = schedule.clone();
            shorter.steps.drain(at..(at + size).min(shorter.steps.len()));
            match run_schedule(&shorter, None).failure {
                Some(still) => {
                    shorter.steps.truncate(still.steps);
                    (schedule, failure) = (shorter, still);
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    let steps =
        schedule.steps.iter().map(|step| format!("{:?}, then {:?}", step.action, step.pause)).collect();
    Some(Shrunk { steps, failure })
}
