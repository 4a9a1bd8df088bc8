//! Metrics of a queue, under client-go's names.

use metrics::{Counter, Gauge, Histogram, Unit};

use crate::panics;

/// The metrics of one queue. Never called under the queue's lock. A recorder that panics costs its value, and never a key.
pub(crate) struct Metrics {
    depth: Gauge,
    adds: Counter,
    queue_duration: Histogram,
    work_duration: Histogram,
    unfinished: Gauge,
    longest: Gauge,
    retries: Counter,
}

impl Metrics {
    pub(crate) fn new(name: &str) -> Self {
        describe();
        let name = name.to_owned();
        Self {
            depth: metrics::gauge!("workqueue_depth", "name" => name.clone()),
            adds: metrics::counter!("workqueue_adds_total", "name" => name.clone()),
            queue_duration: metrics::histogram!("workqueue_queue_duration_seconds", "name" => name.clone()),
            work_duration: metrics::histogram!("workqueue_work_duration_seconds", "name" => name.clone()),
            unfinished: metrics::gauge!("workqueue_unfinished_work_seconds", "name" => name.clone()),
            longest: metrics::gauge!("workqueue_longest_running_processor_seconds", "name" => name.clone()),
            retries: metrics::counter!("workqueue_retries_total", "name" => name),
        }
    }

    /// Takes differences rather than absolute values, because calls of several threads may come in any order.
    pub(crate) fn added(&self, added: usize, queued: isize) {
        if added > 0 {
            record(|| self.adds.increment(added as u64));
        }
        if queued != 0 {
            record(|| self.depth.increment(queued as f64));
        }
    }

    pub(crate) fn taken(&self, waited: u64) {
        record(|| self.depth.decrement(1.0));
        record(|| self.queue_duration.record(seconds(waited)));
    }

    pub(crate) fn finished(&self, worked: u64) {
        record(|| self.work_duration.record(seconds(worked)));
    }

    pub(crate) fn retried(&self) {
        record(|| self.retries.increment(1));
    }

    pub(crate) fn unfinished(&self, total: u64, longest: u64) {
        record(|| self.unfinished.set(seconds(total)));
        record(|| self.longest.set(seconds(longest)));
    }
}

/// Calls the recorder, which is code of the user.
fn record(value: impl FnOnce()) {
    if let Err(panic) = panics::catch(value) {
        tracing::error!(panic, "the metrics recorder panicked");
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn describe() {
    metrics::describe_gauge!("workqueue_depth", Unit::Count, "Keys that are ready to be taken");
    metrics::describe_counter!(
        "workqueue_adds_total",
        Unit::Count,
        "Keys added, without those that were coalesced"
    );
    metrics::describe_histogram!(
        "workqueue_queue_duration_seconds",
        Unit::Seconds,
        "Time a key is queued before it is taken"
    );
    metrics::describe_histogram!(
        "workqueue_work_duration_seconds",
        Unit::Seconds,
        "Time a worker takes for a key"
    );
    metrics::describe_gauge!(
        "workqueue_unfinished_work_seconds",
        Unit::Seconds,
        "Time all keys in flight have been in flight, in total; steady growth means stuck workers"
    );
    metrics::describe_gauge!(
        "workqueue_longest_running_processor_seconds",
        Unit::Seconds,
        "Time the oldest key in flight has been in flight"
    );
    metrics::describe_counter!("workqueue_retries_total", Unit::Count, "Keys added with a delay");
}
