//! Protobuf of every kind: written, read, watched, and damaged in every way.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use kube_informer_types::protobuf::{self, Envelope, write};
use serde_json::Value;

use super::{Kind, kinds};
use crate::cluster::Cluster;

const PROTOBUF: &str = protobuf::MEDIA_TYPE;

fn encoded(kind: &Kind) -> Vec<u8> {
    let body = protobuf::encode(kind.sample().to_string().as_bytes());
    body.unwrap_or_else(|error| panic!("{}: {error}", kind.kind)).to_vec()
}

async fn get(c: &Cluster, path: &str) -> Bytes {
    let body = c.open(path, PROTOBUF).await;
    body.collect().await.expect("a complete response").to_bytes()
}

/// Clients of Go prefer protobuf wherever a kind has it, so that a group without it cannot be used by them.
#[tokio::test(start_paused = true)]
async fn every_kind_is_written_and_read_as_protobuf() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        let (code, _, _) = c.send_text("POST", &kind.path(), PROTOBUF, encoded(kind)).await;
        assert_eq!(code, 201, "{}", kind.kind);
        let (_, json) = c.get(&kind.object_path()).await;
        let read = get(&c, &kind.object_path()).await;
        assert_eq!(protobuf::decode(&read).as_ref(), Ok(&json), "{}", kind.kind);
        // An object that was read can be written back.
        let (code, _, _) = c.send_text("PUT", &kind.object_path(), PROTOBUF, read.to_vec()).await;
        assert_eq!((code, c.get(&kind.object_path()).await.1), (200, json), "{}", kind.kind);
        let list = get(&c, &kind.path()).await;
        let envelope = Envelope::decode(&list).unwrap_or_else(|error| panic!("{}: {error}", kind.kind));
        assert_eq!(
            (envelope.api_version, envelope.kind),
            (&*kind.api_version, &*format!("{}List", kind.kind))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_is_watched_as_protobuf() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await.iter().filter(|kind| !kind.is_alias()) {
        c.post(&kind.path(), kind.sample()).await;
        let name = kind.sample()["metadata"]["name"].as_str().expect("a name").to_owned();
        let path = format!("{}?watch=1&resourceVersion=0&fieldSelector=metadata.name={name}", kind.path());
        let mut body = c.open(&path, protobuf::WATCH_MEDIA_TYPE).await;
        let frame = body.frame().await.expect("an event").expect("a frame").into_data().expect("data");
        let (length, event) = frame.split_at(4);
        assert_eq!(
            u32::from_be_bytes(length.try_into().expect("4 bytes")) as usize,
            event.len(),
            "{}",
            kind.kind
        );
        assert!(event.starts_with(b"\x0a\x05ADDED"), "{}", kind.kind);
        let start = event.windows(4).position(|bytes| bytes == b"k8s\0").expect("an envelope");
        let (_, json) = c.get(&kind.object_path()).await;
        assert_eq!(protobuf::decode(&event[start..]), Ok(json), "{}", kind.kind);
    }
}

/// Damaged bodies: each byte changed to several others, cut off at each place, and lengths that promise more than there is.
fn damaged(body: &[u8]) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = (0..body.len()).map(|at| body[..at].to_vec()).collect();
    for at in 4..body.len() {
        // Other field numbers, wire types and lengths.
        for change in [body[at] ^ 1, body[at] ^ 7, body[at] ^ 0x80, 0, 0x7f, 0xff] {
            let mut changed = body.to_vec();
            changed[at] = change;
            all.push(changed);
        }
        let mut long = body.to_vec();
        long.splice(at..=at, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        all.push(long);
    }
    all
}

/// A damaged body is an error of the client, or another object. It never is an error of the server, and never stops it.
#[tokio::test(start_paused = true)]
async fn damaged_protobuf_of_every_kind_is_refused_or_read() {
    let c = Cluster::new().await;
    let mut refused = 0;
    for kind in kinds(&c).await {
        let path = format!("{}?dryRun=All", kind.path());
        let bodies = damaged(&encoded(&kind));
        // All of them for small bodies; a part of them, spread evenly, for large ones.
        for body in bodies.iter().step_by(1 + bodies.len() / 150) {
            let (code, response, _) = c.send_text("POST", &path, PROTOBUF, body.clone()).await;
            assert!(
                matches!(code, 201 | 400 | 403 | 404 | 409 | 415 | 422),
                "{}: {code} {response}",
                kind.kind
            );
            refused += usize::from(code >= 400);
        }
    }
    assert!(refused > 1000, "only {refused} bodies were refused");
    assert_eq!(c.get("/readyz").await.0, 200);
}

/// A message of this depth: `levels` times field 1 of length, with the next one inside.
fn nested(levels: usize) -> Vec<u8> {
    let mut message = Vec::new();
    for _ in 0..levels {
        let mut outer = Vec::new();
        write::bytes(&mut outer, 1, &message);
        message = outer;
    }
    message
}

#[tokio::test(start_paused = true)]
async fn deep_and_empty_messages_of_every_kind_end() {
    let c = Cluster::new().await;
    for kind in kinds(&c).await {
        let path = format!("{}?dryRun=All", kind.path());
        for raw in [Vec::new(), nested(20), nested(200), nested(5_000), vec![0x0b; 50_000], vec![0; 1_000]] {
            let body = Envelope { api_version: &kind.api_version, kind: &kind.kind, raw: &raw }.encode();
            let (code, response, _) = c.send_text("POST", &path, PROTOBUF, body).await;
            assert!(matches!(code, 201 | 400 | 413 | 422), "{}: {code} {response}", kind.kind);
        }
        // The body of one kind is not one of another.
        let (api_version, other) = if kind.kind == "Secret" { ("v1", "ConfigMap") } else { ("v1", "Secret") };
        let body = Envelope { api_version, kind: other, raw: &[] }.encode();
        let (code, response, _) = c.send_text("POST", &path, PROTOBUF, body).await;
        assert_eq!(code, 400, "{}: {response}", kind.kind);
        let none: Value = c.send_text("POST", &path, PROTOBUF, Vec::new()).await.1;
        assert!(none["code"].as_u64().is_some_and(|code| code < 500), "{}: {none}", kind.kind);
    }
}
