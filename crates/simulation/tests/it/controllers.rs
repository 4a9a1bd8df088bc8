//! Runs worlds of controllers, and some of them twice.

use simulation::controllers::{Fault, run, run_many};
use std::thread;

/// Seeds that every `cargo test` runs.
const SEEDS: u64 = 30;

#[test]
fn every_rule_of_controllers_holds() {
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let finished = run_many(0, SEEDS, jobs, |_| {});
    if let Some((seed, failure)) = finished.failure {
        panic!("seed {seed} {failure}; cargo run -p simulation -- --controllers --seed {seed} shrinks it");
    }
    let totals = finished.totals;
    let missing: Vec<&str> =
        Fault::ALL.iter().filter(|&&fault| totals.count(fault) == 0).map(|fault| fault.name()).collect();
    assert!(missing.is_empty(), "faults that never took effect: {missing:?}; {totals}");
}

#[test]
fn the_same_seed_is_the_same_world_of_controllers() {
    for seed in (0..SEEDS).step_by(11) {
        let (once, again) = (run(seed, None), run(seed, None));
        assert_eq!((once.hash, once.totals), (again.hash, again.totals), "seed {seed}");
    }
}
