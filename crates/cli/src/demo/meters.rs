//! Reading the counters that the libraries keep.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
};

/// Counters and gauges by name and labels. Durations are not kept: nothing here shows them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meters(Arc<Mutex<HashMap<Key, Meter>>>);

#[derive(Debug, Clone)]
struct Meter {
    value: Arc<AtomicU64>,
    is_gauge: bool,
}

impl Meters {
    /// Makes these the counters of the process.
    pub(crate) fn install() -> Self {
        let meters = Self::default();
        // Only in tests is there one already; then what is shown stays at zero.
        let _ = metrics::set_global_recorder(meters.clone());
        meters
    }

    /// The sum of all meters of a name that have this label.
    pub(crate) fn sum(&self, name: &str, label: (&str, &str)) -> f64 {
        self.each(name).iter().filter(|(labels, _)| has(labels, label)).map(|(_, value)| value).sum()
    }

    /// All meters of a name: labels and value.
    pub(crate) fn each(&self, name: &str) -> Vec<(Vec<(String, String)>, f64)> {
        let meters = self.lock();
        let wanted = meters.iter().filter(|(key, _)| key.name() == name);
        wanted.map(|(key, meter)| (labels(key), meter.read())).collect()
    }

    fn meter(&self, key: &Key, is_gauge: bool) -> Arc<AtomicU64> {
        let fresh = || Meter { value: Arc::default(), is_gauge };
        Arc::clone(&self.lock().entry(key.clone()).or_insert_with(fresh).value)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Meter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter {
    fn read(&self) -> f64 {
        let value = self.value.load(Ordering::Relaxed);
        if self.is_gauge { f64::from_bits(value) } else { value as f64 }
    }
}

fn labels(key: &Key) -> Vec<(String, String)> {
    key.labels().map(|label| (label.key().to_owned(), label.value().to_owned())).collect()
}

/// Whether a label is among others.
pub(crate) fn has(labels: &[(String, String)], wanted: (&str, &str)) -> bool {
    labels.iter().any(|(key, value)| (key.as_str(), value.as_str()) == wanted)
}

impl Recorder for Meters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.meter(key, false))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.meter(key, true))
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
        let meters = Meters::default();
        metrics::with_local_recorder(&meters, || {
            metrics::counter!("events", "resource" => "pods", "type" => "added").increment(2);
            metrics::counter!("events", "resource" => "pods", "type" => "deleted").increment(3);
            metrics::counter!("events", "resource" => "nodes", "type" => "added").increment(7);
            metrics::gauge!("depth", "name" => "q").set(1.5);
        });
        assert_eq!(meters.sum("events", ("resource", "pods")), 5.0);
        assert_eq!(meters.sum("depth", ("name", "q")), 1.5);
        assert_eq!(meters.sum("events", ("resource", "none")), 0.0);
    }
}
