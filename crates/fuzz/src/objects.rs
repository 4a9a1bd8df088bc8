//! Whole objects: identity, packing, JSON and protobuf.

use crate::{depth, origin, text};
use bytes::Bytes;
use kube_embedded_apiserver::fuzzing;
use kube_informer_wire::{Limits, Object, Packer, Packing, Restorer, fuzzing::unpack, save_paths};
use serde_json::{Map, Value, json};

/// The identity parser agrees with a full JSON decoder and accepts every valid object; packing preserves every byte; the
/// view has `kind` and `apiVersion`.
pub fn object(data: &[u8]) {
    let limits = Limits::default();
    let parsed = Object::parse(&origin(), Bytes::copy_from_slice(data), &limits);
    let decoded: Option<Value> = serde_json::from_slice(data).ok();
    if let (Err(why), Some(value)) = (&parsed, &decoded) {
        let meta = &value["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let valid_key =
            !text("name").is_empty() && !text("name").contains('/') && !text("namespace").contains('/');
        let within_limits = meta["labels"].as_object().is_none_or(|labels| labels.len() <= limits.labels)
            && depth(value) <= 100;
        assert!(!valid_key || !within_limits, "a valid object is rejected: {why}");
    }
    let Ok(object) = parsed else { return };
    if let Some(value) = &decoded {
        assert_same_identity(&object, &value["metadata"]);
        let full: Value = object.view().expect("a parsed object is JSON");
        assert!(full["kind"].is_string() && full["apiVersion"].is_string(), "the type is missing: {full}");
    }
    let json = object.json().expect("it is not packed");
    let again = Object::parse(&origin(), json.clone(), &limits).expect("a parsed object parses again");
    assert!(again.is_same_content(&object) && again.key() == object.key() && again.uid() == object.uid());
    let packed = Packer::new(Packing::Packed).pack(object);
    assert_eq!(packed.json().expect("a packed object unpacks"), json);
}

fn assert_same_identity(object: &Object<Value>, meta: &Value) {
    assert_eq!(object.name(), meta["name"].as_str().unwrap_or_default());
    assert_eq!(object.namespace().unwrap_or_default(), meta["namespace"].as_str().unwrap_or_default());
    let version = meta["resourceVersion"].as_str().unwrap_or_default();
    assert_eq!(object.resource_version().to_string(), version);
    let labels = meta["labels"].as_object().into_iter().flatten();
    for (key, value) in labels.filter_map(|(key, value)| Some((key, value.as_str()?))) {
        assert_eq!(object.labels().get(key), Some(value), "label {key}");
    }
}

/// Packed content unpacks to the same bytes. Other bytes are an error or have the stated length.
pub fn packed(data: &[u8]) {
    let raw_len = u32::try_from(data.len() * 3).unwrap_or(0).min(1 << 16);
    for trained in [false, true] {
        if let Some(content) = unpack(data, raw_len, trained) {
            assert_eq!(content.len(), raw_len as usize, "the stated length differs");
        }
    }
    let noise = String::from_utf8_lossy(data);
    let content = json!({"metadata": {"name": "x"}, "data": {"a": noise, "b": noise}}).to_string();
    let object = Object::parse(&origin(), content.into(), &Limits::default()).expect("an object");
    let json = object.json().expect("it is not packed");
    let packer = Packer::new(Packing::Packed);
    let packed = packer.pack(object);
    assert_eq!(packed.json().expect("a packed object unpacks"), json);
    assert!(packer.stats().packed_bytes <= packer.stats().raw_bytes, "packing enlarges the content");
}

/// Any bytes are a saved object or an error, and a restored object is saved as bytes from which it is restored again. The
/// bytes are a tag of eight bytes, the length of the record in one byte, the record, and the content.
pub fn saved(data: &[u8]) {
    let Some((tag, rest)) = data.split_first_chunk() else { return };
    let Some((&len, rest)) = rest.split_first() else { return };
    let Some((record, content)) = rest.split_at_checked(usize::from(len)) else { return };
    let packer = Packer::new(Packing::Packed);
    let path = || vec!["spec.nodeName".parse().ok()];
    let mut restorer = Restorer::new(&packer, origin(), path());
    restorer.add_paths(0, &save_paths(&path())).expect("paths that were saved are restored");
    let Some(object) = restored(&mut restorer, record, u64::from_le_bytes(*tag), content) else { return };
    let (mut record, mut content) = (Vec::new(), Vec::new());
    object.save_record(0, &mut record);
    let saved = packer.save_content(&object, &mut content).expect("it needs no dictionary");
    let again = restored(&mut restorer, &record, saved.tag, &content).expect("a saved object is restored");
    assert_eq!((object.uid(), object.resource_version()), (again.uid(), again.resource_version()));
    assert_eq!((object.labels(), object.controller()), (again.labels(), again.controller()));
    assert_eq!((object.generation(), object.omissions()), (again.generation(), again.omissions()));
    assert_eq!((object.packed_fields(), object.content_len()), (again.packed_fields(), again.content_len()));
    assert_eq!(object.json().ok(), again.json().ok());
}

fn restored(restorer: &mut Restorer<'_>, record: &[u8], tag: u64, content: &[u8]) -> Option<Object<Value>> {
    let content = restorer.content(tag, content.to_vec()).ok()?;
    restorer.object("shop/cart", record, content).ok()
}

/// Decoding, encoding and decoding protobuf gives an equal object; hostile bytes are an error.
pub fn protobuf(data: &[u8]) {
    if let Ok(object) = fuzzing::decode_protobuf(data) {
        assert_round_trip(&object);
    }
    // JSON that can be encoded can be decoded.
    if let Ok(value) = serde_json::from_slice::<Value>(data)
        && let Ok(body) = fuzzing::encode_protobuf(&value)
        && !value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
    {
        assert_round_trip(&fuzzing::decode_protobuf(&body).expect("an encoded object decodes"));
    }
}

fn assert_round_trip(object: &Value) {
    let body = fuzzing::encode_protobuf(object).expect("a decoded object encodes");
    let again = fuzzing::decode_protobuf(&body).expect("an encoded object decodes");
    assert_eq!(&again, object);
}

/// A body decodes as with another decoder, without duplicate fields once encoded again, and conforming to a type is
/// idempotent.
pub fn json_body(data: &[u8]) {
    let other: Result<Value, _> = serde_json::from_slice(data);
    match fuzzing::json_body(data) {
        Ok((value, duplicates)) => {
            assert_eq!(Some(&value), other.as_ref().ok());
            let compact = value.to_string();
            let (again, none) = fuzzing::json_body(compact.as_bytes()).expect("an encoded object decodes");
            assert!(again == value && none.is_empty(), "an encoded body has duplicate fields: {none:?}");
            assert!(duplicates.len() <= data.len());
        }
        Err(_) => assert!(other.is_err(), "valid JSON is rejected: {:?}", text(data)),
    }
    if let Ok(Value::Object(mut pod)) = other
        && fuzzing::conform_pod(&mut pod).is_ok()
    {
        let once: Map<_, _> = pod.clone();
        assert_eq!(fuzzing::conform_pod(&mut pod), Ok(Vec::new()), "conforming is not idempotent");
        assert_eq!(pod, once);
    }
}
