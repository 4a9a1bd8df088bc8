//! Tests of the mutations: each kind, nested, and the places that are left alone.

use crate::{
    instrument::{instrument, mutants},
    sites::{Sites, find},
};
use std::{
    collections::HashSet,
    fs,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// Changes of a file, such as `replace < with <=: a < b`.
fn changes(source: &str) -> Vec<String> {
    let Sites { sites, .. } = find(source).unwrap();
    let mutants = mutants("a.rs", source, &sites, 1);
    mutants.iter().map(|mutant| format!("{}: {}", mutant.change, mutant.code)).collect()
}

fn instrumented(source: &str) -> String {
    let Sites { sites, .. } = find(source).unwrap();
    instrument(source, &sites, 1, &HashSet::new()).text
}

/// Compiles a function `check() -> i64` with all its mutants, and returns what it returns with each of them.
/// The first number is without a mutant.
fn behaviour(source: &str) -> Vec<i64> {
    static PROGRAMS: AtomicU32 = AtomicU32::new(0);
    let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
    let directory = std::env::temp_dir().join(format!("mutants-{}-{number}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let switch = "mod __mutants { pub fn on(id: u32) -> bool { std::env::var(\"MUTANT\").unwrap() == id.to_string() } }";
    let text = format!("{}\n{switch}\nfn main() {{ print!(\"{{}}\", check()) }}", instrumented(source));
    assert_eq!(instrumented(source).lines().count(), source.lines().count(), "no line moves");
    let (file, program) = (directory.join("main.rs"), directory.join("main"));
    fs::write(&file, text).unwrap();
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--cap-lints", "allow", "-o"]).arg(&program).arg(&file);
    assert!(rustc.status().unwrap().success());
    let with = |id: usize| {
        let output = Command::new(&program).env("MUTANT", id.to_string()).output().unwrap();
        String::from_utf8(output.stdout).unwrap().parse().unwrap()
    };
    let values = (0..=changes(source).len()).map(with).collect();
    fs::remove_dir_all(directory).unwrap();
    values
}

#[test]
fn comparisons_are_replaced() {
    let less = "fn f() { a < b; }";
    assert_eq!(
        changes(less),
        ["replace < with ==: a < b", "replace < with >: a < b", "replace < with <=: a < b"]
    );
    assert_eq!(changes("fn f() { a == b; }"), ["replace == with !=: a == b"]);
    assert_eq!(changes("fn f() { a != b; }"), ["replace != with ==: a != b"]);
    assert_eq!(changes("fn f() { a <= b; }"), ["replace <= with >: a <= b"]);
    assert_eq!(changes("fn f() { a >= b; }"), ["replace >= with <: a >= b"]);
    assert_eq!(changes("fn f() { a > b; }").len(), 3);
    assert!(changes("fn f() { a + b & c; a += b; }").is_empty());
    // Each digit is one comparison.
    let check = "fn check() -> i64 {\n let f = |a: i64, b: i64| i64::from(a < b);\n f(1, 2) + 10 * f(2, 2) + 100 * f(3, 2)\n}";
    assert_eq!(behaviour(check), [1, 10, 100, 11]);
}

#[test]
fn nested_operators_are_mutated_one_at_a_time() {
    let source = "fn check() -> i64 { let f = |a: i64, b: bool| i64::from(\n  !(a == 1 && b) // comment\n  || a as i32 > 5); \
                  f(1, true) + 10 * f(1, false) + 100 * f(2, true) + 1000 * f(6, true) }";
    assert_eq!(
        changes(source),
        [
            "replace || with &&: !(a == 1 && b) // comment || a as i32 > 5",
            "delete !: !(a == 1 && b)",
            "replace && with ||: a == 1 && b",
            "replace == with !=: a == 1",
            "replace > with ==: a as i32 > 5",
            "replace > with <: a as i32 > 5",
            "replace > with >=: a as i32 > 5",
        ]
    );
    assert_eq!(behaviour(source), [1110, 1000, 1001, 1000, 1011, 1110, 1111, 1110]);
}

#[test]
fn match_arms_and_guards_are_switched_off() {
    let source = "fn check() -> i64 {\n let f = |a: i64, b: bool| match a {\n  1 => 1,\n  2 | 3 if b => 2,\n  _ => 3,\n };\n \
                  f(1, true) + 10 * f(2, true) + 100 * f(3, false)\n}";
    assert_eq!(
        changes(source),
        ["delete match arm: 1", "replace match guard with true: b", "replace match guard with false: b"]
    );
    assert_eq!(behaviour(source), [321, 323, 221, 331]);
    // Without a catch-all arm, the match would not be exhaustive.
    assert!(changes("fn f() { match a { Some(b) => 1, None => 2 } }").is_empty());
    // An arm behind the catch-all arm is not compiled at all.
    assert!(changes("fn f() { match a { _ => 1 } }").is_empty());
}

#[test]
fn guards_with_operators_are_grouped() {
    let source = "fn check() -> i64 {\n let f = |a: i64| match a { x if x == 1 || x == 2 => 1, _ => 0 };\n f(1) + 10 * f(2) + 100 * f(3)\n}";
    assert_eq!(behaviour(source), [11, 111, 0, 0, 110, 101]);
}

#[test]
fn functions_return_a_constant() {
    let source = "fn is(a: i64) -> bool { a % 2 == 0 }\nfn yes() -> bool { true }\nfn check() -> i64 { i64::from(is(1)) + 10 * i64::from(is(2)) + 100 * i64::from(yes()) }";
    assert_eq!(
        changes(source),
        [
            "return true: fn is(a: i64) -> bool",
            "return false: fn is(a: i64) -> bool",
            "replace == with !=: a % 2 == 0",
            "return false: fn yes() -> bool"
        ]
    );
    assert_eq!(behaviour(source), [110, 111, 100, 101, 10]);
    assert!(changes("fn f() -> Option<bool> { None }").is_empty());
}

#[test]
fn let_chains_stay_whole_but_their_operands_are_mutated() {
    let source = "fn check() -> i64 {\n let f = |a: Option<i64>, b: bool| i64::from(if b && let Some(c) = a && c < 2 { true } else { false });\n \
                  f(Some(1), true) + 10 * f(Some(1), false) + 100 * f(Some(2), true)\n}";
    assert_eq!(
        changes(source),
        ["replace < with ==: c < 2", "replace < with >: c < 2", "replace < with <=: c < 2"]
    );
    assert_eq!(behaviour(source), [1, 100, 0, 101]);
    let operands = "fn f() { if a && b && let Some(c) = d {} }";
    assert_eq!(changes(operands), ["replace && with ||: a && b"]);
}

#[test]
fn code_of_the_compiler_and_of_tests_is_left_alone() {
    for source in [
        "const fn f(a: u8) -> bool { a < 2 }",
        "const A: bool = 1 < 2; static B: bool = !A;",
        "fn f() { let a = [0; if A == B { 1 } else { 2 }]; const { assert(A < B) } }",
        "fn f(a: [u8; (A < B) as usize]) {}",
        "enum E { A = (1 < 2) as isize }",
        "impl T { const A: bool = 1 < 2; }",
        "#[test] fn f() { a == b; }",
        "#[tokio::test] async fn f() { a == b; }",
        "#[cfg(test)] mod tests { fn f() { a == b; } }",
        "#[cfg(all(unix, test))] fn f() { a == b; }",
        "#[cfg(not(unix))] fn f() { a == b; }",
        "impl fmt::Debug for T { fn fmt(&self) { a == b; } }",
        "impl Display for T { fn fmt(&self) { a == b; } }",
        "fn f() { assert!(a == b); }",
        "fn f() { let n = a as usize; let m = -b; }",
    ] {
        assert!(changes(source).is_empty(), "{source}");
    }
    assert_eq!(changes("#[cfg(not(test))] fn f() { a == b; }").len(), 1);
    assert_eq!(changes("#[cfg(any(test, unix))] fn f() { a == b; }").len(), 1);
    assert_eq!(changes("#[cfg(feature = \"x\")] fn f() { a == b; }").len(), 1);
}

#[test]
fn mutants_are_named_by_their_function_and_numbered_if_repeated() {
    let source = "impl<T> Queue<T> { fn add(&self) { a == b; a == b; } }\nimpl Drop for Queue { fn drop(&mut self) { !a; } }\nfn free() { !b; }";
    let Sites { sites, .. } = find(source).unwrap();
    let keys: Vec<String> = mutants("a.rs", source, &sites, 1).iter().map(|mutant| mutant.key()).collect();
    assert_eq!(
        keys,
        [
            "a.rs | Queue::add | replace == with !=: a == b",
            "a.rs | Queue::add | replace == with !=: a == b #2",
            "a.rs | <Queue as Drop>::drop | delete !: !a",
            "a.rs | free | delete !: !b",
        ]
    );
}

#[test]
fn modules_in_other_files_are_found_unless_they_are_tests() {
    let source = "mod a; #[cfg(test)] mod tests; mod b { mod c; } #[cfg(any(test, unix))] pub mod d;";
    let modules: Vec<String> = find(source).unwrap().modules.iter().map(|path| path.join("/")).collect();
    assert_eq!(modules, ["a", "b/c", "d"]);
}

#[test]
fn compiler_errors_are_traced_to_mutants() {
    let source = "fn f() { if (a < b) == (c == d) {} }";
    let Sites { sites, .. } = find(source).unwrap();
    let file = instrument(source, &sites, 1, &HashSet::new());
    let at = |code: &str| {
        let start = file.text.find(code).unwrap();
        file.blamed(&(start..start + code.len()))
    };
    // The code of one mutant, the code of a site, and code without mutants.
    assert_eq!(at("(a) <= (b)"), [4]);
    assert_eq!(at("{ c == d"), [5]);
    assert_eq!(at("fn f"), Vec::<u32>::new());
    let without = instrument(source, &sites, 1, &HashSet::from([2, 3, 4, 5]));
    assert_eq!(
        without.text,
        "fn f() { if (if crate::__mutants::on(1) { ((a < b)) != ((c == d)) } else { (a < b) == (c == d) }) {} }"
    );
}
