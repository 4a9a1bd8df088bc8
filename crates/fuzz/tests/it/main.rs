//! Runs every target over its corpus and over mutations of it.

use kube_informer_fuzz::{Mutator, TARGETS, Target};
use std::{fs, panic, path::PathBuf};

/// Mutations of each target: some seconds for all of them.
const MUTATIONS: usize = 3000;

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).expect("readable"))).collect()
}

/// Runs a target; a failure shows the input as well, since nothing else keeps it.
fn run(name: &str, target: Target, data: &[u8]) {
    if let Err(cause) = panic::catch_unwind(|| target(data)) {
        let shown: String =
            data.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
        // To be kept: `printf '…' > corpus/<target>/<what it shows>`.
        panic!("{name} fails: {cause:?}\ninput: b\"{shown}\"", cause = cause.downcast_ref::<String>());
    }
}

fn check(name: &str, target: Target) {
    let seeds: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, data)| data).collect();
    assert!(seeds.len() >= 3, "{name} has a corpus");
    run(name, target, b"");
    seeds.iter().for_each(|seed| run(name, target, seed));
    let mut mutator = Mutator::new(seeds.len() as u64);
    for _ in 0..MUTATIONS {
        run(name, target, &mutator.mutate(&seeds));
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name), kube_informer_fuzz::$name);
        })*

        #[test]
        fn every_target_is_run_here_and_by_cargo_fuzz() {
            let here: Vec<&str> = vec![$(stringify!($name)),*];
            let all: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(here, all);
            let manifest = include_str!("../../fuzz/Cargo.toml");
            for name in all {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is no program of cargo-fuzz");
            }
        }
    };
}

targets! {
    accept continue_token definition duration field_path field_selector field_sets json_body json_patch json_path
    key label_selector list_body merge_patch object packed protobuf query schema strategic_patch version watch_body
}

#[test]
fn the_same_seed_mutates_alike() {
    let corpus = [b"metadata.name=a".to_vec(), b"{\"a\":[1,2]}".to_vec()];
    let all = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..100).map(|_| mutator.mutate(&corpus)).collect::<Vec<_>>()
    };
    assert_eq!(all(1), all(1));
    assert_ne!(all(1), all(2));
}
