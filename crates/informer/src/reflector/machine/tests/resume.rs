//! Starts with a state that an earlier process saved.

use super::*;

fn uid(n: u8) -> Uid {
    Uid::from(format!("00000000-0000-4000-8000-{n:012x}").as_str())
}

/// Saved at version 10; `ns/a` has the highest version, 8.
fn saved(is_recent: bool) -> Input {
    let key = ObjectKey::namespaced("ns", "a");
    let witness = Some(Witness { key, uid: uid(1), version: 8.into() });
    Input::Restored(RestoredState { version: 10.into(), witness, is_recent, now: Instant::now() })
}

fn found(found: Option<(u8, u64)>) -> Input {
    let found = found.map(|(n, version)| (uid(n), version.into()));
    Input::Verified { found, now: Instant::now() }
}

fn current(version: u64) -> Input {
    Input::Probed(Some(version.into()))
}

/// Restored, and the witness is as it was.
fn resumed() -> Machine {
    let mut machine = lister();
    assert_eq!(run(&mut machine, [saved(true), found(Some((1, 8)))]), ["get ns/a", "watch(10)"]);
    machine
}

#[test]
fn a_server_at_the_saved_version_is_synced_without_a_list() {
    let mut machine = resumed();
    assert_eq!(run(&mut machine, [Input::WatchOpened, current(10)]), ["probe()", "follow"]);
    assert!(machine.is_proven() && machine.compare() == Compare::Version);
}

#[test]
fn the_watch_must_reach_the_version_that_the_server_has() {
    let mut machine = resumed();
    assert_eq!(run(&mut machine, [Input::WatchOpened, current(20), progress(19)])[1..], ["follow", "follow"]);
    assert!(!machine.is_proven() && machine.compare() == Compare::Content);
    assert_eq!(run(&mut machine, [progress(20)]), ["follow"]);
    assert!(machine.is_proven() && machine.compare() == Compare::Version);
    assert_eq!(
        run(&mut machine, [fail(Class::Expired), Input::Waited])[1],
        "list(20)",
        "as usual from here on"
    );
}

#[test]
fn an_event_after_the_version_is_proof_too() {
    let mut machine = resumed();
    assert_eq!(run(&mut machine, [Input::WatchOpened, current(20), progress(25)])[2], "follow");
    assert!(machine.is_proven());
}

#[test]
fn an_event_before_the_version_is_known_counts() {
    let mut machine = resumed();
    run(&mut machine, [Input::WatchOpened, fail(Class::Transport), progress(20)]);
    assert!(!machine.is_proven(), "the server may be further");
    let ended = ended(Duration::from_secs(4), Delivered::Events);
    assert_eq!(
        run(&mut machine, [ended, Input::WatchOpened, current(20)]),
        ["watch(20)", "probe()", "follow"]
    );
    assert!(machine.is_proven());
}

#[test]
fn first_watches_are_short() {
    for seed in 0..20 {
        let mut machine = Machine::new(Settings::default(), fastrand::Rng::with_seed(seed));
        machine.step(saved(true));
        let Command::Watch(options) = machine.step(found(Some((1, 8)))) else { panic!("not a watch") };
        assert!((3..=5).contains(&options.timeout.unwrap().as_secs()), "{options:?}");
        assert!(options.allow_bookmarks);
        run(&mut machine, [Input::WatchOpened, current(10)]);
        let long = ended(Duration::from_secs(5), Delivered::Nothing);
        let Command::Watch(options) = machine.step(long) else { panic!("not a watch") };
        assert!(options.timeout.unwrap().as_secs() >= 300, "as usual from here on");
    }
}

#[test]
fn a_server_behind_the_saved_version_has_another_history() {
    let mut machine = resumed();
    assert_eq!(run(&mut machine, [Input::WatchOpened, current(9)])[1], "list()");
    assert_eq!(machine.compare(), Compare::Content);
    assert_eq!(run(&mut machine, [page(9, None), Input::Committed]), ["commit 9", "watch(9)"]);
    assert!(machine.is_proven());
}

#[test]
fn a_server_without_a_comparable_version_is_listed() {
    let mut machine = resumed();
    assert_eq!(run(&mut machine, [Input::WatchOpened, Input::Probed(None)])[1], "list()");
    let mut machine = lister();
    let opaque = RestoredState { version: "x".into(), witness: None, is_recent: true, now: Instant::now() };
    assert_eq!(run(&mut machine, [Input::Restored(opaque)]), ["list()"]);
}

#[test]
fn the_witness_may_be_newer_but_not_older_or_another_object() {
    for (state, next) in [
        (Some((1, 8)), "watch(10)"),
        (Some((1, 12)), "watch(10)"),
        (Some((1, 7)), "list()"),
        (Some((2, 8)), "list()"),
        (Some((2, 5)), "list()"),
        (Some((2, 12)), "watch(10)"),
        (None, "watch(10)"),
    ] {
        let mut machine = lister();
        assert_eq!(run(&mut machine, [saved(true), found(state)]), ["get ns/a", next], "{state:?}");
        assert_eq!(machine.compare(), Compare::Content);
    }
}

#[test]
fn a_witness_that_is_gone_counts_once_the_watch_delivers_its_delete() {
    for gone in [None, Some((2, 12))] {
        let mut machine = lister();
        run(&mut machine, [saved(true), found(gone), Input::WatchOpened, current(20)]);
        let key = ObjectKey::namespaced("ns", "a");
        assert!(machine.awaits_delete(&key, uid(1)) && !machine.awaits_delete(&key, uid(2)));
        assert_eq!(run(&mut machine, [Input::WitnessDeleted, progress(20)]), ["follow", "follow"]);
        assert!(machine.is_proven());
    }
}

#[test]
fn a_witness_that_is_gone_without_a_delete_never_was_there() {
    for version in [10, 20] {
        let mut machine = lister();
        run(&mut machine, [saved(true), found(None), Input::WatchOpened]);
        let next = [current(version), progress(version)].map(|input| short(&machine.step(input)));
        assert!(next.contains(&"list()".to_owned()), "{next:?}");
        assert!(!machine.is_proven() && machine.compare() == Compare::Content);
    }
}

#[test]
fn an_empty_collection_has_no_witness() {
    let empty = RestoredState { version: 10.into(), witness: None, is_recent: true, now: Instant::now() };
    let mut machine = lister();
    assert_eq!(run(&mut machine, [Input::Restored(empty)]), ["watch(10)"]);
    assert!(machine.proof_due().is_some());
}

#[test]
fn an_old_state_is_listed_and_compared_by_content() {
    let mut machine = lister();
    assert_eq!(run(&mut machine, [saved(false)]), ["list()"]);
    assert_eq!(machine.compare(), Compare::Content);
    assert_eq!(run(&mut machine, [page(20, None), Input::Committed]), ["commit 20", "watch(20)"]);
    assert!(machine.is_proven() && machine.compare() == Compare::Version);
    let mut machine = super::machine();
    assert_eq!(run(&mut machine, [saved(false)]), ["stream()"]);
}

#[test]
fn an_expired_version_is_listed_and_compared_by_content() {
    let mut machine = resumed();
    let expired = [Input::WatchOpened, current(20), fail(Class::Expired), Input::Waited];
    assert_eq!(run(&mut machine, expired)[2..], ["wait", "list()"]);
    assert_eq!(machine.compare(), Compare::Content);
}

#[test]
fn no_proof_in_time_is_a_list() {
    let mut machine = resumed();
    run(&mut machine, [Input::WatchOpened, current(20)]);
    assert!(machine.proof_due().unwrap() > Instant::now());
    assert_eq!(run(&mut machine, [Input::ProofDue]), ["list()"]);
    run(&mut machine, [page(20, None), Input::Committed, Input::WatchOpened]);
    assert_eq!(
        (run(&mut machine, [Input::ProofDue]), machine.proof_due()),
        (vec!["follow".to_owned()], None)
    );
}

/// A cache of the server that lags may be at the saved version.
#[test]
fn a_silent_watch_is_not_probed_before_there_is_proof() {
    let mut machine = resumed();
    let silent = [Input::WatchOpened, current(20), Input::Quiet];
    assert_eq!(run(&mut machine, silent), ["probe()", "follow", "follow"]);
    assert!(!machine.is_proven());
    run(&mut machine, [progress(20)]);
    assert_eq!(run(&mut machine, [Input::Quiet]), ["probe(20)"]);
}

#[test]
fn a_server_that_is_down_is_asked_for_the_witness_again() {
    let mut machine = lister();
    run(&mut machine, [saved(true)]);
    for _ in 0..10 {
        assert_eq!(run(&mut machine, [fail(Class::Busy), Input::Waited]), ["wait", "get ns/a"]);
    }
    assert_eq!(machine.proof_due(), None, "the time counts from the first response");
}

#[test]
fn a_witness_that_cannot_be_read_is_replaced_by_a_list() {
    for class in [Class::Denied, Class::Absent, Class::Invalid, Class::Server, Class::Panicked] {
        let mut machine = lister();
        assert_eq!(run(&mut machine, [saved(true), fail(class)]), ["get ns/a", "list()"], "{class:?}");
    }
    let mut machine = lister();
    run(&mut machine, [saved(true)]);
    let tries = (0..3).flat_map(|_| run(&mut machine, [fail(Class::Transport), Input::Waited]));
    assert_eq!(tries.collect::<Vec<_>>()[4..], ["list()", "list()"], "only requests of one object fail");
}

#[test]
fn a_rewound_event_ends_the_attempt() {
    let mut machine = resumed();
    run(&mut machine, [Input::WatchOpened, current(20)]);
    assert_eq!(run(&mut machine, [Input::Rewound { now: Instant::now() }]), ["list()"]);
    assert_eq!(machine.compare(), Compare::Content);
}
