//! The identity in protobuf is that in JSON.

use super::*;
use crate::identity::Identity;
use kube_informer_types::protobuf::{self, Envelope};
use serde_json::{Value, json};

/// The identity of a config map with this metadata in both encodings.
fn both(metadata: &Value) -> [Result<Identity, Malformed>; 2] {
    let json = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).to_string();
    let body = protobuf::encode(json.as_bytes()).expect("an object");
    let message = Envelope::decode(&body).expect("an envelope").raw;
    let limits = Limits::default();
    [
        Scan::read(json.as_bytes(), &limits).and_then(|scan| scan.identity(&limits)),
        Scan::read_protobuf(message, &limits).and_then(|scan| scan.identity(&limits)),
    ]
}

fn text(identity: &Result<Identity, Malformed>) -> String {
    format!("{identity:?}")
}

#[test]
fn both_encodings_have_the_same_identity() {
    let rows = [
        json!({"name": "a"}),
        json!({"name": "a", "namespace": "ns", "uid": "6c3d9f63-93a4-4d55-8a0a-3b2d1b4d5b6f", "resourceVersion": "17"}),
        json!({"name": "a", "generation": 3, "deletionTimestamp": "2026-01-02T03:04:05Z"}),
        json!({"name": "a", "labels": {"app": "web", "empty": "", "é": "ü"}}),
        json!({"name": "a", "annotations": {"k8s.io/initial-events-end": "true"}}),
        json!({"name": "a", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1"},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true},
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": "3", "controller": true}]}),
        json!({}),
        json!({"name": "with/slash"}),
        json!({"name": "a", "managedFields": [{"manager": "m", "fieldsV1": {"f:data": {}}}], "finalizers": ["f"]}),
    ];
    for metadata in rows {
        let [json, protobuf] = both(&metadata);
        assert_eq!(text(&protobuf), text(&json), "{metadata}");
    }
}

#[test]
fn too_many_labels_are_malformed_in_both_encodings() {
    let labels: serde_json::Map<String, Value> =
        (0..=Limits::default().labels).map(|n| (format!("l{n}"), "".into())).collect();
    for identity in both(&json!({"name": "a", "resourceVersion": "5", "labels": labels})) {
        let malformed = identity.expect_err("malformed");
        assert_eq!(malformed.resource_version, Some("5".into()));
        assert_eq!(malformed.key, Some("a".parse().expect("a key")));
    }
}

#[test]
fn damaged_messages_are_malformed_or_have_an_identity() {
    let mut random = fastrand::Rng::with_seed(7);
    let json = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"name": "a",
        "namespace": "ns", "uid": "u", "resourceVersion": "17", "generation": 3, "labels": {"a": "b"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": true}]}});
    let body = protobuf::encode(json.to_string().as_bytes()).expect("an object");
    let message = Envelope::decode(&body).expect("an envelope").raw.to_vec();
    let limits = Limits::default();
    let (mut readable, mut malformed) = (0, 0);
    for _ in 0..20_000 {
        let mut damaged = message.clone();
        for _ in 0..random.usize(1..3) {
            let at = random.usize(..damaged.len());
            match random.u8(..3) {
                0 => damaged[at] = random.u8(..),
                1 => damaged.truncate(at.max(1)),
                _ => damaged.insert(at, random.u8(..)),
            }
        }
        match Scan::read_protobuf(&damaged, &limits).and_then(|scan| scan.identity(&limits)) {
            Ok(_) => readable += 1,
            Err(_) => malformed += 1,
        }
    }
    assert!(readable > 1000 && malformed > 1000, "{readable} readable, {malformed} malformed");
}
