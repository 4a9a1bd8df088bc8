//! Runs a few hundred worlds, and some of them twice.

mod controllers;

use simulation::{Fault, Outcome, RunState, run};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Seeds that every `cargo test` runs.
const SEEDS: u64 = 200;

/// Runs the worlds of all seeds, on all cores.
fn worlds() -> Vec<(u64, Outcome)> {
    let (next, outcomes) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= SEEDS {
                return;
            }
            let outcome = run(seed, None);
            outcomes.lock().unwrap().push((seed, outcome));
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    outcomes.into_inner().unwrap()
}

#[test]
fn nothing_is_lost_in_any_world() {
    let mut run_state = RunState::default();
    for (seed, outcome) in worlds() {
        if let Some(failure) = outcome.failure {
            panic!("seed {seed} {failure}; cargo run -p simulation -- --seed {seed} shrinks it");
        }
        run_state.add(&outcome.totals);
    }
    let totals = run_state.totals();
    let missing: Vec<&str> =
        Fault::ALL.iter().filter(|&&fault| totals.count(fault) == 0).map(|fault| fault.name()).collect();
    assert!(missing.is_empty(), "faults that never took effect: {missing:?}; {run_state}");
    assert!(
        run_state.median_writes() >= 200 && run_state.median_faults() >= 5,
        "too few writes or faults: {run_state}"
    );
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in (0..SEEDS).step_by(19) {
        let (once, again) = (run(seed, None), run(seed, None));
        assert_eq!((once.hash, once.totals), (again.hash, again.totals), "seed {seed}");
    }
}

#[test]
fn another_seed_is_another_world() {
    assert_ne!(run(1, None).hash, run(2, None).hash);
}
