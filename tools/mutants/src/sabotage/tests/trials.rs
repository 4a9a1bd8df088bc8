//! Tests of verdicts, with a script in place of the simulation.

use crate::sabotage::{
    patch::{Patch, Worlds},
    trial::{Trials, Verdict},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::Duration,
};

/// Returns the verdict on a patch, and the seeds that failed without it.
fn verdict(id: u32, seeds: u64) -> anyhow::Result<(Verdict, Vec<u64>)> {
    let temporary = std::env::temp_dir().join(format!("trials-{}-{id}-{seeds}", std::process::id()));
    fs::create_dir_all(&temporary)?;
    let trials = trials(&temporary, seeds);
    let patch = Patch { id, name: format!("patch-{id}"), worlds: Worlds::Caches, files: BTreeMap::new() };
    let verdict = trials.try_switched(&patch);
    fs::remove_dir_all(&temporary)?;
    let failed = trials.failed_without_patch.into_inner()?;
    Ok((verdict?, failed.keys().map(|(_, seed)| *seed).collect()))
}

fn trials(temporary: &Path, seeds: u64) -> Trials<'_> {
    Trials {
        program: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sabotage/tests/simulation")),
        directory: temporary,
        temporary,
        seeds,
        time_limit: Duration::from_secs(2),
        failed_without_patch: Mutex::default(),
    }
}

fn caught(reason: &str) -> Verdict {
    Verdict::Caught(reason.to_owned())
}

fn missed(how: &str) -> Verdict {
    Verdict::Missed(how.to_owned())
}

#[test]
fn a_patch_is_caught_by_a_world_that_passes_without_it() {
    assert_eq!(verdict(1, 20).unwrap(), (caught("seed 5 after 1 steps: patch 1"), vec![]));
    // Seed 7 does not count, and seed 9 does.
    assert_eq!(verdict(2, 20).unwrap(), (caught("seed 9 after 1 steps: patch 2"), vec![7]));
    assert_eq!(verdict(2, 8).unwrap(), (missed("in 8 seeds: the changed code is reached"), vec![7]));
    assert_eq!(verdict(4, 20).unwrap().0, caught("thread 'main' panicked at src/main.rs:1:1: overflow"));
}

#[test]
fn a_limit_does_not_catch_a_patch() {
    assert_eq!(verdict(1, 5).unwrap().0, missed("in 5 seeds: the changed code is reached"));
    assert_eq!(verdict(3, 5).unwrap().0, missed("in 5 seeds: the changed code is never reached"));
    assert_eq!(verdict(5, 5).unwrap().0, missed("in 8 GiB of memory: the changed code is reached"));
    assert_eq!(verdict(6, 5).unwrap().0, missed("in 2 s: the changed code is reached"));
}

#[test]
fn a_failure_without_the_changed_code_is_an_error() {
    let error = verdict(7, 20).unwrap_err().to_string();
    assert!(error.contains("without reaching the changed code"), "{error}");
}

#[test]
fn worlds_have_to_pass_without_a_patch() {
    let temporary = std::env::temp_dir().join(format!("trials-{}-baseline", std::process::id()));
    fs::create_dir_all(&temporary).unwrap();
    let error = trials(&temporary, 1).baseline(Worlds::Restarts).unwrap_err().to_string();
    fs::remove_dir_all(&temporary).unwrap();
    assert!(error.contains("FAILED seed 7"), "{error}");
}
