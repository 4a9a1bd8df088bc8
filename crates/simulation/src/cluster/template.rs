//! The initial content of the store of every cluster, created once.

use crate::{runtime::run_apart, subject::NAMESPACES};
use http::Request;
use kube_embedded_apiserver::storage::{MemoryStorage, Storage};
use kube_embedded_apiserver::watch_cache::CacheOptions;
use kube_embedded_apiserver::{ApiServer, LocalServer};
use serde_json::{Value, json};
use std::{
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

/// A store with the namespaces and the CRD of a world.
pub(super) struct Template {
    pub(super) storage: MemoryStorage,
    pub(super) revision: u64,
}

impl Template {
    /// The template, the same for all worlds. It is created in a thread and a runtime of its own, so that the first
    /// world runs like every other.
    pub(super) fn get() -> &'static Self {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        TEMPLATE.get_or_init(|| run_apart(create))
    }
}

async fn create() -> Template {
    let storage = MemoryStorage::new();
    let server = serve(storage.clone(), 0).await;
    let client = server.client();
    for name in NAMESPACES {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        post(&client, "/api/v1/namespaces", &namespace).await;
    }
    post(&client, CRDS, &crd()).await;
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "noise"}});
    post(&client, "/apis/coordination.k8s.io/v1/namespaces/default/leases", &lease).await;
    let revision = storage.current_revision().await.expect("memory does not fail");
    Template { storage, revision }
}

/// Starts a server on a store. Its wall clock is the clock of the world.
pub(super) async fn serve(storage: MemoryStorage, seed: u64) -> LocalServer {
    let start = tokio::time::Instant::now();
    let day = SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000);
    let mut rng = fastrand::Rng::with_seed(seed);
    // Small windows overflow often, and frequent bookmarks soon show a wrong version.
    let window_min = rng.choice([4, 16, 100]).unwrap_or(4);
    let mut options = CacheOptions::default();
    options.window_min = window_min;
    options.window_max = window_min * rng.choice([1, 4, 100]).unwrap_or(1);
    options.bookmark_period = Duration::from_secs(rng.u64(2..60));
    let server = ApiServer::builder().storage(Arc::new(storage)).cache_options(options).seed(seed);
    let server = server.clock(move || day + start.elapsed());
    server.in_process().await.expect("memory does not fail")
}

async fn post(client: &kube::Client, path: &str, body: &Value) {
    let request =
        Request::post(path).header("content-type", "application/json").body(body.to_string().into_bytes());
    let request = request.expect("a valid request");
    client.request::<Value>(request).await.expect("the server accepts the initial objects");
}

/// The path of the CRDs.
pub(super) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The CRD of the custom resource. It allows any content.
pub(super) fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.sim.example"},
        "spec": {
            "group": "sim.example",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                    "properties": {"spec": {
                        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {"shade": {"type": "string"}},
                    }},
                }},
                "selectableFields": [{"jsonPath": ".spec.shade"}],
            }],
        },
    })
}
