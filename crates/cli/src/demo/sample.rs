//! A snapshot of everything that the demo shows.

use super::{
    journal::Journal,
    metrics::{Metrics, has},
};
use kube_informer::{InformerStatus, ObjectKey, SharedInformer, WorkQueue};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::{sync::watch, time::Instant};

/// Everything that the view shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) url: String,
    pub(crate) seconds: f64,
    pub(crate) informers: Vec<InformerRow>,
    pub(crate) handlers: Vec<HandlerRow>,
    pub(crate) queues: Vec<QueueRow>,
    pub(crate) is_stalled: bool,
    pub(crate) latest: Vec<String>,
}

/// One informer.
#[derive(Debug, Clone, Default)]
pub(crate) struct InformerRow {
    pub(crate) kind: String,
    pub(crate) status: String,
    pub(crate) version: String,
    /// Number of lists, streaming or not.
    pub(crate) lists: u64,
    pub(crate) watches: u64,
    pub(crate) events: u64,
    pub(crate) rate: f64,
    pub(crate) queued: u64,
    pub(crate) objects: usize,
    pub(crate) bytes: usize,
}

/// One handler.
#[derive(Debug, Clone, Default)]
pub(crate) struct HandlerRow {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) coalesced: u64,
    pub(crate) lag: f64,
}

/// One work queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueueRow {
    pub(crate) name: String,
    /// Keys ready to be taken.
    pub(crate) depth: usize,
    /// Keys in flight.
    pub(crate) busy: usize,
    /// Delayed keys.
    pub(crate) later: usize,
    pub(crate) adds: u64,
    pub(crate) rate: f64,
    pub(crate) retries: u64,
}

/// Takes samples, computes rates between them, and writes relists to the journal.
pub(crate) struct Observer {
    informers: Vec<SharedInformer<Value>>,
    queues: Vec<WorkQueue<ObjectKey>>,
    metrics: Metrics,
    pub(crate) journal: Journal,
    url: String,
    stalled: watch::Sender<bool>,
    started: Instant,
    /// Counters at the last sample, with its time.
    before: BTreeMap<String, (f64, Instant)>,
    relists: BTreeMap<(String, String), f64>,
}

impl Observer {
    pub(crate) fn new(
        informers: Vec<SharedInformer<Value>>,
        queues: Vec<WorkQueue<ObjectKey>>,
        metrics: Metrics,
        journal: Journal,
        url: String,
        stalled: watch::Sender<bool>,
    ) -> Self {
        let (before, relists) = (BTreeMap::new(), BTreeMap::new());
        Self { informers, queues, metrics, journal, url, stalled, started: Instant::now(), before, relists }
    }

    /// Takes a sample, with the latest `lines` of the journal.
    pub(crate) fn sample(&mut self, lines: usize) -> Sample {
        self.report_relists();
        let informers = self.informers.clone().iter().map(|informer| self.informer(informer)).collect();
        Sample {
            url: self.url.clone(),
            seconds: self.started.elapsed().as_secs_f64(),
            informers,
            handlers: self.handlers(),
            queues: self.queues(),
            is_stalled: *self.stalled.borrow(),
            latest: self.journal.latest(lines),
        }
    }

    fn informer(&mut self, informer: &SharedInformer<Value>) -> InformerRow {
        let kind = informer.kind().plural.clone();
        let count = |name: &str| self.metrics.sum(name, ("resource", &kind));
        let (lists, watches) = (count("informer_lists_total"), count("informer_watches_total"));
        let (events, queued) = (count("informer_events_total"), count("informer_queued_items"));
        let status = informer.status();
        let version = match &status {
            InformerStatus::Live { version: Some(version), .. } => version.to_string(),
            _ => "-".to_owned(),
        };
        InformerRow {
            status: status.word().to_owned(),
            version,
            lists: lists as u64,
            watches: watches as u64,
            events: events as u64,
            rate: self.rate(&format!("informer {kind}"), events),
            queued: queued as u64,
            objects: informer.lister().len(),
            bytes: informer.cached_bytes(),
            kind,
        }
    }

    fn handlers(&self) -> Vec<HandlerRow> {
        let coalesced = self.metrics.each("informer_coalesced_total");
        let lags = self.metrics.each("informer_handler_lag_seconds");
        let text = |labels: &[(String, String)], key: &str| {
            labels.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let mut rows: Vec<HandlerRow> = lags
            .into_iter()
            .map(|(labels, lag)| {
                let (name, kind) = (text(&labels, "handler"), text(&labels, "resource"));
                let same = |(other, _): &&(Vec<(String, String)>, f64)| {
                    has(other, ("handler", &name)) && has(other, ("resource", &kind))
                };
                let coalesced = coalesced.iter().find(same).map_or(0.0, |(_, count)| *count) as u64;
                // The demo has one stream.
                let name = if name == "stream" { "auditor".to_owned() } else { name };
                HandlerRow { name, kind, coalesced, lag }
            })
            .collect();
        rows.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        rows
    }

    fn queues(&mut self) -> Vec<QueueRow> {
        let row = |queue: &WorkQueue<ObjectKey>| {
            let count = |metric: &str| self.metrics.sum(metric, ("name", queue.name())) as u64;
            QueueRow {
                name: queue.name().to_owned(),
                depth: queue.len(),
                busy: queue.in_flight(),
                later: queue.delayed_len(),
                adds: count("workqueue_adds_total"),
                rate: 0.0,
                retries: count("workqueue_retries_total"),
            }
        };
        let mut rows: Vec<QueueRow> = self.queues.iter().map(row).collect();
        for row in &mut rows {
            row.rate = self.rate(&format!("queue {}", row.name), row.adds as f64);
        }
        rows
    }

    /// Change of a counter per second since at least a second ago.
    fn rate(&mut self, name: &str, value: f64) -> f64 {
        let now = Instant::now();
        let (before, since) = *self.before.entry(name.to_owned()).or_insert((value, now));
        let seconds = (now - since).as_secs_f64();
        if seconds >= 2.0 {
            // Half-way to now, so that the rate neither jumps nor lags behind.
            self.before.insert(name.to_owned(), (f64::midpoint(before, value), since + (now - since) / 2));
        }
        if seconds > 0.0 { (value - before) / seconds } else { 0.0 }
    }

    fn report_relists(&mut self) {
        for (labels, count) in self.metrics.each("informer_relists_total") {
            let text = |key: &str| {
                labels.iter().find(|(name, _)| name == key).map(|(_, v)| v.clone()).unwrap_or_default()
            };
            let (kind, reason) = (text("resource"), text("reason"));
            let before = self.relists.insert((kind.clone(), reason.clone()), count).unwrap_or(0.0);
            if count > before {
                self.journal.write(format!("! relist of {kind} ({reason})"));
            }
        }
    }
}
