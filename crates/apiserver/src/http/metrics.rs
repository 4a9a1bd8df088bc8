//! `/metrics`: counters of requests, and the state of the caches and the store.

use std::sync::Arc;

use http::{Response, StatusCode};
use prometheus::proto::MetricFamily;
use prometheus::{IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};

use super::body::ResponseBody;
use super::error::HttpError;
use super::negotiate::Format;
use super::probes;
use super::respond::{respond_error, respond_text};
use crate::api::Api;
use crate::caches::Caches;
use crate::metrics::{Metrics, register};
use crate::registry::Resource;
use crate::storage::Storage;
use crate::watch_cache::CacheStats;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One number of a cache: its name, its meaning, and its value.
type Reading = (&'static str, &'static str, fn(&CacheStats) -> u64);

const CACHE_COUNTERS: [Reading; 4] = [
    ("apiserver_watch_cache_events_received_total", "Changes a watch cache was told of.", |s| s.received),
    ("apiserver_watch_cache_events_dispatched_total", "Changes a watch cache told its watches of.", |s| {
        s.received
    }),
    ("apiserver_watch_cache_initializations_total", "How often a watch cache was filled.", |s| {
        s.initializations
    }),
    ("apiserver_terminated_watchers_total", "Watches closed because they were read too slowly.", |s| {
        s.terminated
    }),
];
const CACHE_GAUGES: [Reading; 2] = [
    ("apiserver_watch_cache_resource_version", "The newest version a watch cache shows.", |s| s.revision),
    ("watch_cache_capacity", "Changes the window of a watch cache has room for.", |s| s.capacity as u64),
];

/// All metrics in the text format of Prometheus.
pub(crate) async fn scrape(
    metrics: &Metrics,
    caches: &Caches,
    storage: &dyn Storage,
) -> Response<ResponseBody> {
    let snapshot = Registry::new();
    record_caches(&snapshot, &caches.stats());
    if let Ok(bytes) = storage.size().await {
        let help = "Bytes the store takes to keep everything.";
        let sizes = gauges(&snapshot, "apiserver_storage_size_bytes", help, &["storage_cluster_id"]);
        sizes.with_label_values(&["default"]).set(signed(bytes));
    }
    let mut families = metrics.gather();
    families.extend(snapshot.gather());
    respond(&families)
}

/// `/metrics/slis`: the results of the health checks.
pub(crate) async fn health(api: &Api) -> Response<ResponseBody> {
    let registry = Registry::new();
    let help = "Whether a health check passes.";
    let results = gauges(&registry, "kubernetes_healthcheck", help, &["name", "type"]);
    for endpoint in ["healthz", "livez", "readyz"] {
        for (name, passes) in probes::checks(api, endpoint).await {
            results.with_label_values(&[name, endpoint]).set(passes.into());
        }
    }
    respond(&registry.gather())
}

fn respond(families: &[MetricFamily]) -> Response<ResponseBody> {
    match TextEncoder::new().encode_to_string(families) {
        Ok(text) => respond_text(StatusCode::OK, CONTENT_TYPE, text),
        Err(error) => respond_error(&HttpError::Metrics(error), Format::Json),
    }
}

fn record_caches(registry: &Registry, caches: &[(Arc<Resource>, CacheStats)]) {
    let watches = gauges(
        registry,
        "apiserver_longrunning_requests",
        "Open watches.",
        &["component", "group", "resource", "subresource", "verb", "version"],
    );
    let help = "Stored objects by resource; events are not counted.";
    let objects = gauges(registry, "apiserver_storage_objects", help, &["resource"]);
    for (resource, stats) in caches {
        if stats.watches > 0 {
            let labels = [
                "apiserver",
                resource.group.as_str(),
                &*resource.plural,
                "",
                "WATCH",
                resource.version.as_str(),
            ];
            watches.with_label_values(&labels).set(signed(stats.watches as u64));
        }
        if resource.watch_cached {
            objects.with_label_values(&[&resource.qualified()]).set(signed(stats.objects as u64));
        }
    }
    for (name, help, value) in CACHE_COUNTERS {
        let family = IntCounterVec::new(Opts::new(name, help), &["group", "resource"]);
        let family = register(registry, family);
        for (resource, stats) in caches {
            family.with_label_values(&[resource.group.as_str(), &*resource.plural]).inc_by(value(stats));
        }
    }
    for (name, help, value) in CACHE_GAUGES {
        let family = gauges(registry, name, help, &["group", "resource"]);
        for (resource, stats) in caches {
            family.with_label_values(&[resource.group.as_str(), &*resource.plural]).set(signed(value(stats)));
        }
    }
}

fn gauges(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
    register(registry, IntGaugeVec::new(Opts::new(name, help), labels))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
