//! Lists in protobuf, in chunks of any size.

use super::*;
use kube_informer_types::protobuf::{Envelope, ListWriter};
use serde_json::json;

/// A list of config maps with these names.
fn list(names: &[&str]) -> Bytes {
    let metadata = json!({"resourceVersion": "17", "continue": "token", "remainingItemCount": 3});
    let mut writer = ListWriter::new("v1", "ConfigMapList", &metadata).expect("a list");
    for name in names {
        writer.push(json!({"metadata": {"name": name}}).to_string().as_bytes()).expect("an item");
    }
    writer.finish()
}

/// The parts of a body in chunks of a size, then the result of its end.
fn split(body: &[u8], size: usize, limits: Limits) -> (Vec<Part>, Result<(), BodyError>) {
    let mut splitter = ListSplitter::new(limits);
    let mut parts = Vec::new();
    for chunk in body.chunks(size) {
        splitter.feed(Bytes::copy_from_slice(chunk));
        loop {
            match splitter.next_part() {
                Ok(Some(part)) => parts.push(part),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.next_part(), Err(error.clone()), "the error stays");
                    assert_eq!(splitter.finish(), Err(error.clone()));
                    return (parts, Err(error));
                }
            }
        }
    }
    let end = splitter.finish();
    (parts, end)
}

fn items(parts: &[Part]) -> usize {
    parts.iter().filter(|part| matches!(part, Part::Item(_))).count()
}

#[test]
fn the_parts_do_not_depend_on_chunks() {
    let body = list(&["a", "b", "c-with-a-long-name"]);
    let (whole, end) = split(&body, usize::MAX, Limits::default());
    assert_eq!(end, Ok(()));
    assert_eq!(items(&whole), 3);
    let meta = ListMeta {
        resource_version: Some("17".into()),
        continue_token: Some("token".to_owned()),
        remaining: Some(3),
    };
    assert_eq!(whole[0], Part::Meta(meta));
    for size in 1..body.len() {
        assert_eq!(split(&body, size, Limits::default()), (whole.clone(), Ok(())), "chunks of {size}");
    }
}

#[test]
fn empty_metadata_is_absent() {
    assert_eq!(list_meta(b"\x12\x00\x1a\x00"), ListMeta::default());
}

#[test]
fn an_empty_list_is_a_list() {
    let (parts, end) = split(&list(&[]), 5, Limits::default());
    assert_eq!((items(&parts), end), (0, Ok(())));
}

#[test]
fn every_truncation_is_noticed() {
    let body = list(&["a", "b"]);
    // Two empty fields follow the list. It is complete without them.
    for length in 0..body.len() - 4 {
        let (_, end) = split(&body[..length], 7, Limits::default());
        assert!(end.is_err(), "{length} of {} bytes", body.len());
    }
}

#[test]
fn an_item_over_the_limit_does_not_affect_the_others() {
    let long = "x".repeat(300);
    let body = list(&["a", &long, "b"]);
    let limits = Limits { object_bytes: 200, ..Limits::default() };
    for size in [1, 50, usize::MAX] {
        let (parts, end) = split(&body, size, limits);
        assert_eq!((items(&parts), end), (2, Ok(())));
        let oversized =
            parts.iter().filter(|part| matches!(part, Part::Oversized(prefix) if prefix.len() <= 200));
        assert_eq!(oversized.count(), 1);
    }
}

/// A field with bytes.
fn bytes(number: u8, value: &[u8]) -> Vec<u8> {
    assert!(value.len() < 128 * 128);
    let length = value.len();
    let mut out = vec![number << 3 | 2];
    if length < 128 {
        out.push(length as u8);
    } else {
        out.extend([(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
    }
    out.extend_from_slice(value);
    out
}

#[test]
fn fields_may_have_any_order_and_unknown_ones_are_skipped() {
    let item = bytes(2, &bytes(1, &bytes(1, b"a")));
    let meta = bytes(1, &bytes(2, b"9"));
    let unknown =
        [bytes(9, b"new"), vec![8 << 3, 0x81, 1], vec![10 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8]].concat();
    let raw = [item.clone(), unknown.clone(), item, meta].concat();
    let type_meta = [bytes(1, b"v1"), bytes(2, b"ConfigMapList")].concat();
    let body = [MAGIC.to_vec(), unknown, bytes(2, &raw), bytes(1, &type_meta), bytes(3, b"")].concat();
    for size in [1, 3, usize::MAX] {
        let (parts, end) = split(&body, size, Limits::default());
        assert_eq!((items(&parts), end), (2, Ok(())));
        assert!(matches!(parts.last(), Some(Part::Meta(meta)) if meta.resource_version == Some("9".into())));
    }
}

#[test]
fn bodies_that_are_no_lists_are_errors() {
    let body = |kind: &str, raw: &[u8]| Envelope { api_version: "v1", kind, raw }.encode();
    let end = |body: &[u8]| split(body, 3, Limits::default()).1;
    assert_eq!(end(&body("Status", b"")), Err(BodyError::Status));
    assert_eq!(end(&body("Table", b"")), Err(BodyError::Table));
    assert_eq!(end(&body("ConfigMap", b"")), Err(BodyError::NotAList { kind: "ConfigMap".to_owned() }));
    assert!(matches!(end(br#"{"kind":"List"}"#), Err(BodyError::Syntax { at: 1, .. })));
    let gzip = [body("ConfigMapList", b""), bytes(3, b"gzip")].concat();
    assert!(matches!(end(&gzip), Err(BodyError::Syntax { .. })), "its items cannot be read");
    let twice = [body("ConfigMapList", b""), bytes(2, b"")].concat();
    assert!(matches!(end(&twice), Err(BodyError::Syntax { .. })));
}

/// A length is a claim: an attacker who claims a lot and sends little occupies little.
#[test]
fn claimed_lengths_allocate_nothing() {
    // The envelope claims a list of 2^40 bytes, that an item of 2^39.
    let huge = |exponent: u32| {
        let mut out = Vec::new();
        let mut value = 1_u64 << exponent;
        while value >= 0x80 {
            out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        out.push(value as u8);
        out
    };
    let body =
        [MAGIC.to_vec(), vec![2 << 3 | 2], huge(40), vec![2 << 3 | 2], huge(39), vec![0; 100]].concat();
    let mut splitter = ListSplitter::new(Limits::default());
    splitter.feed(body.into());
    assert_eq!(splitter.next_part(), Ok(None));
    assert!(splitter.capture.held() < 1 << 17, "{}", splitter.capture.held());
    assert!(matches!(splitter.finish(), Err(BodyError::Truncated { .. })));
    // An item that claims more than the list has.
    let body = [MAGIC.to_vec(), bytes(2, &[2 << 3 | 2, 100, 0, 0])].concat();
    assert!(matches!(split(&body, 2, Limits::default()).1, Err(BodyError::Syntax { .. })));
}

#[test]
fn damaged_lists_never_panic_and_do_not_depend_on_chunks() {
    let mut random = fastrand::Rng::with_seed(3);
    let body = list(&["a", "b", "c"]);
    for _ in 0..5_000 {
        let mut damaged = body.to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..damaged.len());
            match random.u8(..3) {
                0 => damaged[at] = random.u8(..),
                1 => damaged.truncate(at.max(1)),
                _ => damaged.insert(at, random.u8(..)),
            }
        }
        let whole = split(&damaged, usize::MAX, Limits::default());
        let pieces = split(&damaged, random.usize(1..20), Limits::default());
        assert_eq!(pieces.0, whole.0);
        assert_eq!(pieces.1.is_ok(), whole.1.is_ok());
    }
}
