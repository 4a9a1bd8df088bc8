//! Calls of the handler.

use crate::protocol::{SENT_AT, unix_nanos};
use anyhow::bail;
use k8s_openapi::{api::core::v1::Pod, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_informer::{HandlerFuncs, Object};
use kube_informer_wire::sync::lock;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Calls of the handler since the last reset.
#[derive(Default)]
pub(super) struct HandlerCalls {
    calls: AtomicU64,
    /// The highest resource version.
    newest: AtomicU64,
    /// Times of the first and the last call, in nanoseconds since 1970.
    first: AtomicU64,
    last: AtomicU64,
    /// Latencies from a write to the call, in nanoseconds.
    delays: Mutex<Vec<u64>>,
}

impl HandlerCalls {
    pub(super) fn handler(calls: &Arc<Self>) -> HandlerFuncs<Pod> {
        let (added, updated, deleted) = (Arc::clone(calls), Arc::clone(calls), Arc::clone(calls));
        HandlerFuncs::new()
            .on_add(move |object, _| added.record(object))
            .on_update(move |_, object| updated.record(object))
            .on_delete(move |last| deleted.record(last.object()))
    }

    pub(super) fn record(&self, object: &Object<Pod>) {
        let sent = object.labels().get(SENT_AT).and_then(|sent| sent.parse().ok());
        self.record_version(object.resource_version().number().unwrap_or(0), sent);
    }

    pub(super) fn record_decoded(&self, meta: &ObjectMeta) {
        let sent = meta.labels.as_ref().and_then(|labels| labels.get(SENT_AT)?.parse().ok());
        let version = meta.resource_version.as_ref().and_then(|version| version.parse().ok());
        self.record_version(version.unwrap_or(0), sent);
    }

    fn record_version(&self, version: u64, sent: Option<u64>) {
        let now = unix_nanos();
        if self.calls.fetch_add(1, Relaxed) == 0 {
            self.first.store(now, Relaxed);
        }
        self.last.store(now, Relaxed);
        if let Some(sent) = sent {
            lock(&self.delays).push(now.saturating_sub(sent));
        }
        self.newest.fetch_max(version, Relaxed);
    }

    pub(super) fn reset(&self) -> Value {
        self.calls.store(0, Relaxed);
        lock(&self.delays).clear();
        json!({})
    }

    /// Waits for a number of calls.
    pub(super) async fn wait_for_count(&self, calls: u64, timeout: Duration) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.calls.load(Relaxed) < calls {
            if start.elapsed() > timeout {
                bail!("only {} of {calls} calls arrived", self.calls.load(Relaxed));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Waits until the handler has received an object of this version or a later one.
    pub(super) async fn wait_for_version(&self, version: u64, timeout: Duration) -> anyhow::Result<Value> {
        let start = Instant::now();
        while self.newest.load(Relaxed) < version {
            if start.elapsed() > timeout {
                bail!("version {version} did not arrive, only {}", self.newest.load(Relaxed));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(
            json!({"calls": self.calls.load(Relaxed), "first": self.first.load(Relaxed), "last": self.last.load(Relaxed)}),
        )
    }

    pub(super) fn latency(&self) -> Value {
        let mut delays = std::mem::take(&mut *lock(&self.delays));
        delays.sort_unstable();
        let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).map(|ns| *ns as f64 / 1e3);
        json!({"samples": delays.len(), "p50_us": at(0.5), "p99_us": at(0.99)})
    }
}
