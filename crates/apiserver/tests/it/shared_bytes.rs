//! Clients that do not read: they hold no copy of what they were sent.

use bytes::Bytes;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::json;

use crate::cluster::Cluster;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const CLIENTS: usize = 50;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf;stream=watch";

async fn cluster() -> Cluster {
    let cluster = Cluster::new().await;
    let secret = json!({"metadata": {"name": "large"}, "stringData": {"k": "x".repeat(600_000)}});
    assert_eq!(cluster.post(SECRETS, secret).await.0, 201);
    cluster
}

/// The pieces of a response up to the first that is larger than 100 KB.
async fn large_piece(body: &mut Body) -> Bytes {
    loop {
        let frame = body.frame().await.expect("a large piece").expect("no error");
        let data = frame.into_data().expect("data");
        if data.len() > 100_000 {
            return data;
        }
    }
}

/// Sends the request several times, and returns the addresses of the large pieces while all are held.
async fn addresses(cluster: &Cluster, path: &str, accept: &str) -> Vec<*const u8> {
    let mut held = Vec::new();
    for _ in 0..CLIENTS {
        let mut body = cluster.open(path, accept).await;
        held.push((large_piece(&mut body).await, body));
    }
    held.iter().map(|(piece, _)| piece.as_ptr()).collect()
}

#[tokio::test(start_paused = true)]
async fn unread_responses_share_one_copy_of_a_large_object() {
    let cluster = cluster().await;
    let watch = format!("{SECRETS}?watch=1&resourceVersion=0");
    let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    for (path, accept) in [
        (watch.as_str(), "application/json"),
        (watch.as_str(), PROTOBUF),
        (SECRETS, "application/json"),
        (&format!("{SECRETS}/large"), "application/json"),
    ] {
        let addresses = addresses(&cluster, path, accept).await;
        assert!(addresses.iter().all(|address| *address == addresses[0]), "{path} as {accept}");
    }
    let (code, list) = cluster.get_as(SECRETS, metadata.replace("Metadata;", "MetadataList;").as_str()).await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(1)));
}

#[tokio::test(start_paused = true)]
async fn events_of_a_large_object_are_whole() {
    let cluster = cluster().await;
    let mut watch = cluster.watch(&format!("{SECRETS}?watch=1&resourceVersion=0")).await;
    let added = watch.next_large().await;
    assert_eq!(added["type"], "ADDED");
    let (_, stored) = cluster.get(&format!("{SECRETS}/large")).await;
    assert_eq!(added["object"], stored);
    let patch = json!({"metadata": {"labels": {"a": "b"}}});
    cluster.patch(&format!("{SECRETS}/large"), crate::cluster::MERGE, patch).await;
    let modified = watch.next_large().await;
    assert_eq!(
        (&modified["type"], &modified["object"]["metadata"]["labels"]["a"]),
        (&json!("MODIFIED"), &json!("b"))
    );
    let (_, list) = cluster.get(SECRETS).await;
    assert_eq!(list["items"][0]["data"], modified["object"]["data"]);
}
