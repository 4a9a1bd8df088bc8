//! Runs a few hundred worlds, and some of them twice.

mod controllers;

use simulation::{Fault, Outcome, RunState, Totals, run, run_restarts};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Seeds that every `cargo test` runs.
const SEEDS: u64 = 200;
/// Seeds of worlds with restarts.
const RESTART_SEEDS: u64 = 60;

/// Runs the worlds of seeds, on all cores.
fn worlds(seeds: u64, run: impl Fn(u64) -> Outcome + Sync) -> Vec<(u64, Outcome)> {
    let (next, outcomes) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let outcome = run(seed);
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

/// Whether a fault occurs only in worlds with restarts.
fn is_of_restarts(fault: Fault) -> bool {
    (Fault::Killed..=Fault::Undetectable).contains(&fault)
}

/// The names of faults that never took effect.
fn missing(totals: &Totals, faults: impl Fn(Fault) -> bool) -> Vec<&'static str> {
    let missing = Fault::ALL.iter().filter(|&&fault| faults(fault) && totals.count(fault) == 0);
    missing.map(|fault| fault.name()).collect()
}

#[test]
fn nothing_is_lost_in_any_world() {
    let mut run_state = RunState::default();
    for (seed, outcome) in worlds(SEEDS, |seed| run(seed, None)) {
        if let Some(failure) = outcome.failure {
            panic!("seed {seed} {failure}; cargo run -p simulation -- --seed {seed} shrinks it");
        }
        run_state.add(&outcome.totals);
    }
    let missing = missing(run_state.totals(), |fault| !is_of_restarts(fault));
    assert!(missing.is_empty(), "faults that never took effect: {missing:?}; {run_state}");
    assert!(
        run_state.median_writes() >= 200 && run_state.median_faults() >= 5,
        "too few writes or faults: {run_state}"
    );
}

#[test]
fn nothing_is_wrong_or_lost_after_any_restart() {
    let mut run_state = RunState::default();
    for (seed, outcome) in worlds(RESTART_SEEDS, |seed| run_restarts(seed, None)) {
        if let Some(failure) = outcome.failure {
            panic!("seed {seed} {failure}; cargo run -p simulation -- --restarts --seed {seed} shrinks it");
        }
        run_state.add(&outcome.totals);
    }
    let missing = missing(run_state.totals(), is_of_restarts);
    assert!(missing.is_empty(), "faults that never took effect: {missing:?}; {run_state}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in (0..SEEDS).step_by(19) {
        let (once, again) = (run(seed, None), run(seed, None));
        assert_eq!((once.hash, once.totals), (again.hash, again.totals), "seed {seed}");
    }
    for seed in (0..RESTART_SEEDS).step_by(19) {
        let (once, again) = (run_restarts(seed, None), run_restarts(seed, None));
        assert_eq!((once.hash, once.totals), (again.hash, again.totals), "seed {seed} with restarts");
    }
}

#[test]
fn another_seed_is_another_world() {
    assert_ne!(run(1, None).hash, run(2, None).hash);
}
