//! Runs every target over its corpus and mutations of it.

use kube_embedded_apiserver::fuzzing;
use kube_informer_fuzz::{Mutator, TARGETS, Target};
use std::{fs, panic, path::PathBuf};

/// Mutations for each target, unless `FUZZ_MUTATIONS` is set. All targets together take seconds.
const MUTATIONS: usize = 3000;

/// Inputs found by libFuzzer that cover more code than the seeds: one per line, with `\xNN` for other than plain text.
fn found(name: &str) -> Vec<Vec<u8>> {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{name}.found"));
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(unescaped).collect()
}

fn unescaped(line: &str) -> Vec<u8> {
    let mut parts = line.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).expect("two digits after \\x"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes
}

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).expect("readable"))).collect()
}

/// Runs a target. A failure shows the input, because it is not stored anywhere.
fn run(name: &str, target: Target, data: &[u8]) {
    if let Err(cause) = panic::catch_unwind(|| target(data)) {
        let shown: String =
            data.iter().flat_map(|byte| std::ascii::escape_default(*byte)).map(char::from).collect();
        // To keep the input: `printf '…' > corpus/<target>/<name>`.
        panic!("{name} fails: {cause:?}\ninput: b\"{shown}\"", cause = cause.downcast_ref::<String>());
    }
}

fn check(name: &str, target: Target) {
    let mut seeds: Vec<Vec<u8>> = corpus(name).into_iter().map(|(_, data)| data).collect();
    assert!(seeds.len() >= 3, "the corpus of {name} is too small");
    seeds.extend(found(name));
    run(name, target, b"");
    seeds.iter().for_each(|seed| run(name, target, seed));
    let mut mutator = Mutator::new(seeds.len() as u64);
    let mutations = std::env::var("FUZZ_MUTATIONS").ok().and_then(|number| number.parse().ok());
    for _ in 0..mutations.unwrap_or(MUTATIONS) {
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
        fn every_target_is_a_test_and_a_binary_of_cargo_fuzz() {
            let here: Vec<&str> = vec![$(stringify!($name)),*];
            let all: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(here, all);
            let manifest = include_str!("../../fuzz/Cargo.toml");
            for name in all {
                assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} is not a binary of cargo-fuzz");
            }
        }
    };
}

targets! {
    accept cache_directory cel_expression cel_rules certificate_subject continue_token definition duration field_path field_selector field_sets json_body json_patch json_path
    key label_selector list_body merge_patch object packed protobuf protobuf_kinds protobuf_list protobuf_watch query saved schema
    strategic_patch version watch_body web_socket
}

#[test]
fn found_inputs_are_unescaped() {
    assert_eq!(unescaped(r"a\x00b\x5cx41"), b"a\0b\\x41");
    assert_eq!(unescaped(""), b"");
}

#[test]
fn the_same_seed_gives_the_same_mutations() {
    let corpus = [b"metadata.name=a".to_vec(), b"{\"a\":[1,2]}".to_vec()];
    let all = |seed| {
        let mut mutator = Mutator::new(seed);
        (0..100).map(|_| mutator.mutate(&corpus)).collect::<Vec<_>>()
    };
    assert_eq!(all(1), all(1));
    assert_ne!(all(1), all(2));
}

/// Invalid seeds would test only the first check of a parser.
#[test]
fn seeds_are_valid_inputs() {
    let seed = |target: &str, name: &str| {
        let found = corpus(target).into_iter().find(|(path, _)| path.ends_with(name));
        String::from_utf8_lossy(&found.expect("a seed with that name").1).into_owned()
    };
    let parts = |target: &str, name: &str| {
        let seed = seed(target, name);
        let (first, second) = seed.split_once('\n').expect("two lines");
        (serde_json::from_str(first).expect("JSON"), serde_json::from_str(second).expect("JSON"))
    };
    for name in ["small", "status-scale-columns", "selectable", "lists"] {
        let spec = serde_json::from_str(&seed("definition", name)).expect("JSON");
        assert_eq!(fuzzing::definition(spec), (true, Ok(true)), "{name}");
    }
    let refused = serde_json::from_str(&seed("definition", "bad-pattern")).expect("JSON");
    assert!(!fuzzing::definition(refused).0);
    for name in ["defaults", "pruned", "junctors", "bounds", "lists", "embedded", "formats"] {
        assert!(fuzzing::Schema::compile(&parts("schema", name).0).is_some(), "{name}");
    }
    let (object, patch) = parts("json_patch", "every-operation");
    assert!(fuzzing::patch("application/json-patch+json", patch, object).is_ok());
    for name in ["containers", "delete", "order", "replace", "primitive", "plain"] {
        let (object, patch) = parts("strategic_patch", name);
        let patched = fuzzing::patch("application/strategic-merge-patch+json", patch, object.clone());
        assert!(patched.is_ok_and(|patched| patched != object), "{name}");
    }
    for name in ["cache", "store", "root"] {
        assert!(fuzzing::decode_continue(&seed("continue_token", name)).is_ok(), "{name}");
    }
    for name in ["config-map", "pod", "lease"] {
        let found = corpus("protobuf").into_iter().find(|(path, _)| path.ends_with(name));
        let object = fuzzing::decode_protobuf(&found.expect("a seed with that name").1);
        assert!(object.is_ok_and(|object| object["metadata"]["name"] == "a"), "{name}");
    }
    for name in ["name", "groups-and-uid", "two-in-one-set", "long-name", "other-string", "two-names"] {
        let found = corpus("certificate_subject").into_iter().find(|(path, _)| path.ends_with(name));
        let user = fuzzing::certificate_subject(&found.expect("a seed with that name").1);
        assert!(user.is_some(), "{name}");
    }
    for (name, found) in
        [("names", 1), ("every", 2), ("filter", 1), ("index", 1), ("quoted", 1), ("escaped", 1)]
    {
        let seed = seed("json_path", name);
        let (path, value) = seed.split_once('\n').expect("two lines");
        assert_eq!(fuzzing::follow(path, &serde_json::from_str(value).expect("JSON")), Some(found), "{name}");
    }
}
