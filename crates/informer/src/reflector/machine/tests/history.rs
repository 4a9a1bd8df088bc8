//! Servers that were restored from a backup, and repairs of what a watch left open.

use super::*;

#[test]
fn a_list_that_went_back_is_taken_again_and_compared_by_content() {
    let mut machine = watching();
    run(&mut machine, [fail(Class::Expired), Input::Waited]);
    assert_eq!(machine.compare(), Compare::Version);
    assert_eq!(run(&mut machine, [page(5, None)]), ["list()"], "what was dropped as known may not be");
    assert_eq!(machine.compare(), Compare::Content);
    assert_eq!(run(&mut machine, [page(6, None), Input::Committed]), ["commit 6", "watch(6)"]);
    assert_eq!(machine.compare(), Compare::Version, "within the new history versions count again");
}

#[test]
fn a_streaming_list_that_went_back_is_taken_again() {
    let mut machine = following();
    run(&mut machine, [fail(Class::Expired), Input::Waited]);
    assert_eq!(run(&mut machine, [Input::StreamListed(5.into())]), ["stream()"]);
    assert_eq!(run(&mut machine, [Input::StreamListed(5.into()), Input::Committed]), ["commit 5", "follow"]);
}

/// The server may pass the known version before it is listed: the list is then newer than everything known, and
/// shows another history nevertheless.
#[test]
fn a_server_that_was_behind_is_compared_by_content() {
    let probe = |answer| vec![Input::Quiet, answer];
    let evidence: [Vec<Input>; 5] = [
        vec![fail(Class::TooLarge), Input::Waited],
        vec![fail(Class::Expired), Input::Waited, fail(Class::TooLarge)],
        probe(Input::Probed(Some(5.into()))),
        probe(fail(Class::TooLarge)),
        vec![Input::Rewound { now: Instant::now() }, Input::Waited],
    ];
    for (i, inputs) in evidence.into_iter().enumerate() {
        for mut machine in [watching(), following()] {
            run(&mut machine, inputs.clone());
            assert_eq!(machine.compare(), Compare::Content, "{i}");
            run(&mut machine, [fail(Class::Transport), Input::Waited]);
            assert_eq!(machine.compare(), Compare::Content, "{i}: a list that failed settles nothing");
            let complete =
                if machine.settings.streaming { Input::StreamListed(20.into()) } else { page(20, None) };
            assert_eq!(run(&mut machine, [complete, Input::Committed])[0], "commit 20", "{i}");
            assert_eq!(machine.compare(), Compare::Version, "{i}");
        }
    }
}

#[test]
fn other_failures_are_no_evidence_of_another_history() {
    let harmless = [Class::Expired, Class::Busy, Class::Transport, Class::Server, Class::Invalid];
    for class in harmless {
        let mut machine = watching();
        run(&mut machine, [fail(class), Input::Waited]);
        assert_eq!(machine.compare(), Compare::Version, "{class:?}");
    }
    let mut machine = watching();
    assert_eq!(run(&mut machine, [Input::Malformed { at: None, now: Instant::now() }]), ["wait"]);
    assert_eq!(machine.compare(), Compare::Version);
}

#[test]
fn versions_that_are_no_numbers_are_never_older() {
    let mut machine = watching();
    run(&mut machine, [progress("opaque-9"), fail(Class::Expired), Input::Waited]);
    let odd = Input::Page { version: Some("opaque-1".into()), continue_token: None };
    assert_eq!(run(&mut machine, [odd, Input::Committed]), ["commit opaque-1", "watch(opaque-1)"]);
}

/// Repairs what a step asks for with a list at `version`; returns whether it asked for one.
fn repairs(machine: &mut Machine, input: Input, version: u64) -> bool {
    match &run(machine, [input])[0][..] {
        "wait" => {
            let repair = run(machine, [Input::Waited, page(version, None), Input::Committed]);
            assert_eq!(repair[..2], ["list()".to_owned(), format!("commit {version}")]);
            true
        }
        "follow" => false,
        other => panic!("{other}"),
    }
}

#[test]
fn an_anomaly_lists_the_most_recent_state_once_for_each_place() {
    let mut machine = watching();
    // An hour apart: each may be repaired.
    let start = Instant::now();
    let mut hours = (0..).map(|i| start + Duration::from_secs(3600 * i));
    let mut malformed = |machine: &mut Machine, at: Option<u64>, version| {
        let now = hours.next().unwrap();
        repairs(machine, Input::Malformed { at: at.map(Into::into), now }, version)
    };
    assert!(malformed(&mut machine, Some(12), 12));
    assert!(!malformed(&mut machine, Some(12), 12), "that has been repaired");
    assert!(malformed(&mut machine, None, 12), "the list at 12 shows nothing of what comes after it");
    assert!(!malformed(&mut machine, None, 12));
    assert!(malformed(&mut machine, Some(13), 13));
    run(&mut machine, [progress(14)]);
    assert!(malformed(&mut machine, None, 14), "another place");
    assert!(!malformed(&mut machine, None, 14));
    let rewound = || Input::Rewound { now: start + Duration::from_secs(86_400) };
    assert!(repairs(&mut machine, rewound(), 14), "another anomaly, which that list did not repair");
    assert!(!repairs(&mut machine, rewound(), 14) && !malformed(&mut machine, None, 14));
}

#[test]
fn repairs_are_a_minute_apart() {
    let mut machine = watching();
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    let malformed = |at: u64, now| Input::Malformed { at: Some(at.into()), now };
    assert!(repairs(&mut machine, malformed(11, start), 11));
    assert_eq!((machine.repair_due(), machine.hides_a_change()), (None, false));
    assert!(!repairs(&mut machine, malformed(12, after(10)), 12), "too soon");
    assert_eq!((machine.repair_due(), machine.hides_a_change()), (Some(after(60)), true));
    assert!(!repairs(&mut machine, Input::RepairDue { now: after(59) }, 12));
    assert!(repairs(&mut machine, Input::RepairDue { now: after(60) }, 12));
    assert_eq!((machine.repair_due(), machine.hides_a_change()), (None, false));
}

#[test]
fn a_list_for_another_reason_is_a_repair_too() {
    let mut machine = watching();
    let start = Instant::now();
    assert!(repairs(&mut machine, Input::Malformed { at: Some(11.into()), now: start }, 11));
    assert!(!repairs(&mut machine, Input::Malformed { at: Some(12.into()), now: start }, 12));
    run(&mut machine, [fail(Class::Expired), Input::Waited, page(12, None), Input::Committed]);
    assert_eq!((machine.repair_due(), machine.hides_a_change()), (None, false));
}

#[test]
fn a_quiet_watch_is_probed_and_goes_on() {
    let mut machine = watching();
    assert_eq!(run(&mut machine, [Input::Quiet, Input::Probed(Some(10.into()))]), ["probe(10)", "follow"]);
    assert_eq!(run(&mut machine, [Input::Quiet, fail(Class::Server)]), ["probe(10)", "follow"]);
    assert_eq!(run(&mut machine, [Input::Quiet, Input::Probed(None)]), ["probe(10)", "follow"]);
    for behind in [Input::Probed(Some(5.into())), fail(Class::TooLarge)] {
        assert_eq!(run(&mut watching(), [Input::Quiet, behind]), ["probe(10)", "list()"]);
    }
}
