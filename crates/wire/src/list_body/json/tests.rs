use super::*;
use crate::{
    Kind,
    json::tests::{any_damage, any_value, damaged, written},
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn splitter(limits: Limits) -> JsonSplitter {
    JsonSplitter::new(Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods"))), limits)
}

/// The parts of a body as lines, and how it ended.
fn split(chunks: &[&[u8]], limits: Limits) -> (Vec<String>, Result<(), BodyError>) {
    let (mut list, mut parts) = (splitter(limits), Vec::new());
    for chunk in chunks {
        list.feed(Bytes::copy_from_slice(chunk));
        loop {
            match list.next_part() {
                Ok(Some(part)) => parts.push(line(&part)),
                Ok(None) => break,
                Err(error) => return (parts, Err(error)),
            }
        }
    }
    (parts, list.finish())
}

fn line(part: &ListPart) -> String {
    match part {
        ListPart::Meta(meta) => format!("meta {meta:?}"),
        ListPart::Item(item) => {
            format!(
                "{item:?} malformed={} {}",
                item.has_malformed_identity(),
                String::from_utf8_lossy(&item.json().unwrap())
            )
        }
        ListPart::Malformed(malformed) => format!("{malformed} {:?}", malformed.resource_version),
    }
}

fn whole(body: &str) -> (Vec<String>, Result<(), BodyError>) {
    split(&[body.as_bytes()], Limits::default())
}

/// Names of the readable items; panics if the list is not complete.
fn names(body: &str) -> Vec<String> {
    let mut list = splitter(Limits::default());
    list.feed(Bytes::copy_from_slice(body.as_bytes()));
    let mut names = Vec::new();
    while let Some(part) = list.next_part().unwrap() {
        if let ListPart::Item(item) = part {
            names.push(item.name().to_owned());
        }
    }
    list.finish().unwrap();
    names
}

const A: &str = r#"{"metadata":{"name":"a","resourceVersion":"3"}}"#;
const B: &str = r#"{"metadata":{"name":"b"},"spec":{"x":["}","]","\"",{"y":[[]]}]}}"#;

#[test]
fn the_deepest_item() {
    for (levels, accepted) in [(127, true), (128, false)] {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        let body =
            format!(r#"{{"kind":"PodList","items":[{{"metadata":{{"name":"a"}},"x":{open}{close}}}]}}"#);
        assert_eq!(names(&body).len(), usize::from(accepted), "{levels} levels");
        let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
        assert_eq!(split(&single, Limits::default()), whole(&body), "{levels} levels");
    }
}

#[test]
fn fields_may_come_in_any_order() {
    let fields = [
        r#""kind":"PodList""#.to_owned(),
        r#""apiVersion":"v1""#.to_owned(),
        r#""metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":7}"#.to_owned(),
        format!(r#""items":[{A},{B}]"#),
    ];
    let meta =
        ListMeta { resource_version: Some(9.into()), continue_token: Some("c".into()), remaining: Some(7) };
    for rotation in 0..fields.len() {
        let mut order = fields.clone();
        order.rotate_left(rotation);
        let body = format!("{{{}}}", order.join(","));
        assert_eq!(names(&body), ["a", "b"], "{body}");
        let (parts, end) = whole(&body);
        assert!(parts.contains(&format!("meta {meta:?}")) && end.is_ok(), "{parts:?} {end:?}");
    }
}

#[test]
fn spacing_and_escapes_do_not_matter() {
    assert_eq!(
        names(
            "\n { \"kind\" : \"PodList\" ,\r\n\t\"it\\u0065ms\" : [ \n{\"metadata\":{\"name\":\"a\"}} , {\"metadata\":{\"name\":\"b\"}} ] } \n"
        ),
        ["a", "b"]
    );
}

#[test]
fn an_empty_list_has_many_faces() {
    for body in
        [r#"{"items":[]}"#, r#"{"items":null}"#, r#"{"kind":"PodList"}"#, r#"{"items":[ ],"metadata":null}"#]
    {
        assert_eq!(names(body), [""; 0], "{body}");
    }
}

#[test]
fn unknown_fields_are_skipped() {
    let body =
        format!(r#"{{"x":{{"items":[{B}]}},"y":[1,"items"],"z":-1.5e3,"t":true,"items":[{A}],"n":null}}"#);
    assert_eq!(names(&body), ["a"]);
}

#[test]
fn a_body_that_is_not_a_list_is_named() {
    for (body, error) in [
        (r#"{"kind":"Table","rows":[]}"#, BodyError::Table),
        (r#"{"items":[],"kind":"Table"}"#, BodyError::Table),
        (r#"{"kind":"Status","code":500}"#, BodyError::Status),
        (r#"{"kind":"Pod","metadata":{"name":"a"}}"#, BodyError::NotAList { kind: "Pod".into() }),
        ("{}", BodyError::NotAList { kind: String::new() }),
        ("[]", BodyError::Syntax { at: 0, expected: "an object" }),
        ("<html>", BodyError::Syntax { at: 0, expected: "an object" }),
        (r#"{"items":{}}"#, BodyError::Syntax { at: 11, expected: "items to be an array" }),
        (r#"{"items":7}"#, BodyError::Syntax { at: 10, expected: "items to be an array" }),
        (r#"{"items":[],"items":[]}"#, BodyError::Syntax { at: 20, expected: "items only once" }),
        (r#"{"items":[]} x"#, BodyError::Syntax { at: 13, expected: "nothing after the list" }),
        (r#"{"items":[{},]}"#, BodyError::Syntax { at: 13, expected: "a value" }),
        (r#"{"items":[{}{}]}"#, BodyError::Syntax { at: 12, expected: "a comma or the closing bracket" }),
        (r#"{"items":[],}"#, BodyError::Syntax { at: 12, expected: "a key" }),
    ] {
        assert_eq!(whole(body).1, Err(error), "{body}");
    }
}

#[test]
fn a_body_that_ends_early_is_an_error_at_every_length() {
    let body = format!(r#"{{"kind":"PodList","metadata":{{"resourceVersion":"9"}},"items":[{A},{B}]}}"#);
    for length in 0..body.len() {
        assert_eq!(
            whole(&body[..length]).1,
            Err(BodyError::Truncated { bytes: length }),
            "{}",
            &body[..length]
        );
    }
    assert_eq!(whole(&body).1, Ok(()));
}

#[test]
fn one_bad_item_does_not_hide_another() {
    let limits = Limits { object_bytes: 200, depth: 6, labels: 2 };
    let large =
        format!(r#"{{"metadata":{{"name":"l","resourceVersion":"7"}},"data":"{}"}}"#, "x".repeat(300));
    let deep = format!(
        r#"{{"metadata":{{"name":"d","resourceVersion":"8"}},"x":{}{}}}"#,
        "[".repeat(9),
        "]".repeat(9)
    );
    let labels = r#"{"metadata":{"name":"n","resourceVersion":"9","labels":{"a":"","b":"","c":"","d":""}}}"#;
    let broken = r#"{"metadata":{"name":"x","resourceVersion":"10"},"spec":nonsense}"#;
    let nameless = r#"{"metadata":{"resourceVersion":"11"}}"#;
    let body = format!(r#"{{"items":[{A},{large},{deep},{labels},{broken},{nameless},null,7,"x",[1],{B}]}}"#);
    let expected = [
        ("Pod a@3", ""),
        ("larger than 200 bytes", "Some(7)"),
        ("nested deeper than 6 levels", "Some(8)"),
        ("too many labels", "Some(9)"),
        ("not a JSON object", "Some(10)"),
        ("no name", "Some(11)"),
        ("not a JSON object", "None"),
        ("not a JSON object", "None"),
        ("not a JSON object", "None"),
        ("not a JSON object", "None"),
        ("Pod b@", ""),
    ];
    let single: Vec<&[u8]> = body.as_bytes().chunks(1).collect();
    for chunks in [vec![body.as_bytes()], single] {
        let (parts, end) = split(&chunks, limits);
        assert_eq!(end, Ok(()));
        assert_eq!(parts.len(), expected.len(), "{parts:#?}");
        for (part, (text, version)) in parts.iter().zip(expected) {
            assert!(part.contains(text) && part.contains(version), "{part}: {text} {version}");
        }
    }
}

#[test]
fn an_item_inside_a_chunk_is_not_copied() {
    let item = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}"#;
    let body = Bytes::from(format!(r#"{{"items":[{item}]}}"#));
    let mut list = splitter(Limits::default());
    list.feed(body.clone());
    let Ok(Some(ListPart::Item(object))) = list.next_part() else { panic!("no item") };
    let content = object.json().unwrap();
    assert_eq!(content.as_ptr(), body[10..].as_ptr());
}

#[test]
fn metadata_of_other_types_counts_as_absent() {
    for meta in
        ["null", "7", r#""x""#, "[]", r#"{"resourceVersion":7,"continue":{},"remainingItemCount":-1}"#]
    {
        let (parts, end) = whole(&format!(r#"{{"metadata":{meta},"items":[]}}"#));
        assert_eq!((parts, end), (vec![format!("meta {:?}", ListMeta::default())], Ok(())), "{meta}");
    }
}

#[test]
fn an_oversized_item_is_not_kept() {
    let mut list = splitter(Limits { object_bytes: 1 << 20, ..Limits::default() });
    list.feed(Bytes::from_static(br#"{"items":[{"data":""#));
    for _ in 0..64 {
        assert!(list.next_part().unwrap().is_none());
        list.feed(Bytes::from(vec![b'x'; 1 << 20]));
    }
    assert!(list.next_part().unwrap().is_none());
    assert!(list.capture.held() <= 16 << 10, "{} bytes held", list.capture.held());
}

#[test]
fn every_call_after_an_error_returns_it() {
    for body in ["[]", r#"{"kind":"Table"}"#, r#"{"items":[],"items":[]}"#, r#"{"items":[],}"#] {
        let mut list = splitter(Limits::default());
        list.feed(Bytes::from_static(body.as_bytes()));
        let error = list.next_part().unwrap_err();
        assert_eq!(list.next_part().unwrap_err(), error, "{body}");
        list.feed(Bytes::from_static(b"{}"));
        assert_eq!(list.next_part().unwrap_err(), error, "{body}");
        assert_eq!(list.finish().unwrap_err(), error, "{body}");
    }
}

#[test]
fn debug_shows_nothing_of_the_body() {
    let mut list = splitter(Limits::default());
    list.feed(Bytes::from_static(br#"{"items":[{"data":"hunter2"#));
    assert!(list.next_part().unwrap().is_none());
    assert!(!format!("{list:?}").contains("hunter2"));
}

/// A list with arbitrary fields, items and metadata.
fn any_list() -> impl Strategy<Value = Value> {
    let named =
        ("[a-c]", any_value()).prop_map(|(name, spec)| json!({"metadata": {"name": name}, "spec": spec}));
    let item = prop_oneof![3 => named, 1 => any_value()];
    (prop::collection::vec(item, 0..5), any_value(), any::<Option<u32>>()).prop_map(|(items, other, version)| {
        let version = version.map(|version| version.to_string());
        json!({"kind": "PodList", "items": items, "other": other, "metadata": {"resourceVersion": version}})
    })
}

proptest! {
    #[test]
    fn cutting_the_body_changes_nothing(
        list in any_list(),
        pretty: bool,
        damage in any_damage(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let body = damaged(&written(&list, pretty), &damage);
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
    fn a_valid_list_splits_as_serde_json_reads_it(list in any_list(), pretty: bool) {
        let (parts, end) = whole(&written(&list, pretty));
        prop_assert_eq!(end, Ok(()));
        let parts: Vec<_> = parts.iter().filter(|part| !part.starts_with("meta ")).collect();
        let items = list["items"].as_array().unwrap();
        prop_assert_eq!(parts.len(), items.len());
        for (part, item) in parts.into_iter().zip(items) {
            match item["metadata"]["name"].as_str() {
                Some(name) if !name.is_empty() && !name.contains('/') => {
                    let start = ["Pod ", name, "@"].concat();
                    prop_assert!(part.starts_with(&start), "{}", part);
                    let rest = &part[start.len()..]; // a name may have braces of its own
                    let content: Value = serde_json::from_str(&rest[rest.find('{').unwrap()..]).unwrap();
                    prop_assert_eq!(&content["spec"], &serde_json::from_str::<Value>(&item["spec"].to_string()).unwrap());
                }
                _ => prop_assert!(part.starts_with("malformed"), "{}", part),
            }
        }
    }

    #[test]
    fn a_list_is_accepted_only_if_it_is_json(list in any_list(), damage in any_damage()) {
        let body = damaged(&list.to_string(), &damage);
        let (parts, end) = split(&[&body], Limits::default());
        let readable = !parts.iter().any(|part| part.starts_with("malformed"));
        if end.is_ok() && readable {
            // Skipped fields and list metadata are followed by their brackets only.
            let items = parts.iter().filter(|part| part.starts_with("Pod")).count();
            if let Ok(value) = serde_json::from_slice::<Value>(&body) {
                prop_assert_eq!(value["items"].as_array().map_or(0, Vec::len), items);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..6)) {
        let chunks: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        let _ = split(&chunks, Limits::default());
    }
}
