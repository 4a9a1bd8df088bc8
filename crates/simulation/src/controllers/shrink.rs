//! Shrinks the schedule of a failure to the steps that cause it.

use super::{schedule::Schedule, world::run_schedule};
use crate::{Shrunk, shrink::shrink_steps};

/// Maximum number of runs for shrinking.
const TRIES: usize = 200;

/// Shrinks the schedule of a seed that fails; `None` if it does not fail.
pub fn shrink(seed: u64) -> Option<Shrunk> {
    let mut schedule = Schedule::generate(seed);
    let steps = std::mem::take(&mut schedule.steps);
    let (steps, failure) = shrink_steps(steps, TRIES, |steps| {
        run_schedule(&Schedule { steps, ..schedule.clone() }, None).failure
    })?;
    let steps = steps.iter().map(|step| format!("{:?}, then {:?}", step.action, step.pause));
    Some(Shrunk { steps: steps.collect(), failure })
}
