//! Metrics.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use kube_workqueue::WorkQueue;
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{advance, sleep};

const MICRO: Duration = Duration::from_micros(1);

/// Reads the metrics of a queue.
struct Reader {
    snapshotter: Snapshotter,
    queue: &'static str,
    /// A snapshot resets counters and incremented gauges; these are their sums.
    sums: RefCell<BTreeMap<String, f64>>,
}

fn measured(name: &'static str) -> (WorkQueue<&'static str>, Reader) {
    let recorder = DebuggingRecorder::new();
    let reader = Reader { snapshotter: recorder.snapshotter(), queue: name, sums: RefCell::default() };
    (metrics::with_local_recorder(&recorder, || WorkQueue::named(name)), reader)
}

impl Reader {
    /// Sums of increments, latest values of gauges, and the samples of histograms since the last call.
    fn read(&self) -> BTreeMap<String, Vec<f64>> {
        let mut sums = self.sums.borrow_mut();
        let mut values = BTreeMap::new();
        for (key, _, _, value) in self.snapshotter.snapshot().into_vec() {
            let (_, key) = key.into_parts();
            assert!(key.labels().any(|label| (label.key(), label.value()) == ("name", self.queue)));
            let name = key.name().strip_prefix("workqueue_").expect("client-go's prefix").to_owned();
            let mut sum = |step| {
                let sum = sums.entry(name.clone()).or_default();
                *sum += step;
                vec![*sum]
            };
            let value = match value {
                DebugValue::Counter(count) => sum(count as f64),
                DebugValue::Gauge(step) if name == "depth" => sum(step.0),
                DebugValue::Gauge(setting) => vec![setting.0],
                DebugValue::Histogram(values) => values.into_iter().map(|value| value.0).collect(),
            };
            values.insert(name, value);
        }
        values
    }
}

/// TestMetrics, except that a key added while held is not in the depth until it is queued.
#[tokio::test(start_paused = true)]
async fn every_operation_is_measured() {
    let (queue, reader) = measured("test");
    let values = || reader.read();

    queue.add("foo");
    let seen = values();
    assert_eq!((&seen["adds_total"][..], &seen["depth"][..]), (&[1.0][..], &[1.0][..]));

    advance(50 * MICRO).await;
    let item = queue.get().await.unwrap();
    let seen = values();
    assert_eq!((&seen["queue_duration_seconds"][..], &seen["depth"][..]), (&[5e-5][..], &[0.0][..]));

    (0..5).for_each(|_| queue.add("foo"));
    let seen = values();
    assert_eq!((&seen["adds_total"][..], &seen["depth"][..]), (&[2.0][..], &[0.0][..]));

    advance(25 * MICRO).await;
    item.done();
    let seen = values();
    assert_eq!((&seen["work_duration_seconds"][..], &seen["depth"][..]), (&[2.5e-5][..], &[1.0][..]));

    let item = queue.get().await.unwrap();
    assert_eq!(values()["queue_duration_seconds"], [2.5e-5], "counted from the first add");

    advance(1000 * MICRO).await;
    queue.refresh_metrics();
    let seen = values();
    assert_eq!(seen["unfinished_work_seconds"], [0.001]);
    assert_eq!(seen["longest_running_processor_seconds"], [0.001]);
    item.done();
    assert_eq!(values()["work_duration_seconds"], [0.001]);
}

#[tokio::test(start_paused = true)]
async fn retries_and_delays_are_measured() {
    let (queue, reader) = measured("retries");
    queue.add_after("foo", Duration::from_secs(1));
    queue.add_rate_limited("bar");
    let seen = reader.read();
    assert_eq!((seen["retries_total"][0], seen["adds_total"][0], seen["depth"][0]), (2.0, 0.0, 0.0));
    advance(Duration::from_secs(3)).await;
    queue.get().await.unwrap().done();
    queue.get().await.unwrap().retry();
    let seen = reader.read();
    assert_eq!((seen["retries_total"][0], seen["adds_total"][0], seen["depth"][0]), (3.0, 2.0, 0.0));
    assert_eq!(seen["queue_duration_seconds"], [2.995, 2.0], "from the time it was due");
}

/// TestMetricShutdown: there is no task of the queue that could go on reporting.
#[tokio::test(start_paused = true)]
async fn nothing_is_reported_after_shutdown() {
    let (queue, reader) = measured("end");
    queue.shutdown();
    let before = reader.read();
    queue.add("foo");
    queue.add_after("foo", Duration::from_secs(1));
    queue.add_after("foo", Duration::ZERO);
    advance(Duration::from_secs(3600)).await;
    assert_eq!(reader.read(), before);
}

#[tokio::test(start_paused = true)]
async fn running_workers_update_the_gauges() {
    let (queue, reader) = measured("gauges");
    queue.add("slow");
    let workers = queue.run_workers(1, async |_: &str| {
        sleep(Duration::from_secs(10)).await;
        Ok(())
    });
    workers
        .until(async {
            sleep(Duration::from_millis(2600)).await;
            let seen = reader.read();
            assert_eq!(seen["longest_running_processor_seconds"], [2.5]);
            assert_eq!(seen["unfinished_work_seconds"], [2.5]);
        })
        .await;
    let seen = reader.read();
    assert_eq!(seen["longest_running_processor_seconds"], [0.0], "nothing is unfinished in the end");
}

#[tokio::test(start_paused = true)]
async fn an_unnamed_queue_reports_nothing() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let queue = metrics::with_local_recorder(&recorder, || WorkQueue::builder().build());
    queue.add("foo");
    queue.get().await.unwrap().done();
    assert!(snapshotter.snapshot().into_vec().is_empty());
}
