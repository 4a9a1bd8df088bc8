//! Bodies of list and watch responses, which arrive in chunks.

use crate::origin;
use bytes::Bytes;
use kube_informer_wire::{
    FieldPath, FieldPaths, Limits, ListPart, ListSplitter, Malformed, MediaType, Object, Omissions, Prune,
    WatchEvent, WatchSplitter,
};
use serde_json::Value;
use std::sync::Arc;

/// Limits that small inputs can reach.
const TIGHT: Limits = Limits::DEFAULT.object_bytes(200).depth(6).labels(3);

/// The chunks in which a list arrives do not change its parts, its end or its error; an error is repeated.
pub fn list_body(data: &[u8]) {
    for limits in [Limits::default(), TIGHT] {
        let whole = list(&[data], limits);
        for chunks in splits(data) {
            assert_eq!(list(&chunks, limits), whole, "split into {} chunks", chunks.len());
        }
    }
}

/// The chunks in which a watch arrives do not change its events, its end or its error; an error is repeated.
pub fn watch_body(data: &[u8]) {
    for limits in [Limits::default(), TIGHT] {
        let whole = watch(&[data], limits);
        for chunks in splits(data) {
            assert_eq!(watch(&chunks, limits), whole, "split into {} chunks", chunks.len());
        }
    }
}

/// As [`list_body`], in protobuf. What is read of an object does not depend on its encoding.
pub fn protobuf_list(data: &[u8]) {
    for limits in [Limits::default(), TIGHT] {
        let split = |chunks: &[&[u8]]| parts(ListSplitter::protobuf(origin(), limits), chunks);
        let whole = split(&[data]);
        for chunks in splits(data) {
            assert_eq!(split(&chunks), whole, "split into {} chunks", chunks.len());
        }
    }
}

/// As [`watch_body`], in protobuf. What is read of an object does not depend on its encoding.
pub fn protobuf_watch(data: &[u8]) {
    for limits in [Limits::default(), TIGHT] {
        let split = |chunks: &[&[u8]]| events(WatchSplitter::protobuf(origin(), limits), chunks);
        let whole = split(&[data]);
        for chunks in splits(data) {
            assert_eq!(split(&chunks), whole, "split into {} chunks", chunks.len());
        }
    }
}

/// Two ways to split the data: single bytes, and pieces whose lengths are derived from the data.
fn splits(data: &[u8]) -> [Vec<&[u8]>; 2] {
    let (mut pieces, mut rest) = (Vec::new(), data);
    while let Some(first) = rest.first() {
        let length = 1 + usize::from(*first) % 23;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    [data.chunks(1).collect(), pieces]
}

fn list(chunks: &[&[u8]], limits: Limits) -> Vec<String> {
    parts(ListSplitter::new(origin(), limits), chunks)
}

fn parts(mut splitter: ListSplitter, chunks: &[&[u8]]) -> Vec<String> {
    let mut output = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk));
        loop {
            match splitter.next_part() {
                Ok(Some(ListPart::Item(item))) => output.push(describe(&item)),
                Ok(Some(ListPart::Meta(meta))) => output.push(format!("{meta:?}")),
                Ok(Some(ListPart::Malformed(why))) => output.push(describe_malformed(&why)),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.next_part().err(), Some(error.clone()), "an error is repeated");
                    assert_eq!(splitter.finish(), Err(error.clone()), "an error is final");
                    output.push(error.to_string());
                    return output;
                }
            }
        }
    }
    output.push(format!("{:?}", splitter.finish()));
    output
}

fn watch(chunks: &[&[u8]], limits: Limits) -> Vec<String> {
    events(WatchSplitter::new(origin(), limits), chunks)
}

fn events(mut splitter: WatchSplitter, chunks: &[&[u8]]) -> Vec<String> {
    let mut output = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk));
        loop {
            match splitter.next_event() {
                Ok(Some(event)) => output.push(describe_event(&event)),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.next_event().err(), Some(error.clone()), "an error is repeated");
                    output.push(error.to_string());
                    return output;
                }
            }
        }
    }
    output.push(match splitter.finish() {
        Ok(last) => last.map_or_else(|| "end".to_owned(), |event| describe_event(&event)),
        Err(error) => error.to_string(),
    });
    output
}

fn describe_event(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", describe(object)),
        WatchEvent::Modified(object) => format!("modified {}", describe(object)),
        WatchEvent::Deleted(object) => format!("deleted {}", describe(object)),
        WatchEvent::Bookmark(bookmark) => format!("{bookmark:?}"),
        WatchEvent::Error(status) => format!("{status:?}"),
        WatchEvent::Malformed(why) => describe_malformed(why),
    }
}

fn describe_malformed(why: &Malformed) -> String {
    assert!(!why.reason.is_empty(), "the reason is missing");
    format!("{why:?}")
}

/// An object with its content, which `Debug` does not show.
fn describe(object: &Object<Value>) -> String {
    assert!(!object.name().is_empty() && !object.name().contains('/'), "the name is invalid");
    let json = object.json();
    if let (MediaType::Protobuf, Ok(json)) = (object.media_type(), &json) {
        assert_same(object, json);
    }
    format!("{object:?} {:?} {:?} {json:?}", object.uid(), object.labels())
}

/// Fields and what is left without some fields are the same as those of the object's JSON.
fn assert_same(object: &Object<Value>, json: &Bytes) {
    let path = |path: &str| -> FieldPath { path.parse().expect("a path") };
    let paths = FieldPaths::new(
        ["spec.containers[*].image", "metadata.labels.app", "status", "spec.containers[0]"].map(path),
    );
    if let Some(found) = object.read_fields(&paths) {
        assert_eq!(found, paths.read(json).expect("JSON that we wrote"));
    }
    for dropped in [
        &["metadata.managedFields", "metadata.labels.app"][..],
        &["spec.containers[*].resources", "spec.containers[0].image"],
        &["spec.containers[1]", "status.podIP"],
    ] {
        let dropped: Vec<FieldPath> = dropped.iter().copied().map(path).collect();
        let (prune, omissions) =
            (Prune::new(dropped.clone()), Arc::new(Omissions::fields(dropped.iter().cloned())));
        let Ok(rest) = object.without_fields(&prune, &omissions, &Limits::default()) else { continue };
        let value = |json: &Bytes| serde_json::from_slice::<Value>(json).expect("JSON that we wrote");
        let rest = rest.json().expect("what is left can be read");
        assert_eq!(
            value(&rest),
            value(&prune.apply(json).expect("JSON that we wrote")),
            "without {dropped:?}"
        );
    }
}
