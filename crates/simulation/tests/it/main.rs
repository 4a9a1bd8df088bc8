//! A few hundred worlds, and the same world twice.

use kube_informer_simulation::{Fault, Totals, run};

/// Seeds that every `cargo test` runs.
const SEEDS: u64 = 300;

#[test]
fn nothing_is_lost_in_any_world() {
    let mut totals = Totals::default();
    for seed in 0..SEEDS {
        let outcome = run(seed, None);
        if let Some(failure) = outcome.failure {
            panic!("seed {seed} {failure}; cargo run -p kube-informer-simulation -- --seed {seed} shrinks it");
        }
        totals.add(&outcome.totals);
    }
    let missing: Vec<&str> =
        Fault::ALL.iter().filter(|&&fault| totals.struck(fault) == 0).map(|fault| fault.name()).collect();
    assert!(missing.is_empty(), "never struck: {missing:?}; {totals}");
    assert!(totals.writes >= 200 * SEEDS && totals.faults() >= 5 * SEEDS, "too little happens: {totals}");
}

#[test]
fn the_same_seed_is_the_same_world() {
    for seed in (0..SEEDS).step_by(15) {
        let (once, again) = (run(seed, None), run(seed, None));
        assert_eq!((once.hash, once.totals), (again.hash, again.totals), "seed {seed}");
    }
}

#[test]
fn another_seed_is_another_world() {
    assert_ne!(run(1, None).hash, run(2, None).hash);
}
