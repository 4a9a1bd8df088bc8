//! Bodies that arrive in chunks.

use bytes::Bytes;
use kube_informer_wire::{
    Kind, Limits, ListPart, ListSplitter, Object, Origin, Unreadable, WatchEvent, WatchSplitter,
};
use serde_json::Value;
use std::sync::Arc;

/// Bounds that small inputs can reach.
const TIGHT: Limits = Limits { object_bytes: 200, depth: 6, labels: 3 };

/// However a list is cut into chunks, its parts and its end are the same; an error is repeated.
pub fn list_body(data: &[u8]) {
    for limits in [Limits::default(), TIGHT] {
        let whole = list(&[data], limits);
        for chunks in cuts(data) {
            assert_eq!(list(&chunks, limits), whole, "cut into {} chunks", chunks.len());
        }
    }
}

/// However a watch is cut into chunks, its events and its end are the same; an error is repeated.
pub fn watch_body(data: &[u8]) {
    for limits in [Limits::default(), TIGHT] {
        let whole = watch(&[data], limits);
        for chunks in cuts(data) {
            assert_eq!(watch(&chunks, limits), whole, "cut into {} chunks", chunks.len());
        }
    }
}

/// Every byte alone, and pieces whose lengths the data itself gives.
fn cuts(data: &[u8]) -> [Vec<&[u8]>; 2] {
    let (mut pieces, mut rest) = (Vec::new(), data);
    while let Some(first) = rest.first() {
        let length = 1 + usize::from(*first) % 23;
        let (piece, after) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    [data.chunks(1).collect(), pieces]
}

fn origin() -> Arc<Origin> {
    Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")))
}

fn list(chunks: &[&[u8]], limits: Limits) -> Vec<String> {
    let mut splitter = ListSplitter::new(origin(), limits);
    let mut seen = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk));
        loop {
            match splitter.next_part() {
                Ok(Some(ListPart::Item(item))) => seen.push(described(&item)),
                Ok(Some(ListPart::Meta(meta))) => seen.push(format!("{meta:?}")),
                Ok(Some(ListPart::Unreadable(why))) => seen.push(unreadable(&why)),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.next_part().err(), Some(error.clone()), "an error is repeated");
                    assert_eq!(splitter.finish(), Err(error.clone()), "an error is final");
                    seen.push(error.to_string());
                    return seen;
                }
            }
        }
    }
    seen.push(format!("{:?}", splitter.finish()));
    seen
}

fn watch(chunks: &[&[u8]], limits: Limits) -> Vec<String> {
    let mut splitter = WatchSplitter::new(origin(), limits);
    let mut seen = Vec::new();
    for chunk in chunks {
        splitter.feed(Bytes::copy_from_slice(chunk));
        loop {
            match splitter.next_event() {
                Ok(Some(event)) => seen.push(happened(&event)),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(splitter.next_event().err(), Some(error.clone()), "an error is repeated");
                    seen.push(error.to_string());
                    return seen;
                }
            }
        }
    }
    seen.push(match splitter.finish() {
        Ok(last) => last.map_or_else(|| "end".to_owned(), |event| happened(&event)),
        Err(error) => error.to_string(),
    });
    seen
}

fn happened(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Added(object) => format!("added {}", described(object)),
        WatchEvent::Modified(object) => format!("modified {}", described(object)),
        WatchEvent::Deleted(object) => format!("deleted {}", described(object)),
        WatchEvent::Bookmark(bookmark) => format!("{bookmark:?}"),
        WatchEvent::Error(status) => format!("{status:?}"),
        WatchEvent::Unreadable(why) => unreadable(why),
    }
}

fn unreadable(why: &Unreadable) -> String {
    assert!(!why.reason.is_empty(), "a reason is always given");
    format!("{why:?}")
}

/// All there is of an object: its `Debug` shows no content.
fn described(object: &Object<Value>) -> String {
    assert!(!object.name().is_empty() && !object.name().contains('/'), "a name is a name");
    format!("{object:?} {:?} {:?} {:?}", object.uid(), object.labels(), object.json())
}
