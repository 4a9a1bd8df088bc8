//! A program that keeps all pods in a store, as programs of kube-rs do.
//!
//! The peer and `bench contender` compile this file. Only the module `runtime` differs: `kube_runtime`, or the drop-in for it.

use super::runtime::{
    WatchStreamExt,
    reflector::{self, Store},
    watcher,
};
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::{cell::Cell, time::Instant};

/// Fills a store with all pods, and resolves when it has them.
pub(super) async fn follow(client: Client) -> Result<Store<Pod>, reflector::store::WriterDropped> {
    let (reader, writer) = reflector::store();
    let pods = watcher(Api::<Pod>::all(client), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects();
    tokio::spawn(async move {
        pin_mut!(pods);
        while let Some(pod) = pods.next().await {
            if let Err(error) = pod {
                eprintln!("{error}");
            }
        }
    });
    reader.wait_until_ready().await?;
    Ok(reader)
}

/// Reads all pods of the store, one at a time (`find`) or at once (`state`). Returns how long it took.
pub(super) fn read(store: &Store<Pod>, how: &str) -> Value {
    let (start, bytes) = (Instant::now(), Cell::new(0));
    let count = |pod: &Pod| bytes.set(bytes.get() + pod.name_any().len());
    match how {
        "find" => drop(store.find(|pod| {
            count(pod);
            false
        })),
        _ => store.state().iter().for_each(|pod| count(pod)),
    }
    json!({"seconds": start.elapsed().as_secs_f64(), "bytes": bytes.get()})
}
