//! What stands in the head of a request.

use crate::{halves, text};
use kube_embedded_apiserver::fuzzing;
use std::time::Duration;

/// Longer tokens are refused, and writing a token again may make it a few bytes longer.
const LONGEST_TOKEN: usize = 4000;

/// A token that is read is read the same after it was written again, and never leads out of its prefix.
pub fn continue_token(data: &[u8]) {
    let Some(text) = text(data).filter(|text| text.len() < LONGEST_TOKEN) else { return };
    if let Ok((revision, start)) = fuzzing::decode_continue(text) {
        assert!(revision != 0, "zero is no revision");
        settled(revision, &start);
    }
    // The same for a key that stands in the open, which bytes hit more easily than base64.
    let inside = !text.is_empty() && text.split('/').all(|part| !["", ".", ".."].contains(&part));
    if inside && text.len() < LONGEST_TOKEN / 9 {
        settled(-1, text);
    }
    let token = fuzzing::encode_continue(7, text, true);
    if let Ok((_, start)) = fuzzing::decode_continue(&token) {
        let escapes = !start.is_empty() && start.split('/').any(|part| ["", ".", ".."].contains(&part));
        assert!(!escapes, "{start:?} leaves its prefix");
    }
}

fn settled(revision: i64, start: &str) {
    // The store has no form for "from the beginning": nothing goes on there.
    for cached in [true].into_iter().chain((!start.is_empty()).then_some(false)) {
        let token = fuzzing::encode_continue(revision, start, cached);
        assert_eq!(fuzzing::decode_continue(&token), Ok((revision, start.to_owned())));
    }
}

/// What is answered was asked for, can be written, and is one thing only; a refusal is a 400 or a 406.
pub fn accept(data: &[u8]) {
    let (header, query) = halves(data).unwrap_or((data, b""));
    let (Some(header), Some(query)) = (text(header), text(query)) else { return };
    for (watch, typed) in [(false, false), (false, true), (true, false), (true, true)] {
        match fuzzing::accept(header, query, watch, typed) {
            Ok(accepted) => {
                let asked = header.trim().is_empty() || header.contains('*');
                assert!(asked || header.contains(accepted.media_type), "{accepted:?} for {header:?}");
                assert!(!(accepted.table && accepted.whole), "a table is not the object");
                assert!(!accepted.table || header.contains("Table"), "nobody asked for a table: {header:?}");
                let protobuf = accepted.media_type.ends_with("protobuf");
                assert!(!protobuf || !accepted.table, "tables have no protobuf form");
                assert!(!protobuf || typed || !accepted.whole, "the kind has no protobuf form");
                assert!(!watch || !accepted.media_type.ends_with("yaml"), "a watch cannot be YAML");
            }
            Err(code) => assert!([400, 406].contains(&code), "{code} for {header:?}"),
        }
    }
}

/// Options are read or refused with a Status that says why; a limit is never negative.
pub fn query(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match fuzzing::list_options(text) {
        Ok(limit) => assert!(limit >= 0),
        Err(body) => refused(&body),
    }
    for apply in [false, true] {
        match fuzzing::write_options(text, apply) {
            Ok(_) => assert!(!apply || text.contains('='), "an apply names its manager"),
            Err(body) => refused(&body),
        }
    }
}

fn refused(body: &[u8]) {
    let status: serde_json::Value = serde_json::from_slice(body).expect("a Status is JSON");
    assert!([Some(400), Some(422)].contains(&status["code"].as_u64()), "{status}");
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{status}");
}

/// A duration and another one in a row are their sum; nothing is read of a text without a unit.
pub fn duration(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Some(read) = fuzzing::duration(text) else { return };
    assert!(read.is_zero() || text.ends_with(['h', 'm', 's']), "{text:?} has no unit");
    if text.ends_with('s')
        && let Some(longer) = fuzzing::duration(&format!("{text}2s"))
    {
        let difference = longer.abs_diff(read + Duration::from_secs(2));
        assert!(
            difference <= read / 1_000_000 + Duration::from_micros(1),
            "{text:?}: {read:?} and {longer:?}"
        );
    }
}
