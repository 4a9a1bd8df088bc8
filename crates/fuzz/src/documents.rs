//! Whole objects: who they are, how they are kept, and their other encodings.

use crate::text;
use bytes::Bytes;
use kube_embedded_apiserver::fuzzing;
use kube_informer_wire::{Kind, Limits, Object, Origin, Packer, Packing, fuzzing::unpack};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn origin() -> Arc<Origin> {
    Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")))
}

/// The identity that one pass finds is the one a full decoder finds; an object survives packing, and says what it
/// is.
pub fn object(data: &[u8]) {
    let limits = Limits::default();
    let read = Object::parse(&origin(), Bytes::copy_from_slice(data), &limits);
    let decoded: Option<Value> = serde_json::from_slice(data).ok();
    if let (Err(why), Some(value)) = (&read, &decoded) {
        let meta = &value["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let good =
            !text("name").is_empty() && !text("name").contains('/') && !text("namespace").contains('/');
        let few = meta["labels"].as_object().is_none_or(|labels| labels.len() <= limits.labels);
        assert!(!good || !few || depth(value) > 100, "a good object is read: {why}");
    }
    let Ok(object) = read else { return };
    if let Some(value) = &decoded {
        same_identity(&object, &value["metadata"]);
        let full: Value = object.view().expect("what is JSON stays JSON");
        assert!(full["kind"].is_string() && full["apiVersion"].is_string(), "it says what it is: {full}");
    }
    let json = object.json().expect("it is not packed");
    let again = Object::parse(&origin(), json.clone(), &limits).expect("what was read is readable");
    assert!(again.is_same_content(&object) && again.key() == object.key() && again.uid() == object.uid());
    let kept = object.pack(&Packer::new(Packing::Packed));
    assert_eq!(kept.json().expect("what was packed unpacks"), json);
}

fn same_identity(object: &Object<Value>, meta: &Value) {
    assert_eq!(object.name(), meta["name"].as_str().unwrap_or_default());
    assert_eq!(object.namespace().unwrap_or_default(), meta["namespace"].as_str().unwrap_or_default());
    let version = meta["resourceVersion"].as_str().unwrap_or_default();
    assert_eq!(object.resource_version().to_string(), version);
    let labels = meta["labels"].as_object().into_iter().flatten();
    for (key, value) in labels.filter_map(|(key, value)| Some((key, value.as_str()?))) {
        assert_eq!(object.labels().get(key), Some(value), "label {key}");
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// What is packed unpacks to the same; other bytes are an error or content of the length that was said.
pub fn packed(data: &[u8]) {
    let raw_len = u32::try_from(data.len() * 3).unwrap_or(0).min(1 << 16);
    for trained in [false, true] {
        if let Some(content) = unpack(data, raw_len, trained) {
            assert_eq!(content.len(), raw_len as usize, "the length is checked");
        }
    }
    let noise = String::from_utf8_lossy(data);
    let content = json!({"metadata": {"name": "x"}, "data": {"a": noise, "b": noise}}).to_string();
    let object = Object::parse(&origin(), content.into(), &Limits::default()).expect("an object");
    let json = object.json().expect("it is not packed");
    let packer = Packer::new(Packing::Packed);
    let kept = object.pack(&packer);
    assert_eq!(kept.json().expect("what was packed unpacks"), json);
    assert!(packer.stats().packed_bytes <= packer.stats().raw_bytes, "packing never takes more");
}

/// What a protobuf body says is what it says after it was written again; hostile bytes are an error.
pub fn protobuf(data: &[u8]) {
    if let Ok(object) = fuzzing::decode_protobuf(data) {
        settled(&object);
    }
    // Any JSON that can be written can be read.
    if let Ok(value) = serde_json::from_slice::<Value>(data)
        && let Ok(body) = fuzzing::encode_protobuf(&value)
        && !value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
    {
        settled(&fuzzing::decode_protobuf(&body).expect("what was written is readable"));
    }
}

fn settled(object: &Value) {
    let body = fuzzing::encode_protobuf(object).expect("what was read can be written");
    let again = fuzzing::decode_protobuf(&body).expect("what was written is readable");
    assert_eq!(&again, object);
}

/// A body reads as any other decoder reads it, fields that come twice are named, and what conforms to a type does
/// so again without a change.
pub fn json_body(data: &[u8]) {
    let other: Result<Value, _> = serde_json::from_slice(data);
    match fuzzing::json_body(data) {
        Ok((value, duplicates)) => {
            assert_eq!(Some(&value), other.as_ref().ok());
            let compact = value.to_string();
            let (again, none) = fuzzing::json_body(compact.as_bytes()).expect("what was written is readable");
            assert!(again == value && none.is_empty(), "a written body has no field twice: {none:?}");
            assert!(duplicates.len() <= data.len());
        }
        Err(_) => assert!(other.is_err(), "what others read is read: {:?}", text(data)),
    }
    if let Ok(Value::Object(mut pod)) = other
        && fuzzing::conform_pod(&mut pod).is_ok()
    {
        let once: Map<_, _> = pod.clone();
        assert_eq!(fuzzing::conform_pod(&mut pod), Ok(Vec::new()), "nothing unknown is left");
        assert_eq!(pod, once);
    }
}
