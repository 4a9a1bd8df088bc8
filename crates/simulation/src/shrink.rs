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
    let steps = std::mem::take(&mut schedule.steps);
    let (steps, failure) = shrink_steps(steps, TRIES, |steps| {
        run_schedule(&Schedule { steps, ..schedule.clone() }, None).failure
    })?;
    let steps = steps.iter().map(|step| format!("{:?}, then {:?}", step.action, step.pause)).collect();
    Some(Shrunk { steps, failure })
}

/// Removes steps, in blocks of half as many each time, while `run` still fails. Returns the steps that are left and their
/// failure, or `None` if all steps together do not fail.
pub(crate) fn shrink_steps<S: Clone>(
    mut steps: Vec<S>,
    max_tries: usize,
    run: impl Fn(Vec<S>) -> Option<Failure>,
) -> Option<(Vec<S>, Failure)> {
    let mut failure = run(steps.clone())?;
    steps.truncate(failure.steps);
    let (mut size, mut tries) = (steps.len() / 2, 0);
    while size > 0 && tries < max_tries {
        let mut at = 0;
        while at < steps.len() && tries < max_tries {
            tries += 1;
            let mut shorter = steps.clone();
            shorter.drain(at..(at + size).min(shorter.len()));
            match run(shorter.clone()) {
                Some(still) => {
                    shorter.truncate(still.steps);
                    (steps, failure) = (shorter, still);
                }
                None => at += size,
            }
        }
        size /= 2;
    }
    Some((steps, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steps_that_cause_a_failure_are_left() {
        // Fails at the second of the numbers 30 and 60.
        let run = |steps: Vec<u32>| {
            let first = steps.iter().position(|step| *step == 30)?;
            let second = first + steps[first..].iter().position(|step| *step == 60)?;
            Some(Failure { steps: second + 1, what: "both".into() })
        };
        let (steps, failure) = shrink_steps((0..100).collect(), 400, run).expect("a failure");
        assert_eq!((steps, failure.steps), (vec![30, 60], 2));
        assert!(shrink_steps((31..100).collect(), 400, run).is_none());
        let (steps, _) = shrink_steps((0..100).collect(), 0, run).expect("a failure");
        assert_eq!(steps.len(), 61, "without a try only the steps after the failure are removed");
    }
}
