//! Watch events as JSON lines or protobuf frames, in the requested view.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::body::SHARE_ABOVE;
use super::error::HttpError;
use super::negotiate::{Format, View};
use super::table::TableMaker;
use crate::clock::Clock;
use crate::registry::{Conversion, Object, Resource};
use crate::status::Status;
use crate::storage::Document;
use crate::watch_cache::{self, Bookmark, WatchEvent, WatchItem};
use kube_informer_types::protobuf;

/// The type of an object that shows its metadata alone.
const PARTIAL_HEAD: &[u8] = b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",";

/// Encodes the items of one watch.
pub(crate) struct Frames {
    resource: Arc<Resource>,
    shown: Shown,
    format: Format,
}

enum Shown {
    /// As it is stored, or converted and shared under this format.
    Whole(Option<(watch_cache::Format, Conversion)>),
    /// The format under which all watchers of metadata share one encoding.
    Metadata(watch_cache::Format),
    /// Column definitions come with the first event alone, so tables are not shared.
    Table { maker: TableMaker, begun: bool },
}

impl Frames {
    pub(crate) fn new(clock: &Clock, resource: &Arc<Resource>, view: View, format: Format) -> Self {
        let shown = match view {
            View::Whole => {
                let converted = format!("{} converted", resource.head.as_str());
                let conversion = resource.conversion.clone();
                Shown::Whole(conversion.map(|c| (watch_cache::Format::new(converted), c)))
            }
            View::Metadata => Shown::Metadata(watch_cache::Format::new("PartialObjectMetadata")),
            View::Table(options) => {
                let maker = TableMaker::new(clock.clone(), Arc::clone(resource), options);
                Shown::Table { maker, begun: false }
            }
        };
        Self { resource: Arc::clone(resource), shown, format }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// The frame of an item. A large object is in two further pieces, of which the first shares the stored bytes.
    pub(crate) fn frame(&mut self, item: &WatchItem) -> (Bytes, [Option<Bytes>; 2]) {
        if self.format == Format::Protobuf {
            return (self.protobuf_frame(item), [None, None]);
        }
        if let (WatchItem::Event(event), Shown::Whole(None)) = (item, &self.shown)
            && event.object().document.encoded_len() > SHARE_ABOVE
        {
            let (start, rest) = event.shared_frame(&self.resource.head);
            return (start, [Some(rest), Some(Bytes::from_static(b"}\n"))]);
        }
        (self.json_frame(item), [None, None])
    }

    /// The JSON line converted to protobuf, once for all equal watches.
    fn protobuf_frame(&mut self, item: &WatchItem) -> Bytes {
        match item {
            WatchItem::Event(event) => {
                let shared = match &self.shown {
                    Shown::Whole(_) => "protobuf",
                    Shown::Metadata(_) => "protobuf PartialObjectMetadata",
                    Shown::Table { .. } => return to_protobuf(&self.event(event)),
                };
                // Encoded first: one encoding must not be requested inside another.
                let line = self.event(event);
                event.encoded(&watch_cache::Format::new(shared), || to_protobuf(&line))
            }
            other => to_protobuf(&self.json_frame(other)),
        }
    }

    fn json_frame(&mut self, item: &WatchItem) -> Bytes {
        match item {
            WatchItem::Event(event) => self.event(event),
            WatchItem::Bookmark(bookmark) => self.bookmark(bookmark),
            WatchItem::Error(error) => line("ERROR", &Status::from(error).to_json()),
        }
    }

    fn event(&mut self, event: &WatchEvent) -> Bytes {
        let kind = event.event_type().as_str();
        match &mut self.shown {
            Shown::Whole(None) => event.frame(&self.resource.head),
            Shown::Whole(Some((format, conversion))) => event.encoded(format, || {
                let document = &event.object().document;
                let value = document.to_value(&self.resource.head, event.revision());
                let mut value = value.unwrap_or_default();
                let fields = value.as_object_mut().into_iter();
                fields.for_each(|fields| conversion.show(fields, document.version()));
                line(kind, value.to_string().as_bytes())
            }),
            Shown::Metadata(format) => event.encoded(format, || {
                let mut object = Vec::new();
                write_metadata(&event.object().document, event.revision(), &mut object);
                line(kind, &object)
            }),
            Shown::Table { maker, begun } => {
                let document = &event.object().document;
                let value = document.to_value(&self.resource.head, event.revision());
                let mut object = value.ok().and_then(Object::new);
                if let (Some(object), Some(conversion)) = (&mut object, &self.resource.conversion) {
                    conversion.show(object.root_mut(), document.version());
                }
                let first = !std::mem::replace(begun, true);
                let table = object.map(|object| maker.of_object(&object, first)).unwrap_or_default();
                line(kind, table.to_string().as_bytes())
            }
        }
    }

    fn bookmark(&mut self, bookmark: &Bookmark) -> Bytes {
        match &mut self.shown {
            Shown::Whole(_) => bookmark.frame(&self.resource.head),
            Shown::Metadata(_) => {
                let mut object = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"});
                object["metadata"] = bookmark_metadata(bookmark);
                line("BOOKMARK", object.to_string().as_bytes())
            }
            Shown::Table { maker, begun } => {
                let first = !std::mem::replace(begun, true);
                let object = Object::new(json!({"metadata": bookmark_metadata(bookmark)}));
                let table = object.map(|object| maker.of_bookmark(&object, first)).unwrap_or_default();
                line("BOOKMARK", table.to_string().as_bytes())
            }
        }
    }
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frames({})", self.resource.plural)
    }
}

fn bookmark_metadata(bookmark: &Bookmark) -> Value {
    let mut metadata = json!({"resourceVersion": bookmark.revision.to_string()});
    if bookmark.initial_events_end {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    metadata
}

/// A JSON line as a protobuf frame. An event without a protobuf form becomes an error event.
fn to_protobuf(line: &[u8]) -> Bytes {
    let (event_type, object) = cut(line).unwrap_or(("ERROR", b"null"));
    protobuf::encode_event(event_type, object).unwrap_or_else(|error| {
        let status = Status::from(&HttpError::NoProtobufForm { content: "event", error });
        protobuf::encode_event("ERROR", &status.to_json()).unwrap_or_default()
    })
}

/// Type and object of a line that [`line`] or the cache wrote.
fn cut(line: &[u8]) -> Option<(&str, &[u8])> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    let end = rest.iter().position(|byte| *byte == b'"')?;
    let object = rest[end..].strip_prefix(b"\",\"object\":")?.strip_suffix(b"}\n")?;
    Some((std::str::from_utf8(&rest[..end]).ok()?, object))
}

fn line(kind: &str, object: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(object.len() + 40);
    frame.extend_from_slice(b"{\"type\":\"");
    frame.extend_from_slice(kind.as_bytes());
    frame.extend_from_slice(b"\",\"object\":");
    frame.extend_from_slice(object);
    frame.extend_from_slice(b"}\n");
    frame.into()
}

/// Appends the object with nothing but its metadata, copied from the stored bytes.
pub(crate) fn write_metadata(document: &Document, revision: u64, out: &mut Vec<u8>) {
    let mut object = Vec::with_capacity(document.encoded_len());
    document.write(None, revision, &mut object);
    out.extend_from_slice(PARTIAL_HEAD);
    out.extend_from_slice(&object[1..end_of_metadata(&object)]);
    out.push(b'}');
}

/// The end of the metadata in `{"metadata":{…},…`, the beginning of every stored document.
fn end_of_metadata(object: &[u8]) -> usize {
    let (mut depth, mut quoted, mut escaped) = (0, false, false);
    for (i, byte) in object.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 1 {
                    return i + 1;
                }
            }
            _ => {}
        }
    }
    object.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_cut_out_of_the_stored_bytes() {
        let tricky =
            json!({"metadata": {"name": "a", "annotations": {"k}\"{": "\\\"}}{"}}, "data": {"secret": "}"}});
        let document = Document::encode(&tricky, []).unwrap();
        let mut out = Vec::new();
        write_metadata(&document, 7, &mut out);
        let shown: Value = serde_json::from_slice(&out).unwrap();
        let mut metadata = tricky["metadata"].clone();
        metadata["resourceVersion"] = "7".into();
        assert_eq!(
            shown,
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
        );
    }
}
