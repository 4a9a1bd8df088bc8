//! Turns responses of the server into protobuf.
//!
//! The network asks the server for JSON and transcodes what it sends, so that everything else here reads one encoding.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, header};
use kube::client::Body;
use kube_informer_types::protobuf::{ListWriter, MEDIA_TYPE, WATCH_MEDIA_TYPE, encode_event};
use serde_json::Value;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Replaces an `Accept` header with protobuf by JSON. Returns whether it did.
pub(super) fn replace_accept(request: &mut Request<Body>) -> bool {
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let accepted = accept.is_some_and(|accept| accept.contains(MEDIA_TYPE));
    if accepted {
        request.headers_mut().insert(header::ACCEPT, JSON);
    }
    accepted
}

/// Makes the headers of a JSON response those of a protobuf response.
pub(super) fn change_headers(headers: &mut HeaderMap, watch: bool) {
    let media_type = if watch { WATCH_MEDIA_TYPE } else { MEDIA_TYPE };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.remove(header::CONTENT_LENGTH);
}

/// A line of a watch as a frame. A line that is not an event becomes a frame that is not one.
pub(super) fn event(line: &[u8]) -> Bytes {
    fn encode(line: &[u8]) -> Option<Bytes> {
        let mut event: Value = serde_json::from_slice(line).ok()?;
        let mut object = event.get_mut("object")?.take();
        let fields = object.as_object_mut()?;
        // Malformed events have neither.
        fields.entry("kind").or_insert("ConfigMap".into());
        fields.entry("apiVersion").or_insert("v1".into());
        encode_event(event["type"].as_str()?, object.to_string().as_bytes()).ok()
    }
    encode(line).unwrap_or_else(|| Bytes::from_static(&[0, 0, 0, 3, 0xff, 0xff, 0xff]))
}

/// A list.
pub(super) fn list(json: &[u8]) -> Option<Bytes> {
    let list: Value = serde_json::from_slice(json).ok()?;
    let mut writer =
        ListWriter::new(list["apiVersion"].as_str()?, list["kind"].as_str()?, &list["metadata"]).ok()?;
    for item in list["items"].as_array()? {
        writer.push(item.to_string().as_bytes()).ok()?;
    }
    Some(writer.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_informer_wire::{
        Kind, Limits, ListPart, ListSplitter, MediaType, Origin, WatchEvent, WatchSplitter,
    };
    use std::sync::Arc;

    fn origin() -> Arc<Origin> {
        Arc::new(Origin::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps")))
    }

    #[test]
    fn events_are_those_of_the_line() {
        let mut watch = WatchSplitter::protobuf(origin(), Limits::default());
        let lines = [
            r#"{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"4"}}}"#,
            r#"{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"5"}}}"#,
            r#"{"type":"MODIFIED","object":{"metadata":{"na"#,
        ];
        watch.feed(lines.map(|line| event(line.as_bytes())).concat().into());
        assert!(matches!(watch.next_event(), Ok(Some(WatchEvent::Added(object)))
            if object.name() == "a" && object.media_type() == MediaType::Protobuf));
        for version in [Some("5".into()), None] {
            assert!(matches!(watch.next_event(), Ok(Some(WatchEvent::Malformed(malformed)))
                if malformed.resource_version == version));
        }
    }

    #[test]
    fn a_list_has_the_items_of_the_json() {
        let json = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"x"},
            "items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"},"data":{"k":"v"}}]}"#;
        let mut splitter = ListSplitter::protobuf(origin(), Limits::default());
        splitter.feed(list(json.as_bytes()).expect("a list"));
        let (mut names, mut metadata) = (Vec::new(), None);
        while let Ok(Some(part)) = splitter.next_part() {
            match part {
                ListPart::Item(item) => names.push(item.name().to_owned()),
                ListPart::Meta(meta) => metadata = meta.continue_token,
                ListPart::Malformed(malformed) => panic!("{malformed}"),
            }
        }
        assert_eq!((names, metadata.as_deref()), (vec!["a".to_owned(), "b".to_owned()], Some("x")));
        assert_eq!(splitter.finish(), Ok(()));
    }
}
