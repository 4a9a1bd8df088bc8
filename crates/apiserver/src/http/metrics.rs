//! `/metrics`: counters of requests and what the caches and the store say of themselves.

use std::fmt::Write;

use http::{Response, StatusCode};

use super::answer::respond_text;
use super::body::AnswerBody;
use crate::engine::Engine;
use crate::metrics::head;
use crate::registry::Resource;
use crate::watch_cache::CacheStats;

const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// One number of a cache: its name, type, meaning, and where it comes from.
type Gauge = (&'static str, &'static str, &'static str, fn(&CacheStats) -> u64);

const OF_CACHES: [Gauge; 6] = [
    ("apiserver_watch_cache_events_received_total", "counter", "Changes a watch cache was told of.", |s| {
        s.received
    }),
    (
        "apiserver_watch_cache_events_dispatched_total",
        "counter",
        "Changes a watch cache told its watches of.",
        |s| s.received,
    ),
    ("apiserver_watch_cache_resource_version", "gauge", "The newest version a watch cache shows.", |s| {
        s.revision
    }),
    ("apiserver_watch_cache_initializations_total", "counter", "How often a watch cache was filled.", |s| {
        s.initializations
    }),
    (
        "apiserver_terminated_watchers_total",
        "counter",
        "Watches closed because they were read too slowly.",
        |s| s.terminated,
    ),
    ("watch_cache_capacity", "gauge", "Changes the window of a watch cache has room for.", |s| {
        s.capacity as u64
    }),
];

/// Everything, in the text format of Prometheus.
pub(crate) async fn scrape(engine: &Engine) -> Response<AnswerBody> {
    let mut out = String::new();
    engine.metrics.write(&mut out);
    let stats = engine.cache_stats();
    write_watches(&stats, &mut out);
    head(
        &mut out,
        "apiserver_storage_objects",
        "gauge",
        "Stored objects by resource; events are not counted.",
    );
    for (resource, stats) in stats.iter().filter(|(resource, _)| resource.watch_cached) {
        let _ = writeln!(
            out,
            "apiserver_storage_objects{{resource=\"{}\"}} {}",
            resource.qualified(),
            stats.objects
        );
    }
    head(&mut out, "apiserver_storage_size_bytes", "gauge", "Bytes the store takes to keep everything.");
    if let Ok(bytes) = engine.storage.size().await {
        let _ = writeln!(out, "apiserver_storage_size_bytes{{storage_cluster_id=\"default\"}} {bytes}");
    }
    for (name, kind, help, value) in OF_CACHES {
        head(&mut out, name, kind, help);
        for (resource, stats) in &stats {
            let (group, plural) = (&resource.group, &resource.plural);
            let _ = writeln!(out, "{name}{{group=\"{group}\",resource=\"{plural}\"}} {}", value(stats));
        }
    }
    respond_text(StatusCode::OK, CONTENT_TYPE, out)
}

fn write_watches(stats: &[(std::sync::Arc<Resource>, CacheStats)], out: &mut String) {
    head(out, "apiserver_longrunning_requests", "gauge", "Open watches.");
    for (resource, stats) in stats.iter().filter(|(_, stats)| stats.watches > 0) {
        let Resource { group, version, plural, .. } = &**resource;
        let _ = writeln!(
            out,
            "apiserver_longrunning_requests{{component=\"apiserver\",group=\"{group}\",resource=\"{plural}\",subresource=\"\",\
             verb=\"WATCH\",version=\"{version}\"}} {}",
            stats.watches
        );
    }
}
