use super::*;
use crate::{
    Kind,
    json::tests::{any_damage, any_value, damaged},
};
use proptest::prelude::*;
use serde_json::json;

fn splitter(limits: Limits) -> JsonSplitter {
    JsonSplitter::new(Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods"))), limits)
}

/// The events of a body as lines of text, and its error.
fn split(chunks: &[&[u8]], limits: Limits) -> (Vec<String>, Option<BodyError>) {
    let (mut watch, mut events) = (splitter(limits), Vec::new());
    for chunk in chunks {
        watch.feed(Bytes::copy_from_slice(chunk));
        loop {
            match watch.next_event() {
                Ok(Some(event)) => events.push(line(&event)),
                Ok(None) => break,
                Err(error) => return (events, Some(error)),
            }
        }
    }
    match watch.finish() {
        Ok(last) => events.extend(last.as_ref().map(line)),
        Err(error) => return (events, Some(error)),
    }
    (events, None)
}

fn line(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Malformed(malformed) => format!("{malformed} {:?}", malformed.resource_version),
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            format!("{event:?} {}", String::from_utf8_lossy(&object.json().unwrap()))
        }
        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => format!("{event:?}"),
    }
}

fn events(body: &str) -> Vec<String> {
    let (events, error) = split(&[body.as_bytes()], Limits::default());
    assert_eq!(error, None);
    events
}

const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"3"}}"#;

#[test]
fn every_type_of_event() {
    let body = format!(
        "{{\"type\":\"ADDED\",\"object\":{POD}}}\n{{\"object\":{POD},\"type\":\"MODIFIED\"}}\r\n\n  \n\
         {{ \"x\" : [1], \"ty\\u0070e\" : \"DELETED\" , \"object\" : {POD} }}\n\
         {{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"Pod\",\"metadata\":{{\"resourceVersion\":\"9\"}}}}}}\n\
         {{\"type\":\"ERROR\",\"object\":{{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"m\"}}}}\n"
    );
    let events = events(&body);
    let starts =
        ["Added(Pod a@3)", "Modified(Pod a@3)", "Deleted(Pod a@3)", "Bookmark(", "Error(Status { code: 410"];
    assert_eq!(events.len(), starts.len(), "{events:#?}");
    for (event, start) in events.iter().zip(starts) {
        assert!(event.starts_with(start), "{event}");
    }
}

#[test]
fn one_bad_line_does_not_hide_another() {
    let limits = Limits { object_bytes: 200, depth: 6, labels: 2 };
    let object = |name: &str, rest: &str| {
        format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"7"}},"spec":{rest}}}"#)
    };
    let added = |object: &str| format!("{{\"type\":\"ADDED\",\"object\":{object}}}");
    let lines = [
        (added(&object("a", "1")), "Added(Pod a@7)", ""),
        (added(&object("b", &format!("\"{}\"", "x".repeat(250)))), "larger than 200 bytes", "Some(7)"),
        (added(&object("b", &format!("\"{}\"", "x".repeat(9000)))), "larger than 200 bytes", "Some(7)"),
        (added(&object("b", &format!("{}{}", "[".repeat(9), "]".repeat(9)))), "less nesting", "Some(7)"),
        (added(&object("b", "nonsense")), "not a JSON object", "Some(7)"),
        (added(&object("", "1")), "no name", "Some(7)"),
        (added("null"), "not a JSON object", "None"),
        (added("7"), "not a JSON object", "None"),
        (format!("{{\"type\":\"RENAMED\",\"object\":{POD}}}"), "unknown type", "Some(3)"),
        (format!("{{\"type\":7,\"object\":{POD}}}"), "unknown type", "Some(3)"),
        (format!("{{\"object\":{POD}}}"), "without a type", "Some(3)"),
        ("{\"type\":\"ADDED\"}".into(), "without an object", "None"),
        (format!("{{\"type\":\"ADDED\",\"object\":{POD}"), "not an event", "Some(3)"),
        (format!("{{\"type\":\"ADDED\",\"object\":{POD}}}}}"), "not an event", "Some(3)"),
        ("<html>".into(), "not an event", "None"),
        ("{\"type\":\"BOOKMARK\",\"object\":{}}".into(), "a bookmark without", "None"),
        (added(&object("z", "1")), "Added(Pod z@7)", ""),
    ];
    let body: String = lines.iter().map(|(line, ..)| format!("{line}\n")).collect();
    let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    for chunks in [vec![body.as_bytes()], single] {
        let (events, error) = split(&chunks, limits);
        assert_eq!((events.len(), error), (lines.len(), None), "{events:#?}");
        for (event, (_, text, version)) in events.iter().zip(&lines) {
            assert!(event.contains(text) && event.contains(version), "{event}: {text} {version}");
        }
    }
}

/// A line of as many bytes as are allowed is an event, one byte more is too long, wherever a chunk ends.
#[test]
fn the_longest_line() {
    let limits = Limits { object_bytes: 200, ..Limits::default() };
    let event = format!("{{\"type\":\"ADDED\",\"object\":{POD}}}");
    let line = |length: usize| format!("{event:length$}\n");
    let longest = splitter(limits).bound();
    for (length, expected) in [(longest, "Added(Pod a@3)"), (longest + 1, "larger than 200 bytes")] {
        let body = line(length);
        for cut in [0, 1, longest - 1, longest, length, length + 1] {
            let (first, second) = body.as_bytes().split_at(cut);
            let (events, error) = split(&[first, second], limits);
            assert_eq!((events.len(), error), (1, None), "{length} cut at {cut}: {events:?}");
            assert!(events[0].contains(expected), "{length} cut at {cut}: {events:?}");
        }
    }
}

/// The limit on nesting counts the levels of the object, whatever surrounds it.
#[test]
fn the_deepest_object_is_the_same_everywhere() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"metadata":{{"name":"a","resourceVersion":"7"}},"x":{open}{close}}}"#)
    };
    for (limit, deepest) in [(Limits::default().depth, 127), (usize::MAX, 127), (9, 9)] {
        let limits = Limits::default().depth(limit);
        for (levels, accepted) in [(deepest, true), (deepest + 1, false)] {
            let object = nested(levels);
            let usual = format!("{{\"type\":\"ADDED\",\"object\":{object}}}");
            let unusual = format!("{{\"object\":{object},\"type\":\"ADDED\"}}");
            let newline = |line: &str| format!("{line}\n");
            for body in [newline(&usual), newline(&unusual), usual, unusual] {
                let (events, _) = split(&[body.as_bytes()], limits);
                assert_eq!(events.len(), 1, "{levels} levels");
                assert_eq!(events[0].starts_with("Added"), accepted, "{levels} levels: {}", events[0]);
            }
            let origin = Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")));
            let parsed = Object::parse(&origin, object.into(), &limits);
            assert_eq!(parsed.is_ok(), accepted, "{levels} levels");
            if let Ok(object) = parsed {
                object.decode().expect("an accepted object can be decoded");
            }
        }
    }
}

#[test]
fn an_error_must_say_which() {
    for object in ["null", "7", "{}", POD, r#"{"kind":"Status","code":0}"#, r#"{"kind":"Status"}"#] {
        let body =
            format!("{{\"type\":\"ERROR\",\"object\":{object}}}\n{{\"type\":\"ADDED\",\"object\":{POD}}}\n");
        let (events, error) = split(&[body.as_bytes()], Limits::default());
        assert_eq!((events, error), (vec![], Some(BodyError::ErrorWithoutStatus)), "{object}");
    }
}

#[test]
fn a_line_that_is_cut_off_is_never_delivered() {
    let body = format!("{{\"type\":\"ADDED\",\"object\":{POD}}}");
    for length in 0..body.len() {
        assert_eq!(events(&body[..length]), [""; 0], "{}", &body[..length]);
    }
    assert_eq!(events(&body).len(), 1);
}

#[test]
fn an_object_inside_a_chunk_is_not_copied() {
    let body = Bytes::from(format!("{{\"type\":\"ADDED\",\"object\":{POD}}}\n"));
    let mut watch = splitter(Limits::default());
    watch.feed(body.clone());
    let Ok(Some(WatchEvent::Added(object))) = watch.next_event() else { panic!("no event") };
    assert_eq!(object.json().unwrap().as_ptr(), body[25..].as_ptr());
}

#[test]
fn a_line_that_never_ends_is_not_kept() {
    let mut watch = splitter(Limits { object_bytes: 1 << 16, ..Limits::default() });
    let mut malformed = 0;
    for _ in 0..64 {
        watch.feed(Bytes::from(vec![b'x'; 1 << 15]));
        while watch.next_event().unwrap().is_some() {
            malformed += 1;
        }
    }
    assert_eq!((malformed, watch.line.capacity()), (1, 0));
    watch.feed(Bytes::from(format!("x\n{{\"type\":\"ADDED\",\"object\":{POD}}}\n")));
    assert!(matches!(watch.next_event(), Ok(Some(WatchEvent::Added(_)))));
}

#[test]
fn debug_shows_nothing_of_the_body() {
    let mut watch = splitter(Limits::default());
    watch.feed(Bytes::from_static(b"{\"type\":\"hunter2"));
    assert!(watch.next_event().unwrap().is_none());
    assert!(!format!("{watch:?}").contains("hunter2"));
}

fn any_stream() -> impl Strategy<Value = String> {
    let kind = prop_oneof!["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "STRANGE"];
    let object = prop_oneof![
        3 => any_value().prop_map(|spec| json!({"metadata": {"name": "a", "resourceVersion": "7"}, "spec": spec})),
        1 => any_value(),
    ];
    let line = (kind, object, any::<bool>()).prop_map(|(kind, object, turned)| match turned {
        true => format!("{{\"object\":{object},\"type\":\"{kind}\"}}\n"),
        false => format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n"),
    });
    prop::collection::vec(line, 0..5).prop_map(|lines| lines.concat())
}

proptest! {
    #[test]
    fn cutting_the_body_changes_nothing(
        body in any_stream(),
        damage in any_damage(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let body = damaged(&body, &damage);
        let limits = Limits { object_bytes: 300, depth: 6, ..Limits::default() };
        let expected = split(&[&body], limits);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
        cuts.extend([0, body.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect();
        prop_assert_eq!(split(&pieces, limits), expected.clone());
        let single: Vec<&[u8]> = body.chunks(1).collect();
        prop_assert_eq!(split(&single, limits), expected);
    }

    #[test]
    fn every_valid_line_is_one_event(body in any_stream()) {
        let (events, error) = split(&[body.as_bytes()], Limits::default());
        prop_assert_eq!((events.len(), error), (body.lines().count(), None));
    }

    #[test]
    fn no_bytes_make_it_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6)) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let _ = split(&chunks, Limits::default());
    }
}
