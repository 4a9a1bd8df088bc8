//! The same object in both encodings: everything that reads it finds the same.

use super::*;
use crate::{FieldPath, Kind, ListPart, ListSplitter, ObjectKey, Packer, Packing, WatchEvent, WatchSplitter};
use kube_informer_types::protobuf::{self, Envelope, ListWriter};
use serde_json::json;
use std::collections::BTreeMap;

fn origin() -> Arc<Origin> {
    Arc::new(Origin::new(Kind::namespaced("", "v1", "Pod", "pods")))
}

/// A pod as a server has it: with every field that JSON always has.
fn pod(name: &str, version: u64) -> Value {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": "shop", "uid": "5f0c7a1e-0000-4000-8000-000000000001",
            "resourceVersion": version.to_string(), "generation": 3, "creationTimestamp": "2026-11-16T10:00:00Z",
            "labels": {"app": "cart", "tier": "web"},
            "annotations": {"example.com/a": "1", "example.com/b": "2"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "cart",
                "uid": "5f0c7a1e-0000-4000-8000-000000000002", "controller": true}],
            "managedFields": [{"manager": "kubelet", "operation": "Update", "apiVersion": "v1",
                "time": "2026-11-16T10:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:phase": {}}}}],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [
                {"name": "a", "image": "registry.example/a:1", "resources": {"requests": {"cpu": "100m"}},
                    "env": [{"name": "A", "value": "1"}]},
                {"name": "b", "image": "registry.example/b:1", "resources": {},
                    "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            ],
        },
        "status": {"phase": "Running", "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True", "lastProbeTime": null,
                "lastTransitionTime": "2026-11-16T10:00:00Z"}]},
    })
}

fn message(object: &Value) -> Bytes {
    let body = protobuf::encode(object.to_string().as_bytes()).expect("a message");
    Bytes::copy_from_slice(Envelope::decode(&body).expect("an envelope").raw)
}

/// The object as it comes in JSON, and as it comes in protobuf.
fn both(object: &Value) -> [Object<Value>; 2] {
    let limits = Limits::default();
    let json = Object::parse(&origin(), object.to_string().into(), &limits).expect("an object");
    let protobuf = Object::parse_protobuf(&origin(), message(object), &limits).expect("an object");
    assert_eq!((json.media_type(), protobuf.media_type()), (MediaType::Json, MediaType::Protobuf));
    [json, protobuf]
}

fn value(object: &Object<Value>) -> Value {
    serde_json::from_slice(&object.json().expect("readable")).expect("JSON")
}

#[test]
fn identity_and_content_are_the_same() {
    let object = pod("cart-1", 7);
    let packer = Packer::new(Packing::Packed);
    for packed in [false, true] {
        let [json, protobuf] = both(&object).map(|object| if packed { packer.pack(object) } else { object });
        assert_eq!(
            (json.key(), json.uid(), json.resource_version()),
            (protobuf.key(), protobuf.uid(), protobuf.resource_version())
        );
        assert_eq!(json.labels(), protobuf.labels());
        assert_eq!((json.generation(), json.is_deleting()), (protobuf.generation(), protobuf.is_deleting()));
        assert_eq!(json.controller(), protobuf.controller());
        assert_eq!((value(&json), value(&protobuf)), (object.clone(), object.clone()));
        assert_eq!(json.view::<Value>().unwrap(), protobuf.view::<Value>().unwrap());
        assert!(json.is_same_content(&protobuf) && protobuf.is_same_content(&json));
        let other = both(&pod("cart-1", 8));
        assert!(other.iter().all(|other| !other.is_same_content(&json) && !other.is_same_content(&protobuf)));
    }
}

/// A field that protobuf cannot be without is dropped from JSON: the content has the order of the table, and not that of the
/// server.
#[test]
fn transcoded_content_is_the_same_as_that_of_a_server_without_protobuf() {
    let dropped = || FieldPath::field("status");
    let (prune, omissions) = (Prune::new([dropped()]), Arc::new(Omissions::fields([dropped()])));
    let packer = Packer::new(Packing::Packed);
    let cut = |object: Object<Value>| {
        packer.pack(object.without_fields(&prune, &omissions, &Limits::default()).expect("without status"))
    };
    let [json, transcoded] = both(&pod("cart-1", 7)).map(cut);
    assert_eq!((json.media_type(), transcoded.media_type()), (MediaType::Json, MediaType::Json));
    assert_ne!(json.json().unwrap(), transcoded.json().unwrap(), "their bytes differ");
    assert!(json.is_same_content(&transcoded) && transcoded.is_same_content(&json));
    let [other, _] = both(&pod("cart-1", 8)).map(cut);
    assert!(!transcoded.is_same_content(&other));
}

#[test]
fn views_and_errors_of_views_are_the_same() {
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Spec {
        containers: Vec<BTreeMap<String, Value>>,
    }
    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Containers {
        spec: Spec,
    }
    #[derive(Debug, serde::Deserialize)]
    struct Wrong {
        #[expect(dead_code, reason = "never decoded")]
        status: BTreeMap<String, u8>,
    }
    let [json, protobuf] = both(&pod("cart-1", 7));
    assert_eq!(json.view::<Containers>().unwrap(), protobuf.view::<Containers>().unwrap());
    let errors = [json, protobuf].map(|object| object.view::<Wrong>().unwrap_err());
    assert_eq!(errors[0].expected, errors[1].expected);
    assert!(errors.iter().all(|error| error.path.starts_with("status.")), "{errors:?}");
}

#[test]
fn fields_are_the_same() {
    let paths = FieldPaths::new(
        [
            "spec.nodeName",
            "spec.containers[*].image",
            "spec.containers[1].ports[*].containerPort",
            "spec.containers[0]",
            "metadata.labels.app",
            "metadata.managedFields[*].fieldsV1.f:status",
            "metadata.creationTimestamp",
            "status.conditions[*].lastProbeTime",
            "status.missing.deeper",
            "spec.nodeName.deeper",
            "kind",
        ]
        .map(|path| path.parse().expect("a path")),
    );
    let [json, protobuf] =
        both(&pod("cart-1", 7)).map(|object| object.read_fields(&paths).expect("readable"));
    assert_eq!(json, protobuf);
    assert_eq!(json[1], ["registry.example/a:1", "registry.example/b:1"]);
    assert_eq!((&json[2], json[8].len()), (&vec![json!(80)], 0));
}

#[test]
fn an_object_may_be_as_large_as_the_limit() {
    let (json, message) = (Bytes::from(pod("cart-1", 7).to_string()), message(&pod("cart-1", 7)));
    for (below, good) in [(0, true), (1, false), (2, false)] {
        let limits = |bytes: &Bytes| Limits::default().object_bytes(bytes.len() - below);
        let from_json = Object::<Value>::parse(&origin(), json.clone(), &limits(&json));
        let from_message = Object::<Value>::parse_protobuf(&origin(), message.clone(), &limits(&message));
        assert_eq!((from_json.is_ok(), from_message.is_ok()), (good, good), "{below}");
    }
}

/// Drops fields; returns what is left and how it is stored.
fn without(object: &Object<Value>, paths: &[&str]) -> (Value, MediaType) {
    let paths: Vec<crate::FieldPath> = paths.iter().map(|path| path.parse().expect("a path")).collect();
    let omissions = Arc::new(Omissions::fields(paths.iter().cloned()));
    let rest = object.without_fields(&Prune::new(paths), &omissions, &Limits::default()).expect("an object");
    assert_eq!((rest.key(), rest.resource_version()), (object.key(), object.resource_version()));
    (value(&rest), rest.media_type())
}

#[test]
fn dropped_fields_are_the_same() {
    let [json, protobuf] = both(&pod("cart-1", 7));
    for (paths, stored_as) in [
        (&["metadata.managedFields"][..], MediaType::Protobuf),
        (&["metadata.annotations[example.com/a]", "metadata.managedFields"], MediaType::Protobuf),
        (&["metadata.annotations"], MediaType::Protobuf),
        (&["metadata.labels", "spec.nodeName", "metadata.ownerReferences"], MediaType::Protobuf),
        (&["spec.containers[*].env", "spec.containers[0].image"], MediaType::Protobuf),
        (&["spec.containers[0]"], MediaType::Protobuf),
        (&["status.podIP", "status.missing", "spec.nodeName.deeper"], MediaType::Protobuf),
        // Empty in JSON, absent in protobuf.
        (&["metadata.annotations[example.com/a]", "metadata.annotations[example.com/b]"], MediaType::Json),
        (&["spec.containers[*]"], MediaType::Json),
        // JSON always has them, so that protobuf without them is read as zero.
        (&["status"], MediaType::Json),
        (&["spec.containers"], MediaType::Json),
        (&["spec.containers[*].resources"], MediaType::Json),
        // JSON inside protobuf.
        (&["metadata.managedFields[*].fieldsV1.f:status"], MediaType::Json),
    ] {
        let (from_json, _) = without(&json, paths);
        let (from_protobuf, media_type) = without(&protobuf, paths);
        assert_eq!(from_protobuf, from_json, "{paths:?}");
        assert_eq!(media_type, stored_as, "{paths:?}");
    }
}

/// A field that is not on the wire, and that JSON has anyway.
#[test]
fn a_zero_value_can_be_dropped() {
    let mut object = pod("cart-1", 7);
    object.as_object_mut().expect("an object").remove("status");
    let protobuf =
        Object::parse_protobuf(&origin(), message(&object), &Limits::default()).expect("an object");
    assert_eq!(value(&protobuf)["status"], json!({}));
    for paths in [&["status"][..], &["spec.containers[*].resources"], &["status.podIP"]] {
        let (rest, _) = without(&protobuf, paths);
        let prune = Prune::new(paths.iter().map(|path| path.parse().expect("a path")));
        let expected = prune.apply(&protobuf.json().expect("readable")).expect("JSON");
        assert_eq!(rest, serde_json::from_slice::<Value>(&expected).expect("JSON"), "{paths:?}");
    }
}

#[test]
fn edits_are_the_same() {
    let change = |object: &mut Value| {
        object["spec"]["containers"][0]["image"] = "registry.example/a:2".into();
        object["metadata"]["annotations"]["example.com/b"] = Value::Null;
    };
    let [json, protobuf] = both(&pod("cart-1", 7)).map(|object| object.edit(change).expect("a patch"));
    assert_eq!(json, protobuf);
}

fn list(names: &[&str]) -> Bytes {
    let mut writer = ListWriter::new("v1", "PodList", &json!({"resourceVersion": "9"})).expect("a list");
    names.iter().for_each(|name| writer.push(pod(name, 3).to_string().as_bytes()).expect("an item"));
    writer.finish()
}

/// The keys in a list, or the error that ended it.
fn keys(body: Bytes, limits: Limits) -> Result<Vec<String>, crate::BodyError> {
    let mut splitter = ListSplitter::protobuf(origin(), limits);
    let mut found = Vec::new();
    splitter.feed(body);
    while let Some(part) = splitter.next_part().inspect_err(|error| {
        assert_eq!(splitter.next_part().unwrap_err(), *error, "the error stays");
    })? {
        match part {
            ListPart::Item(pod) => found.push(pod.key().to_string()),
            ListPart::Malformed(malformed) => {
                let key = malformed.key.as_ref().map_or("?".to_owned(), ObjectKey::to_string);
                found.push(format!("malformed {key}: {}", malformed.reason));
            }
            ListPart::Meta(meta) => assert_eq!(meta.resource_version, Some("9".into())),
        }
    }
    splitter.finish()?;
    Ok(found)
}

#[test]
fn a_list_has_its_objects() {
    assert_eq!(keys(list(&["a", "b"]), Limits::default()).unwrap(), ["shop/a", "shop/b"]);
    let bound = message(&pod("a", 3)).len() + 50;
    let small = Limits { object_bytes: bound, ..Limits::default() };
    let long = "x".repeat(253);
    let found = keys(list(&["a", &long, "b"]), small).unwrap();
    assert_eq!((&*found[0], &*found[2]), ("shop/a", "shop/b"));
    assert_eq!(found[1], format!("malformed shop/{long}: it is larger than {bound} bytes"));
}

/// A message with one more field, of a number that no release has used so far.
fn from_the_future(object: &Value) -> Bytes {
    let mut message = message(object).to_vec();
    message.extend_from_slice(&[0xfa, 0x7f, 1, 7]);
    message.into()
}

#[test]
fn an_unknown_field_ends_a_list_and_a_watch() {
    let object = from_the_future(&pod("a", 3));
    let mut raw = vec![0x12];
    let mut length = object.len();
    while length >= 0x80 {
        raw.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    raw.push(length as u8);
    raw.extend_from_slice(&object);
    let body = Envelope { api_version: "v1", kind: "PodList", raw: &raw }.encode();
    assert_eq!(keys(body.into(), Limits::default()), Err(crate::BodyError::UnknownFields));

    let known = protobuf::encode_event("ADDED", pod("a", 3).to_string().as_bytes()).expect("an event");
    let envelope = Envelope { api_version: "v1", kind: "Pod", raw: &object }.encode();
    let event = [&[0x0a, 5][..], b"ADDED", &nested(2, &nested(1, &envelope))].concat();
    let unknown = [&u32::try_from(event.len()).unwrap().to_be_bytes()[..], &event].concat();
    let mut watch = WatchSplitter::protobuf(origin(), Limits::default());
    watch.feed([&known[..], &unknown].concat().into());
    assert!(matches!(watch.next_event(), Ok(Some(WatchEvent::Added(_)))));
    for _ in 0..2 {
        assert_eq!(watch.next_event().unwrap_err(), crate::BodyError::UnknownFields);
    }
    assert!(watch.finish().is_err());
}

/// A field with bytes.
fn nested(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        field.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend_from_slice(bytes);
    field
}

#[test]
fn a_watch_has_its_events() {
    let event = |event_type: &str, object: &Value| {
        protobuf::encode_event(event_type, object.to_string().as_bytes()).expect("an event")
    };
    let mut bookmark = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"resourceVersion": "12",
        "annotations": {"k8s.io/initial-events-end": "true"}}});
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "too old", "reason": "Expired", "code": 410});
    let body = [
        event("MODIFIED", &pod("a", 3)),
        event("BOOKMARK", &bookmark),
        event("STRANGE", &pod("b", 4)),
        event("", &pod("c", 5)),
        event("ERROR", &status),
    ]
    .concat();
    bookmark["metadata"]["annotations"] = Value::Null;
    let mut watch = WatchSplitter::protobuf(origin(), Limits::default());
    watch.feed(body.into());
    let mut next = || watch.next_event().expect("no error").expect("an event");
    assert!(matches!(next(), WatchEvent::Modified(pod) if pod.key().to_string() == "shop/a"));
    assert!(matches!(next(), WatchEvent::Bookmark(bookmark)
        if bookmark.initial_events_end && bookmark.resource_version == "12".into()));
    assert!(matches!(next(), WatchEvent::Malformed(malformed)
        if malformed.key.as_ref().is_some_and(|key| key.to_string() == "shop/b")));
    assert!(matches!(next(), WatchEvent::Malformed(malformed)
        if malformed.reason.contains("without a type") && malformed.resource_version == Some(5.into())));
    assert!(
        matches!(next(), WatchEvent::Error(status) if status.is_expired() && status.message == "too old")
    );
    assert!(watch.next_event().expect("no error").is_none());
    let mut watch = WatchSplitter::protobuf(origin(), Limits::default());
    watch.feed(event("ERROR", &pod("a", 3)));
    assert_eq!(watch.next_event().unwrap_err(), crate::BodyError::ErrorWithoutStatus);
}
