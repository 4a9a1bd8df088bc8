//! A few hundred worlds, and the same world twice.

use simulation::{Fault, Outcome, Tally, run};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// Seeds that every `cargo test` runs.
const SEEDS: u64 = 200;

/// The worlds of all seeds. Each has a thread to itself; how many there are at once changes nothing.
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
    let mut tally = Tally::default();
    for (seed, outcome) in worlds() {
        if let Some(failure) = outcome.failure {
            panic!("seed {seed} {failure}; cargo run -p simulation -- --seed {seed} shrinks it");
        }
        tally.add(&outcome.totals);
    }
    let totals = tally.totals();
    let missing: Vec<&str> =
        Fault::ALL.iter().filter(|&&fault| totals.struck(fault) == 0).map(|fault| fault.name()).collect();
    assert!(missing.is_empty(), "never struck: {missing:?}; {tally}");
    assert!(tally.median_writes() >= 200 && tally.median_faults() >= 5, "too little happens: {tally}");
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
