//! The loads, scaled down to seconds. `.ci/run` also runs `chaos sockets`, for which another program has to be built;
//! `.ci/long` runs everything at full size.

use std::process::Command;

/// Runs the program to its end; its last line, which holds the totals.
fn totals(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_chaos")).args(arguments).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout).lines().last().unwrap_or_default().to_owned()
}

/// A number in the totals.
fn number(totals: &str, name: &str) -> u64 {
    let value = totals.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {totals}"))
}

#[test]
fn every_handler_of_many_hears_of_everything() {
    let totals = totals(&["load", "handlers", "--handlers", "40", "--objects", "50", "--writes", "200"]);
    assert_eq!(number(&totals, "writes"), 200);
    assert_eq!(number(&totals, "calls") + number(&totals, "coalesced"), 40 * (50 + 200), "{totals}");
}

#[test]
fn many_informers_are_in_step() {
    let totals = totals(&["load", "informers", "--informers", "30", "--writes", "150"]);
    assert!(number(&totals, "writes") >= 150 && number(&totals, "awaited") > 0, "{totals}");
}

#[test]
fn many_objects_are_listed_twice() {
    let totals = totals(&["load", "objects", "--objects", "2000"]);
    assert!((1998..=2002).contains(&number(&totals, "objects")), "{totals}");
    assert_eq!(number(&totals, "calls-after-sync"), 2, "a relist tells of what changed, and of nothing else");
}

#[test]
fn nothing_is_lost_at_a_steady_rate() {
    let totals = totals(&["load", "rate", "--rate", "100", "--seconds", "3", "--objects", "50"]);
    assert_eq!(number(&totals, "writes"), 300);
}
