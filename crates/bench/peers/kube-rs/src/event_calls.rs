//! Events of the stream since the last reset, as in `bench contender`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

#[derive(Default)]
pub struct EventCalls {
    calls: AtomicU64,
    newest: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    delays: Mutex<Vec<u64>>,
}

pub fn unix_nanos() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos() as u64)
}

impl EventCalls {
    pub fn record(&self, meta: &ObjectMeta, now: u64) {
        if self.calls.fetch_add(1, Relaxed) == 0 {
            self.first.store(now, Relaxed);
        }
        self.last.store(now, Relaxed);
        let sent = meta.labels.as_ref().and_then(|labels| labels.get("bench/sent-at"));
        if let Some(sent) = sent.and_then(|sent| sent.parse::<u64>().ok()) {
            self.delays.lock().unwrap().push(now.saturating_sub(sent));
        }
        let version = meta.resource_version.as_ref().and_then(|version| version.parse().ok());
        self.newest.fetch_max(version.unwrap_or(0), Relaxed);
    }

    pub fn reset(&self) -> Value {
        self.calls.store(0, Relaxed);
        self.delays.lock().unwrap().clear();
        json!({})
    }

    pub async fn wait_for_count(&self, calls: u64) {
        while self.calls.load(Relaxed) < calls {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub async fn wait_for_version(&self, version: u64) -> Value {
        while self.newest.load(Relaxed) < version {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        json!({"calls": self.calls.load(Relaxed), "first": self.first.load(Relaxed), "last": self.last.load(Relaxed)})
    }

    pub fn latency(&self) -> Value {
        let mut delays = std::mem::take(&mut *self.delays.lock().unwrap());
        delays.sort_unstable();
        let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).map(|ns| *ns as f64 / 1e3);
        json!({"samples": delays.len(), "p50_us": at(0.5), "p99_us": at(0.99)})
    }
}
