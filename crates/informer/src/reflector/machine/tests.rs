mod history;
mod resume;

use super::*;
use kube_informer_wire::{ListWatchError, Status, VersionMatch};

fn machine_with(settings: Settings) -> Machine {
    Machine::new(settings, fastrand::Rng::with_seed(7))
}

/// One that streams.
fn machine() -> Machine {
    machine_with(Settings::default())
}

/// One that lists.
fn lister() -> Machine {
    machine_with(Settings { streaming: false, ..Settings::default() })
}

fn fail(class: Class) -> Input {
    Input::Failed(Failure { class, retry_after: None })
}

fn ended(lasted: Duration, delivered: Delivered) -> Input {
    Input::WatchEnded { lasted, delivered }
}

/// The watch reached a version.
fn progress(version: impl Into<ResourceVersion>) -> Input {
    Input::Progress(Some(version.into()))
}

fn page(version: u64, token: Option<&str>) -> Input {
    Input::Page { version: Some(version.into()), continue_token: token.map(str::to_owned) }
}

/// A command in short: what is asked for, at which version.
fn short(command: &Command) -> String {
    let version = |version: &Option<String>| version.clone().unwrap_or_default();
    match command {
        Command::StreamList(options) => format!("stream({})", version(&options.resource_version)),
        Command::List(options) | Command::ListPage(options) => {
            let limit = options.limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
            let token =
                options.continue_token.as_ref().map(|token| format!(" at {token}")).unwrap_or_default();
            format!("list({}){limit}{token}", version(&options.resource_version))
        }
        Command::Commit(at) => format!("commit {at}"),
        Command::Watch(options) => format!("watch({})", version(&options.resource_version)),
        Command::Follow => "follow".into(),
        Command::Probe(options) => format!("probe({})", version(&options.resource_version)),
        Command::Verify(key) => format!("get {key}"),
        Command::Wait(_) => "wait".into(),
    }
}

fn run(machine: &mut Machine, inputs: impl IntoIterator<Item = Input>) -> Vec<String> {
    inputs.into_iter().map(|input| short(&machine.step(input))).collect()
}

/// Has its first list at version 10 and watches.
fn watching() -> Machine {
    let mut machine = lister();
    run(&mut machine, [Input::Start, page(10, None), Input::Committed]);
    machine
}

/// The same with streaming lists.
fn following() -> Machine {
    let mut machine = machine();
    run(&mut machine, [Input::Start, Input::StreamListed(10.into()), Input::Committed]);
    machine
}

fn wait_of(command: &Command) -> f64 {
    match command {
        Command::Wait(delay) => delay.as_secs_f64(),
        other => panic!("not a wait: {other:?}"),
    }
}

#[test]
fn the_initial_list_is_a_streaming_list_of_the_most_recent_state() {
    let mut machine = machine();
    let Command::StreamList(options) = machine.step(Input::Start) else { panic!("not a stream") };
    assert_eq!(options.resource_version, None);
    assert_eq!(options.version_match, Some(VersionMatch::NotOlderThan));
    assert_eq!((options.send_initial_events, options.allow_bookmarks), (Some(true), true));
    let rest = run(&mut machine, [Input::StreamListed(10.into()), Input::Committed]);
    assert_eq!(rest, ["commit 10", "follow"], "no list, no second watch");
}

#[test]
fn the_initial_paged_list_accepts_any_state() {
    let mut machine = lister();
    let Command::List(options) = machine.step(Input::Start) else { panic!("not a list") };
    let expected = ListOptions::new().resource_version("0".to_owned()).limit(500);
    assert_eq!(options, expected);
    machine.step(page(10, None));
    let Command::Watch(options) = machine.step(Input::Committed) else { panic!("not a watch") };
    assert_eq!(options.resource_version.as_deref(), Some("10"));
    assert_eq!(
        (options.version_match, options.send_initial_events, options.allow_bookmarks),
        (None, None, true)
    );
}

#[test]
fn a_relist_asks_for_nothing_older_than_the_known_version() {
    assert_eq!(run(&mut watching(), [fail(Class::Expired), Input::Waited]), ["wait", "list(10)"]);
    assert_eq!(run(&mut following(), [fail(Class::Expired), Input::Waited]), ["wait", "stream(10)"]);
}

#[test]
fn a_list_that_the_server_cannot_serve_is_retried_once_at_the_most_recent_state() {
    for class in [Class::Expired, Class::TooLarge] {
        let mut machine = watching();
        let relist = run(&mut machine, [fail(Class::Expired), Input::Waited, fail(class)]);
        assert_eq!(relist, ["wait", "list(10)", "list()"], "at once, and whatever is newest");
        assert_eq!(run(&mut machine, [fail(class), Input::Waited]), ["wait", "list()"], "and then calmly");
        run(&mut machine, [page(20, None), Input::Committed]);
        assert_eq!(
            run(&mut machine, [fail(Class::Expired), Input::Waited]),
            ["wait", "list(20)"],
            "forgotten"
        );
    }
}

#[test]
fn a_streaming_list_that_the_server_cannot_serve_is_retried_once_at_the_most_recent_state() {
    for class in [Class::Expired, Class::TooLarge] {
        let mut machine = following();
        let relist = run(&mut machine, [fail(Class::Expired), Input::Waited, fail(class), fail(class)]);
        assert_eq!(relist, ["wait", "stream(10)", "stream()", "list()"]);
    }
}

#[test]
fn a_watch_from_the_future_asks_for_the_newest_state() {
    assert_eq!(run(&mut watching(), [fail(Class::TooLarge), Input::Waited]), ["wait", "list()"]);
}

#[test]
fn pages_follow_the_token_without_a_version() {
    let mut machine = lister();
    let pages = run(&mut machine, [Input::Start, page(10, Some("p2")), page(12, Some("p3")), page(13, None)]);
    assert_eq!(pages, ["list(0) limit 500", "list() limit 500 at p2", "list() limit 500 at p3", "commit 10"]);
}

#[test]
fn an_empty_token_ends_the_pages() {
    let mut machine = lister();
    assert_eq!(run(&mut machine, [Input::Start, page(10, Some(""))])[1], "commit 10");
}

#[test]
fn a_paged_relist_may_be_newer_than_the_known_version() {
    let paged = || machine_with(Settings { streaming: false, page_size: Some(5), ..Settings::default() });
    let asked = |machine: &mut Machine, input| match machine.step(input) {
        Command::List(options) | Command::ListPage(options) => {
            (options.resource_version, options.version_match)
        }
        other => panic!("{other:?}"),
    };
    let mut machine = paged();
    assert_eq!(asked(&mut machine, Input::Start), (Some("0".to_owned()), None), "any version has no match");
    run(&mut machine, [page(10, None), Input::Committed, fail(Class::Expired)]);
    let newer = (Some("10".to_owned()), Some(VersionMatch::NotOlderThan));
    assert_eq!(asked(&mut machine, Input::Waited), newer, "else a limit would mean exactly 10");
    assert_eq!(asked(&mut machine, page(21, Some("p2"))), (None, None), "a token has its own version");
    let mut machine = paged();
    run(&mut machine, [Input::Start, page(10, None), Input::Committed, fail(Class::Expired), Input::Waited]);
    assert_eq!(asked(&mut machine, fail(Class::TooLarge)), (None, None), "no match without a version");
}

#[test]
fn pages_that_expire_are_replaced_by_one_whole_list() {
    let mut machine = machine_with(Settings { streaming: false, page_size: Some(5), ..Settings::default() });
    run(&mut machine, [Input::Start, page(10, None), Input::Committed, fail(Class::Expired)]);
    let relist =
        run(&mut machine, [Input::Waited, page(20, Some("p2")), fail(Class::Expired), page(21, None)]);
    assert_eq!(relist, ["list(10) limit 5", "list() limit 5 at p2", "list(10)", "commit 21"]);
}

#[test]
fn other_failures_of_a_page_are_waited_out() {
    let mut machine = lister();
    let failed = run(&mut machine, [Input::Start, page(10, Some("p2")), fail(Class::Server), Input::Waited]);
    assert_eq!(failed[2..], ["wait", "list(0) limit 500"]);
}

#[test]
fn pages_are_for_servers_without_a_cache() {
    let mut machine = watching();
    run(&mut machine, [fail(Class::Expired)]);
    assert_eq!(run(&mut machine, [Input::Waited]), ["list(10)"], "a relist from a cache has no pages");
    let mut machine = lister();
    run(&mut machine, [Input::Start, page(10, Some("p2")), page(10, None), Input::Committed]);
    let relist = run(&mut machine, [fail(Class::Expired), Input::Waited]);
    assert_eq!(relist, ["wait", "list(10) limit 500"], "a cache would not have paged");
    let mut machine = machine_with(Settings { streaming: false, page_size: Some(7), ..Settings::default() });
    assert_eq!(run(&mut machine, [Input::Start]), ["list(0) limit 7"]);
}

#[test]
fn a_list_without_a_version_is_watched_and_then_listed_again() {
    let mut machine = lister();
    run(&mut machine, [Input::Start]);
    let unset = Input::Page { version: None, continue_token: None };
    assert_eq!(run(&mut machine, [unset, Input::Committed]), ["commit ", "watch()"]);
    let ended = ended(Duration::from_secs(300), Delivered::Events);
    assert_eq!(run(&mut machine, [ended, Input::Waited]), ["wait", "list(0) limit 500"]);
    run(&mut machine, [Input::Page { version: None, continue_token: None }, Input::Committed]);
    assert_eq!(run(&mut machine, [fail(Class::Transport), Input::Waited]), ["wait", "list(0) limit 500"]);
}

#[test]
fn a_watch_that_ends_is_opened_again_where_it_was() {
    let mut machine = watching();
    let long = ended(Duration::from_secs(300), Delivered::Nothing);
    assert_eq!(run(&mut machine, [long]), ["watch(10)"], "at once, without a list");
    let short = ended(Duration::ZERO, Delivered::Events);
    assert_eq!(run(&mut machine, [Input::WatchOpened, progress(15), short])[2], "watch(15)");
}

#[test]
fn very_short_watches_back_off_and_then_relist() {
    let mut machine = watching();
    let short_watch = || ended(Duration::from_millis(999), Delivered::Nothing);
    let tries = [short_watch(), Input::Waited, short_watch(), Input::Waited, short_watch(), Input::Waited];
    assert_eq!(run(&mut machine, tries), ["wait", "watch(10)", "wait", "watch(10)", "wait", "list(10)"]);
}

#[test]
fn a_busy_server_or_a_broken_connection_needs_no_list() {
    for class in [Class::Busy, Class::Transport] {
        let mut machine = watching();
        for _ in 0..50 {
            assert_eq!(run(&mut machine, [fail(class), Input::Waited]), ["wait", "watch(10)"]);
        }
    }
}

#[test]
fn every_third_server_error_of_a_watch_relists() {
    let mut machine = watching();
    let asked: Vec<_> =
        (0..3).flat_map(|_| run(&mut machine, [fail(Class::Server), Input::Waited])).collect();
    assert_eq!(asked, ["wait", "watch(10)", "wait", "watch(10)", "wait", "list(10)"]);
}

#[test]
fn any_other_failure_of_a_watch_relists() {
    use Class::*;
    for class in [Expired, Denied, Absent, Invalid, InStream, Protocol] {
        assert_eq!(run(&mut watching(), [fail(class), Input::Waited]), ["wait", "list(10)"], "{class:?}");
    }
}

#[test]
fn denied_and_absent_lists_are_retried() {
    for class in [Class::Denied, Class::Absent, Class::Server, Class::Transport, Class::Busy, Class::Protocol]
    {
        let mut machine = lister();
        let first = run(&mut machine, [Input::Start, fail(class), Input::Waited]);
        assert_eq!(first, ["list(0) limit 500", "wait", "list(0) limit 500"], "{class:?}");
        assert_eq!(run(&mut machine, [page(10, None), Input::Committed]), ["commit 10", "watch(10)"]);
    }
}

#[test]
fn a_streaming_list_that_is_rejected_is_never_retried() {
    let mut machine = machine();
    assert_eq!(run(&mut machine, [Input::Start, fail(Class::Invalid)]), ["stream()", "list(0) limit 500"]);
    run(&mut machine, [page(10, None), Input::Committed]);
    assert_eq!(run(&mut machine, [fail(Class::Expired), Input::Waited]), ["wait", "list(10)"]);
}

#[test]
fn a_streaming_list_that_stalls_is_never_retried() {
    let mut machine = machine();
    assert_eq!(run(&mut machine, [Input::Start, Input::StreamStalled])[1], "list(0) limit 500");
    run(&mut machine, [page(10, None), Input::Committed]);
    assert_eq!(run(&mut machine, [fail(Class::Expired), Input::Waited])[1], "list(10)");
}

#[test]
fn other_failures_of_a_streaming_list_are_tried_as_list_in_the_same_cycle() {
    for class in [Class::Denied, Class::Absent, Class::Server, Class::InStream, Class::Protocol] {
        let mut machine = machine();
        assert_eq!(run(&mut machine, [Input::Start, fail(class)])[1], "list(0) limit 500", "{class:?}");
        let next = run(&mut machine, [fail(class), Input::Waited]);
        assert_eq!(next, ["wait", "stream()"], "{class:?}: not remembered");
    }
}

#[test]
fn a_busy_server_gets_the_same_streaming_list_again() {
    let mut machine = machine();
    run(&mut machine, [Input::Start]);
    for _ in 0..10 {
        assert_eq!(run(&mut machine, [fail(Class::Busy), Input::Waited]), ["wait", "stream()"]);
    }
}

#[test]
fn a_streaming_list_that_keeps_breaking_off_gives_way_to_a_list() {
    let mut machine = machine();
    run(&mut machine, [Input::Start]);
    let tries: Vec<_> =
        (0..3).flat_map(|_| run(&mut machine, [fail(Class::Transport), Input::Waited])).collect();
    assert_eq!(tries, ["wait", "stream()", "wait", "stream()", "wait", "list(0) limit 500"]);
}

#[test]
fn waits_grow_from_failure_to_failure() {
    let mut machine = watching();
    for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
        let wait = wait_of(&machine.step(fail(Class::Busy)));
        assert!((base..2.0 * base).contains(&wait), "{base}: {wait}");
        machine.step(Input::Waited);
    }
}

#[test]
fn progress_rewinds_the_waits() {
    let ten = Duration::from_secs(10);
    let failed =
        |lasted| Input::WatchFailed { failure: Failure { class: Class::Busy, retry_after: None }, lasted };
    let successes = [
        vec![progress(11), failed(Duration::ZERO)],
        vec![failed(ten)],
        vec![ended(ten, Delivered::Nothing), failed(Duration::ZERO)],
    ];
    for success in successes {
        let mut machine = watching();
        for _ in 0..6 {
            run(&mut machine, [fail(Class::Busy), Input::Waited]);
        }
        let commands: Vec<_> = success.into_iter().map(|input| machine.step(input)).collect();
        let wait = wait_of(commands.last().unwrap());
        assert!(wait < 1.6, "{wait}");
    }
}

#[test]
fn a_list_alone_rewinds_nothing() {
    let mut machine = watching();
    for _ in 0..6 {
        run(&mut machine, [fail(Class::Denied), Input::Waited, page(10, None), Input::Committed]);
    }
    let wait = wait_of(&machine.step(fail(Class::Denied)));
    assert!(wait >= 30.0, "a watch that always fails is not worth a list a second: {wait}");
}

/// A 410 is the response of a server that works.
#[test]
fn the_first_watch_that_expires_is_not_delayed_by_the_failures_before() {
    let mut machine = watching();
    for _ in 0..6 {
        run(&mut machine, [fail(Class::Transport), Input::Waited]);
    }
    let expired = |machine: &mut Machine| {
        let wait = wait_of(&machine.step(fail(Class::Expired)));
        run(machine, [Input::Waited, page(10, None), Input::Committed]);
        wait
    };
    for base in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0] {
        let wait = expired(&mut machine);
        assert!((base..2.0 * base).contains(&wait), "{base}: {wait}");
    }
    run(&mut machine, [fail(Class::Transport), Input::Waited]);
    assert!(expired(&mut machine) >= 30.0, "the watch has delivered nothing since it expired");
    run(&mut machine, [Input::WatchOpened, progress(11), fail(Class::Transport), Input::Waited]);
    assert!(expired(&mut machine) < 1.6, "it has");
}

#[test]
fn retry_after_is_a_lower_bound() {
    let mut machine = watching();
    let failure = Failure { class: Class::Busy, retry_after: Some(Duration::from_secs(90)) };
    let wait = wait_of(&machine.step(Input::Failed(failure)));
    assert!((90.0..99.0).contains(&wait), "{wait}");
}

#[test]
fn many_informers_do_not_come_back_at_once() {
    let waits: std::collections::BTreeSet<u64> = (0..100)
        .map(|seed| {
            let mut machine = Machine::new(Settings::default(), fastrand::Rng::with_seed(seed));
            machine.step(Input::Start);
            (wait_of(&machine.step(fail(Class::Busy))) * 1000.0) as u64
        })
        .collect();
    assert!(waits.len() > 90, "{waits:?}");
    assert!(waits.last().unwrap() - waits.first().unwrap() > 600);
}

#[test]
fn watch_timeouts_are_random_between_the_minimum_and_twice_that() {
    let timeouts = |min: u64| {
        let min_watch = Duration::from_secs(min);
        let mut machine = machine_with(Settings { streaming: false, min_watch, ..Settings::default() });
        run(&mut machine, [Input::Start, page(10, None)]);
        let mut command = machine.step(Input::Committed);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            let Command::Watch(options) = &command else { panic!("not a watch") };
            seen.insert(options.timeout.unwrap().as_secs());
            command = machine.step(ended(Duration::from_secs(300), Delivered::Events));
        }
        (*seen.first().unwrap(), *seen.last().unwrap(), seen.len())
    };
    for min in [300, 1800] {
        let (first, last, distinct) = timeouts(min);
        assert!(first >= min && first < min + min / 4, "{first}");
        assert!(last <= 2 * min && last > 2 * min - min / 4, "{last}");
        assert!(distinct > 100);
    }
}

#[test]
fn a_failure_where_none_belongs_is_waited_out() {
    let mut machine = lister();
    run(&mut machine, [Input::Start, page(10, None)]);
    assert_eq!(run(&mut machine, [fail(Class::Protocol), Input::Waited]), ["wait", "list(0) limit 500"]);
}

#[test]
fn failures_are_classified() {
    let api = |code, reason: &str| {
        Failure::of(&ListWatchError::api(Status::failure(code, reason, "no"), "/")).class
    };
    assert_eq!(api(410, "Expired"), Class::Expired);
    assert_eq!(api(410, "Gone"), Class::Expired);
    assert_eq!(api(429, "TooManyRequests"), Class::Busy);
    assert_eq!([api(401, "Unauthorized"), api(403, "Forbidden")], [Class::Denied; 2]);
    assert_eq!(api(404, "NotFound"), Class::Absent);
    assert_eq!([api(400, "BadRequest"), api(422, "Invalid")], [Class::Invalid; 2]);
    assert_eq!([api(500, "InternalError"), api(503, "ServiceUnavailable")], [Class::Server; 2]);
    let url = || "/".into();
    let refused =
        |refused| Failure::of(&ListWatchError::Connect { refused, message: "no".into(), url: url() }).class;
    assert_eq!((refused(true), refused(false)), (Class::Busy, Class::Transport));
    let html = ListWatchError::NotJson { content_type: "text/html".into(), url: url() };
    assert_eq!(Failure::of(&html).class, Class::Protocol);
    let in_stream = |code, reason: &str| Failure::in_stream(&Status::failure(code, reason, "no")).class;
    assert_eq!(in_stream(410, "Expired"), Class::Expired);
    assert_eq!(in_stream(429, "TooManyRequests"), Class::Busy);
    assert_eq!(in_stream(500, "InternalError"), Class::InStream);
}

/// A limit with a version and no more said means exactly that version: after an expired watch the same past would
/// be listed for ever.
#[test]
fn a_paged_relist_takes_any_state_that_is_new_enough() {
    let mut machine = machine_with(Settings { streaming: false, page_size: Some(5), ..Settings::default() });
    machine.step(Input::Start);
    machine.step(Input::Page { version: Some("7".into()), continue_token: None });
    machine.step(Input::Committed);
    machine.step(Input::Failed(Failure { class: Class::Expired, retry_after: None }));
    let Command::List(options) = machine.step(Input::Waited) else { panic!("a list is due") };
    assert_eq!(options.resource_version.as_deref(), Some("7"));
    assert_eq!(options.version_match, Some(VersionMatch::NotOlderThan));
    let gone = Input::Failed(Failure { class: Class::Expired, retry_after: None });
    let Command::List(options) = machine.step(gone) else { panic!("another list is due") };
    assert_eq!((options.resource_version, options.version_match), (None, None), "the newest, whatever it is");
}
