use super::*;

fn described(key: &str, version: u64) -> Described {
    Described { key: key.into(), version: version.to_string(), uid: crate::wire::uid(1) }
}

fn call(what: What, key: &str, version: u64) -> Call {
    let object = described(key, version);
    Call { handler: "h".into(), what, initial: false, unknown: false, old: None, object }
}

fn initial(key: &str) -> Call {
    Call { initial: true, ..call(What::Add, key, 1) }
}

fn gone(key: &str) -> Call {
    Call { unknown: true, ..call(What::Delete, key, 1) }
}

fn resync(key: &str) -> Call {
    Call { old: Some(described(key, 1)), ..call(What::Update, key, 1) }
}

fn sorted(unordered: Unordered, mut calls: Vec<Call>) -> String {
    unordered.sort(&mut calls);
    calls.iter().map(|call| call.object.key.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn only_what_has_no_order_is_sorted() {
    let calls = || {
        vec![
            initial("n/c"),
            initial("n/a"),
            call(What::Add, "n/z", 2),
            call(What::Add, "n/b", 3),
            initial("n/a"),
        ]
    };
    assert_eq!(sorted(Unordered::InOrder, calls()), "n/c n/a n/z n/b n/a");
    assert_eq!(sorted(Unordered::Initial, calls()), "n/a n/c n/z n/b n/a");
    let relist = || vec![gone("n/d"), gone("n/c"), call(What::Add, "n/b", 2), call(What::Add, "n/a", 3)];
    assert_eq!(sorted(Unordered::Relist, relist()), "n/c n/d n/a n/b");
    assert_eq!(sorted(Unordered::RelistInOrder, relist()), "n/c n/d n/b n/a");
}

#[test]
fn resyncs_are_told_apart_and_those_beyond_the_count_left_out() {
    let calls = [
        initial("n/a"),
        resync("n/b"),
        call(What::Delete, "n/fence-0", 3),
        resync("n/a"),
        resync("n/c"),
        gone("n/a"),
    ];
    let mut said = Said::default();
    said.calls.insert("h".to_owned(), calls.to_vec());
    let segment = Segment { unordered: Unordered::InOrder, calls: [("h".to_owned(), 3)].into() };
    let mut trace = Trace::default();
    trace.handlers(&said, &[segment], &[("h".to_owned(), 2)].into(), &[]);
    let expected = [
        "add n/a v1 u1 initial",
        "delete n/a v1 u1 final state unknown",
        "resync n/a v1 u1",
        "resync n/b v1 u1",
    ];
    assert_eq!(trace.lines, expected.map(|line| format!("h {line}")));
}

fn trace(lines: &[&str]) -> Trace {
    Trace { lines: lines.iter().map(|line| (*line).to_owned()).collect() }
}

#[test]
fn traces_must_differ_exactly_as_listed() {
    let (left, right) = (trace(&["a", "b", "c"]), trace(&["a", "c", "d"]));
    let listed = Difference { id: "x".into(), client_go: vec!["b".into()], ours: vec!["d".into()] };
    assert_eq!(compare(&left, &right, std::slice::from_ref(&listed)), Ok(()));
    assert!(compare(&left, &right, &[]).unwrap_err().contains("-b"));
    assert!(
        compare(&left, &left, std::slice::from_ref(&listed)).unwrap_err().contains("expected difference: x")
    );
    assert_eq!(compare(&left, &left, &[]), Ok(()));
}

#[test]
fn calls_read_as_sentences() {
    assert_eq!(Told(&initial("n/a")).to_string(), "add n/a v1 u1 initial");
    assert_eq!(Told(&gone("n/a")).to_string(), "delete n/a v1 u1 final state unknown");
    assert_eq!(Told(&resync("n/a")).to_string(), "update n/a v1 -> v1 u1");
}
