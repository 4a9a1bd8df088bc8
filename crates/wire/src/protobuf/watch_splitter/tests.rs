//! Watches in protobuf, in chunks of any size.

use super::*;
use kube_informer_types::protobuf;
use serde_json::json;

fn event(event_type: &str, name: &str) -> Bytes {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    protobuf::encode_event(event_type, object.to_string().as_bytes()).expect("an event")
}

fn split(body: &[u8], size: usize, limits: &Limits) -> Vec<Result<Frame, BadFrame>> {
    let mut splitter = WatchSplitter::new(*limits);
    let mut frames = Vec::new();
    for chunk in body.chunks(size) {
        splitter.feed(Bytes::copy_from_slice(chunk));
        frames.extend(std::iter::from_fn(|| splitter.next_frame()));
    }
    frames
}

#[test]
fn the_events_do_not_depend_on_chunks() {
    let body = [event("ADDED", "a"), event("MODIFIED", "b"), event("DELETED", "c")].concat();
    let whole = split(&body, usize::MAX, &Limits::default());
    let types: Vec<&str> = whole.iter().flatten().map(|frame| frame.event_type.as_str()).collect();
    assert_eq!(types, ["ADDED", "MODIFIED", "DELETED"]);
    assert!(whole.iter().flatten().all(|frame| frame.kind == "ConfigMap"));
    for size in 1..body.len() {
        assert_eq!(split(&body, size, &Limits::default()), whole, "chunks of {size}");
    }
}

#[test]
fn the_object_is_a_slice_of_the_chunk() {
    let body = event("ADDED", "a");
    let mut splitter = WatchSplitter::new(Limits::default());
    splitter.feed(body.clone());
    let frame = splitter.next_frame().expect("an event").expect("well-formed");
    assert!(body.as_ptr_range().contains(&frame.object.as_ptr()));
}

#[test]
fn an_object_with_an_encoding_of_its_own_is_rejected() {
    let field = |number: u8, value: &[u8]| [&[number << 3 | 2, value.len() as u8], value].concat();
    for (encoding, good) in [(&b""[..], true), (b"gzip", false)] {
        let kind = field(1, &field(2, b"ConfigMap"));
        let envelope = [MAGIC, &kind, &field(2, b"message"), &field(3, encoding)].concat();
        let event = [field(1, b"ADDED"), field(2, &field(1, &envelope))].concat();
        let body = [&(event.len() as u32).to_be_bytes()[..], &event].concat();
        let frames = split(&body, usize::MAX, &Limits::default());
        assert_eq!(frames.iter().map(Result::is_ok).collect::<Vec<_>>(), [good]);
    }
}

#[test]
fn an_error_event_has_a_status() {
    let status = json!({"apiVersion": "v1", "kind": "Status", "code": 410, "reason": "Expired"});
    let body = protobuf::encode_event("ERROR", status.to_string().as_bytes()).expect("an event");
    let frames = split(&body, 3, &Limits::default());
    assert!(matches!(&frames[..], [Ok(frame)] if frame.kind == "Status" && frame.event_type == "ERROR"));
}

#[test]
fn a_bad_event_does_not_affect_the_others() {
    let long = "x".repeat(5000);
    let nothing = [0, 0, 0, 2, 0xff, 0xff];
    let body = [&event("ADDED", "a")[..], &event("ADDED", &long), &nothing, &event("ADDED", "b")].concat();
    let limits = Limits { object_bytes: 2000, ..Limits::default() };
    for size in [1, 9, usize::MAX] {
        let frames = split(&body, size, &limits);
        let good: Vec<bool> = frames.iter().map(Result::is_ok).collect();
        assert_eq!(good, [true, false, false, true]);
    }
}

#[test]
fn an_event_that_is_cut_off_is_not_delivered() {
    let body = [event("ADDED", "a"), event("ADDED", "b")].concat();
    for length in 0..body.len() {
        assert!(split(&body[..length], 11, &Limits::default()).iter().all(Result::is_ok));
    }
    let mut splitter = WatchSplitter::new(Limits::default());
    splitter.feed(Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 1, 2, 3]));
    assert_eq!(splitter.next_frame(), None);
    assert!(splitter.capture.held() < 1 << 17, "a claimed length allocates nothing");
}
