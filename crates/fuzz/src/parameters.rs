//! Parameters of a request: query, headers and tokens.

use crate::{halves, text};
use kube_embedded_apiserver::fuzzing;
use std::time::Duration;

/// A bit below the limit of the parser, because encoding a decoded token again may lengthen it by a few bytes.
const MAX_TOKEN_LENGTH: usize = 4000;
/// The token of a key is at most nine times as long: six for the escapes of JSON, and a third more for base64.
const MAX_KEY_LENGTH: usize = MAX_TOKEN_LENGTH / 9;

/// A decoded token survives a round trip, and no start key escapes its prefix.
pub fn continue_token(data: &[u8]) {
    let Some(text) = text(data).filter(|text| text.len() < MAX_TOKEN_LENGTH) else { return };
    if let Ok((revision, start)) = fuzzing::decode_continue(text) {
        assert!(revision != 0, "revision 0 is invalid");
        assert_round_trip(revision, &start);
    }
    // Also use the input as a start key, because mutations rarely produce valid base64.
    let inside = !text.is_empty() && text.split('/').all(|part| !["", ".", ".."].contains(&part));
    if inside && text.len() < MAX_KEY_LENGTH {
        assert_round_trip(-1, text);
    }
    let token = fuzzing::encode_continue(7, text, true);
    if let Ok((_, start)) = fuzzing::decode_continue(&token) {
        let escapes = !start.is_empty() && start.split('/').any(|part| ["", ".", ".."].contains(&part));
        assert!(!escapes, "{start:?} is outside its prefix");
    }
}

fn assert_round_trip(revision: i64, start: &str) {
    // A token of the store always has a start key.
    for cached in [true].into_iter().chain((!start.is_empty()).then_some(false)) {
        let token = fuzzing::encode_continue(revision, start, cached);
        assert_eq!(fuzzing::decode_continue(&token), Ok((revision, start.to_owned())));
    }
}

/// The negotiated media type was requested and can be encoded; an error is a 400 or a 406.
pub fn accept(data: &[u8]) {
    let (header, query) = halves(data).unwrap_or((data, b""));
    let (Some(header), Some(query)) = (text(header), text(query)) else { return };
    for (watch, typed) in [(false, false), (false, true), (true, false), (true, true)] {
        match fuzzing::accept(header, query, watch, typed) {
            Ok(accepted) => {
                let any = header.trim().is_empty() || header.contains('*');
                assert!(any || header.contains(accepted.media_type), "{accepted:?} for {header:?}");
                assert!(!(accepted.table && accepted.whole), "both a table and the whole object");
                assert!(
                    !accepted.table || header.contains("Table"),
                    "a table that was not requested: {header:?}"
                );
                let protobuf = accepted.media_type.ends_with("protobuf");
                assert!(!protobuf || !accepted.table, "tables cannot be encoded in protobuf");
                assert!(!protobuf || typed || !accepted.whole, "the kind cannot be encoded in protobuf");
                assert!(
                    !watch || !accepted.media_type.ends_with("yaml"),
                    "a watch cannot be encoded in YAML"
                );
            }
            Err(code) => assert!([400, 406].contains(&code), "{code} for {header:?}"),
        }
    }
}

/// Options are parsed or rejected with a Status that has a message; a limit is never negative.
pub fn query(data: &[u8]) {
    let Some(text) = text(data) else { return };
    match fuzzing::list_options(text) {
        Ok(limit) => assert!(limit >= 0),
        Err(body) => assert_status(&body),
    }
    for apply in [false, true] {
        match fuzzing::write_options(text, apply) {
            Ok(_) => assert!(!apply || text.contains('='), "an apply without a field manager"),
            Err(body) => assert_status(&body),
        }
    }
}

fn assert_status(body: &[u8]) {
    let status: serde_json::Value = serde_json::from_slice(body).expect("a Status in JSON");
    assert!([Some(400), Some(422)].contains(&status["code"].as_u64()), "{status}");
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{status}");
}

/// A duration followed by another one is their sum; a duration without a unit is rejected.
pub fn duration(data: &[u8]) {
    let Some(text) = text(data) else { return };
    let Some(parsed) = fuzzing::duration(text) else { return };
    assert!(parsed.is_zero() || text.ends_with(['h', 'm', 's']), "{text:?} has no unit");
    if text.ends_with('s')
        && let Some(longer) = fuzzing::duration(&format!("{text}2s"))
    {
        let difference = longer.abs_diff(parsed + Duration::from_secs(2));
        assert!(
            difference <= parsed / 1_000_000 + Duration::from_micros(1),
            "{text:?}: {parsed:?} and {longer:?}"
        );
    }
}
