//! Runs the worlds of many seeds.

use super::{
    totals::Totals,
    world::{Outcome, run},
};
use crate::world::Failure;
use std::{
    collections::BTreeMap,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
};

/// The totals of many worlds, and the first failure in the order of the seeds.
#[derive(Debug, Default)]
pub struct Finished {
    /// The totals of all worlds before the failure.
    pub totals: Totals,
    /// The seed that failed, and how.
    pub failure: Option<(u64, Failure)>,
}

/// Runs the worlds of some seeds in threads, until one fails. `progress` is called after each of them, in order.
pub fn run_many(from: u64, seeds: u64, jobs: usize, mut progress: impl FnMut(&Totals)) -> Finished {
    let (next, stop) = (AtomicU64::new(from), AtomicBool::new(false));
    let (outcomes, finished) = mpsc::sync_channel(64);
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (outcomes, next, stop) = (outcomes.clone(), &next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + seeds || outcomes.send((seed, run(seed, None))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(outcomes);
        let result = add_up(from, &finished, &mut progress);
        stop.store(true, Ordering::Relaxed);
        drop(finished);
        result
    })
}

fn add_up(
    mut seed: u64,
    finished: &mpsc::Receiver<(u64, Outcome)>,
    progress: &mut impl FnMut(&Totals),
) -> Finished {
    let mut result = Finished::default();
    let mut waiting: BTreeMap<u64, Outcome> = BTreeMap::new();
    for (of, outcome) in finished {
        waiting.insert(of, outcome);
        while let Some(outcome) = waiting.remove(&seed) {
            if let Some(failure) = outcome.failure {
                result.failure = Some((seed, failure));
                return result;
            }
            result.totals.add(&outcome.totals);
            progress(&result.totals);
            seed += 1;
        }
    }
    result
}
