//! Nothing is ignored silently: every served resource, every field that the server itself has to obey, and every parameter has an effect
//! that a test checks, configures another program, or gets a warning.

mod fields;
mod parameters;
mod resources;
mod warnings;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

/// The effect of a resource, a field or a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The test of this name checks it.
    Test(&'static str),
    /// The server only stores it, as kube-apiserver does. These act on it.
    For(&'static str),
    /// It is text for people.
    Text,
    /// It has a row in the list of what is not enforced.
    Warned,
}

/// The names of all test functions of this crate.
fn test_names() -> &'static BTreeSet<String> {
    static NAMES: OnceLock<BTreeSet<String>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut names = BTreeSet::new();
        for folder in ["src", "tests"] {
            collect(&root.join(folder), &mut names);
        }
        names
    })
}

/// Adds the functions after a `#[test]` or `#[tokio::test]`. The contract makes tests of its functions by a macro.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("a source file");
            let of_contract = path.parent().is_some_and(|parent| parent.ends_with("contract"));
            let mut is_test = of_contract;
            for line in text.lines().map(str::trim) {
                is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
                if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_test) {
                    names.insert(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
                    is_test = of_contract;
                }
            }
        }
    }
}

/// Fails if a row names a test that does not exist.
fn assert_exists(effect: Effect, of: &str) {
    if let Effect::Test(name) = effect {
        assert!(test_names().contains(name), "{of}: there is no test {name}");
    }
}
