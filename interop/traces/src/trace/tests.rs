use super::*;

fn object(key: &str, version: u64) -> ObjectState {
    ObjectState { key: key.into(), version: version.to_string(), uid: crate::encode::uid(1) }
}

fn call(event: EventType, key: &str, version: u64) -> Call {
    let object = object(key, version);
    Call { handler: "h".into(), event, initial: false, unknown: false, old: None, object }
}

fn initial(key: &str) -> Call {
    Call { initial: true, ..call(EventType::Add, key, 1) }
}

fn deleted(key: &str) -> Call {
    Call { unknown: true, ..call(EventType::Delete, key, 1) }
}

fn resync(key: &str) -> Call {
    Call { old: Some(object(key, 1)), ..call(EventType::Update, key, 1) }
}

fn sorted(unordered: Unordered, mut calls: Vec<Call>) -> String {
    unordered.sort(&mut calls);
    calls.iter().map(|call| call.object.key.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn only_unordered_calls_are_sorted() {
    let calls = || {
        vec![
            initial("n/c"),
            initial("n/a"),
            call(EventType::Add, "n/z", 2),
            call(EventType::Add, "n/b", 3),
            initial("n/a"),
        ]
    };
    assert_eq!(sorted(Unordered::InOrder, calls()), "n/c n/a n/z n/b n/a");
    assert_eq!(sorted(Unordered::Initial, calls()), "n/a n/c n/z n/b n/a");
    let relist = || {
        vec![deleted("n/d"), deleted("n/c"), call(EventType::Add, "n/b", 2), call(EventType::Add, "n/a", 3)]
    };
    assert_eq!(sorted(Unordered::Relist, relist()), "n/c n/d n/a n/b");
    assert_eq!(sorted(Unordered::RelistInOrder, relist()), "n/c n/d n/b n/a");
}

#[test]
fn resyncs_are_separate_and_limited_to_the_count() {
    let calls = [
        initial("n/a"),
        resync("n/b"),
        call(EventType::Delete, "n/fence-0", 3),
        resync("n/a"),
        resync("n/c"),
        deleted("n/a"),
    ];
    let mut output = Output::default();
    output.calls.insert("h".to_owned(), calls.to_vec());
    let segment = Segment { unordered: Unordered::InOrder, calls: [("h".to_owned(), 3)].into() };
    let mut trace = Trace::default();
    trace.add_handlers(&output, &[segment], &[("h".to_owned(), 2)].into(), &[]);
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
fn calls_are_formatted() {
    assert_eq!(ShowCall(&initial("n/a")).to_string(), "add n/a v1 u1 initial");
    assert_eq!(ShowCall(&deleted("n/a")).to_string(), "delete n/a v1 u1 final state unknown");
    assert_eq!(ShowCall(&resync("n/a")).to_string(), "update n/a v1 -> v1 u1");
}
