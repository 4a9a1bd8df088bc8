//! Small load tests, which take seconds. `.ci/run` also runs `chaos sockets`, which needs the program `kube-informer`;
//! `.ci/long` runs everything at full size.

use std::process::Command;

/// Runs the program and returns its last line, which contains the totals.
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
fn each_of_many_handlers_receives_every_event() {
    let totals = totals(&["load", "handlers", "--handlers", "40", "--objects", "50", "--writes", "200"]);
    assert_eq!(number(&totals, "writes"), 200);
    assert_eq!(number(&totals, "calls") + number(&totals, "coalesced"), 40 * (50 + 200), "{totals}");
}

#[test]
fn many_informers_equal_a_list() {
    let totals = totals(&["load", "informers", "--informers", "30", "--writes", "150"]);
    assert!(number(&totals, "writes") >= 150 && number(&totals, "awaited") > 0, "{totals}");
}

#[test]
fn many_objects_are_synced_and_relisted() {
    let totals = totals(&["load", "objects", "--objects", "2000"]);
    assert!((1998..=2002).contains(&number(&totals, "objects")), "{totals}");
    assert_eq!(number(&totals, "calls-after-sync"), 2, "a relist causes events for changed objects only");
}

#[test]
fn no_event_is_lost_at_a_steady_rate() {
    let totals = totals(&["load", "rate", "--rate", "100", "--seconds", "3", "--objects", "50"]);
    assert_eq!(number(&totals, "writes"), 300);
}
