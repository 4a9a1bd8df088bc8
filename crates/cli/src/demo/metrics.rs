//! Reads the metrics of the libraries.

use ::metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use kube_informer_wire::sync::lock;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, atomic::AtomicU64, atomic::Ordering},
};

/// Counters and gauges by name and labels. Histograms are not kept, because the demo does not show them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metrics(Arc<Mutex<HashMap<Key, Metric>>>);

#[derive(Debug, Clone)]
struct Metric {
    value: Arc<AtomicU64>,
    is_gauge: bool,
}

impl Metrics {
    /// Installs a recorder for the process.
    pub(crate) fn install() -> Self {
        let metrics = Self::default();
        // In tests a recorder may be installed already; then all metrics stay zero.
        let _ = ::metrics::set_global_recorder(metrics.clone());
        metrics
    }

    /// Sum of all metrics with this name and label.
    pub(crate) fn sum(&self, name: &str, label: (&str, &str)) -> f64 {
        self.each(name).iter().filter(|(labels, _)| has(labels, label)).map(|(_, value)| value).sum()
    }

    /// All metrics with this name: labels and value.
    pub(crate) fn each(&self, name: &str) -> Vec<(Vec<(String, String)>, f64)> {
        let metrics = self.lock();
        let wanted = metrics.iter().filter(|(key, _)| key.name() == name);
        wanted.map(|(key, metric)| (labels(key), metric.read())).collect()
    }

    fn metric(&self, key: &Key, is_gauge: bool) -> Arc<AtomicU64> {
        let fresh = || Metric { value: Arc::default(), is_gauge };
        Arc::clone(&self.lock().entry(key.clone()).or_insert_with(fresh).value)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Metric>> {
        lock(&self.0)
    }
}

impl Metric {
    fn read(&self) -> f64 {
        let value = self.value.load(Ordering::Relaxed);
        if self.is_gauge { f64::from_bits(value) } else { value as f64 }
    }
}

fn labels(key: &Key) -> Vec<(String, String)> {
    key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect()
}

/// Whether the labels contain this one.
pub(crate) fn has(labels: &[(String, String)], wanted: (&str, &str)) -> bool {
    labels.iter().any(|(key, value)| (key.as_str(), value.as_str()) == wanted)
}

impl Recorder for Metrics {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.metric(key, false))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.metric(key, true))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_gauges_are_found_by_name_and_label() {
        let metrics = Metrics::default();
        ::metrics::with_local_recorder(&metrics, || {
            ::metrics::counter!("events", "resource" => "pods", "type" => "added").increment(2);
            ::metrics::counter!("events", "resource" => "pods", "type" => "deleted").increment(3);
            ::metrics::counter!("events", "resource" => "nodes", "type" => "added").increment(7);
            ::metrics::gauge!("depth", "name" => "q").set(1.5);
        });
        assert_eq!(metrics.sum("events", ("resource", "pods")), 5.0);
        assert_eq!(metrics.sum("depth", ("name", "q")), 1.5);
        assert_eq!(metrics.sum("events", ("resource", "none")), 0.0);
    }
}
