//! The embedded API server of a world, and the initial content of its store.

use crate::runtime::run_apart;
use http::Request;
use kube_embedded_apiserver::{ApiServer, LocalServer, storage::MemoryStorage, watch_cache::CacheOptions};
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

/// The time of day at which all worlds begin.
pub(super) fn day() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

/// A store with the CRD of sites. It is created once, in a thread and a runtime of its own, so that the first world runs like
/// every other.
pub(super) fn storage() -> MemoryStorage {
    static STORAGE: OnceLock<MemoryStorage> = OnceLock::new();
    STORAGE.get_or_init(|| run_apart(create)).backup()
}

async fn create() -> MemoryStorage {
    let storage = MemoryStorage::new();
    let server = serve(storage.clone(), 0).await;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(crd().to_string().into_bytes()).expect("a valid request");
    server.client().request::<Value>(request).await.expect("the server accepts the CRD");
    storage
}

/// Starts a server on a store. Its wall clock is the clock of the world.
pub(super) async fn serve(storage: MemoryStorage, seed: u64) -> LocalServer {
    let start = tokio::time::Instant::now();
    let mut options = CacheOptions::default();
    let mut rng = fastrand::Rng::with_seed(seed);
    options.window_min = rng.choice([16, 100]).unwrap_or(16);
    options.window_max = options.window_min * rng.choice([1, 100]).unwrap_or(1);
    options.bookmark_period = Duration::from_secs(rng.u64(5..60));
    let server = ApiServer::builder().storage(Arc::new(storage)).cache_options(options).seed(seed);
    let server = server.clock(move || day() + start.elapsed());
    server.in_process().await.expect("memory does not fail")
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.sim.example"},
        "spec": {
            "group": "sim.example",
            "scope": "Namespaced",
            "names": {"plural": "sites", "singular": "site", "kind": "Site", "listKind": "SiteList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}
