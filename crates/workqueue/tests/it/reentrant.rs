//! Code of the user that calls the queue back, or panics, where the queue calls it.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use kube_workqueue::{Delayed, ExponentialLimiter, RateLimiter, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

/// A key that uses its queue whenever a copy of it is dropped.
#[derive(Clone)]
struct Key {
    name: &'static str,
    home: Arc<Home>,
}

#[derive(Default)]
struct Home {
    queue: Mutex<Option<WorkQueue<Key>>>,
    drops: AtomicUsize,
}

impl Drop for Key {
    fn drop(&mut self) {
        let queue = self.home.queue.lock().unwrap().clone();
        if let Some(queue) = queue {
            self.home.drops.fetch_add(1, Ordering::Relaxed);
            let _ = (queue.len(), queue.num_requeues(self));
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Runs `check` in a thread, so that a deadlock fails the test instead of hanging it.
fn without_deadlock(check: impl FnOnce(WorkQueue<Key>, &dyn Fn(&'static str) -> Key) + Send + 'static) {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let _guard = runtime.as_ref().unwrap().enter();
        let limiter = ExponentialLimiter::new(SECOND, SECOND);
        let queue = WorkQueue::builder().rate_limiter(limiter).build();
        let home = Arc::new(Home { queue: Mutex::new(Some(queue.clone())), drops: AtomicUsize::new(0) });
        check(queue, &|name| Key { name, home: Arc::clone(&home) });
        let drops = home.drops.load(Ordering::Relaxed);
        // Breaks the cycle of queue and keys. Keys that are still queued lock `home` when they are dropped.
        let queue = home.queue.lock().unwrap().take();
        drop(queue);
        sender.send(drops).unwrap();
    });
    let drops = receiver.recv_timeout(10 * SECOND).expect("no deadlock and no panic");
    assert!(drops > 0, "the check drops keys inside the queue");
}

#[test]
fn a_key_that_is_queued_already_is_dropped_without_the_lock() {
    without_deadlock(|queue, key| {
        queue.add(key("a"));
        queue.add(key("a"));
        let item = queue.try_get().unwrap();
        queue.add(key("a"));
        queue.add(key("a"));
        item.done();
    });
}

#[test]
fn a_finished_key_is_dropped_without_the_lock() {
    without_deadlock(|queue, key| {
        queue.add(key("a"));
        queue.try_get().unwrap().forget();
    });
}

#[test]
fn a_delayed_key_is_dropped_without_the_lock() {
    without_deadlock(|queue, key| {
        queue.add_after(key("a"), SECOND);
        queue.add_after(key("a"), SECOND);
        queue.cancel(&key("a"));
        queue.add_after(key("b"), SECOND);
        queue.shutdown();
    });
    without_deadlock(|queue, key| {
        queue.add_after(key("a"), SECOND);
        drop(queue.shutdown_and_drain(Delayed::Drop));
    });
}

#[test]
fn a_forgotten_key_is_dropped_without_the_lock_of_the_limiter() {
    without_deadlock(|queue, key| {
        queue.add_rate_limited(key("a"));
        queue.add_rate_limited(key("a"));
        queue.forget(&key("a"));
    });
}

/// A limiter whose calls panic while the flag is set.
struct Panicking(Arc<AtomicBool>);

impl Panicking {
    fn check(&self) {
        assert!(!self.0.load(Ordering::SeqCst), "the limiter panics on purpose");
    }
}

impl<K> RateLimiter<K> for Panicking {
    fn when(&self, _: &K) -> Duration {
        self.check();
        Duration::from_millis(1)
    }

    fn forget(&self, _: &K) {
        self.check();
    }

    fn num_requeues(&self, _: &K) -> u32 {
        self.check();
        0
    }
}

fn queue_with_panicking_limiter() -> (WorkQueue<&'static str>, Arc<AtomicBool>) {
    let panics = Arc::new(AtomicBool::new(true));
    (WorkQueue::builder().rate_limiter(Panicking(Arc::clone(&panics))).build(), panics)
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_panics_does_not_keep_the_key_in_flight() {
    let (queue, _) = queue_with_panicking_limiter();
    queue.add("a");
    let item = queue.get().await.unwrap();
    let _ = catch_unwind(AssertUnwindSafe(|| item.retry()));
    assert_eq!((queue.in_flight(), queue.delayed_len()), (0, 1), "retried all the same");
    let item = queue.get().await.unwrap();
    let _ = catch_unwind(AssertUnwindSafe(|| item.forget()));
    assert_eq!((queue.in_flight(), queue.delayed_len()), (0, 0));
    queue.add_rate_limited("b");
    assert_eq!(queue.delayed_len(), 1, "no key is lost");
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_panics_does_not_end_a_worker() {
    for fails in [true, false] {
        let (queue, _) = queue_with_panicking_limiter();
        queue.add("a");
        queue.add("b");
        let seen = Mutex::new(Vec::new());
        let handler = async |key: &'static str| {
            seen.lock().unwrap().push(key);
            if fails { Err("on purpose".into()) } else { Ok(()) }
        };
        queue.run_workers(1, handler).until(tokio::time::sleep(SECOND / 2)).await;
        assert_eq!(*seen.lock().unwrap(), ["a", "b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limiter_that_recovers_is_used_again() {
    let (queue, panics) = queue_with_panicking_limiter();
    queue.add_rate_limited("a");
    let fallback = queue.due(&"a").unwrap() - tokio::time::Instant::now();
    panics.store(false, Ordering::SeqCst);
    queue.cancel(&"a");
    queue.add_rate_limited("a");
    let due = queue.due(&"a").unwrap() - tokio::time::Instant::now();
    assert!(due < fallback, "{due:?} {fallback:?}");
}

/// A waker that panics, or counts.
struct Wakes {
    panics: bool,
    count: AtomicUsize,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
        assert!(!self.panics, "the waker panics on purpose");
    }
}

#[test]
fn a_waker_that_panics_costs_no_other_waiter_its_wake_up() {
    let queue = WorkQueue::<&str>::builder().build();
    let [bad, good] = [true, false].map(|panics| Arc::new(Wakes { panics, count: AtomicUsize::new(0) }));
    let mut waiting = [queue.get(), queue.get()];
    for (get, wakes) in waiting.iter_mut().zip([&bad, &good]) {
        let waker = Waker::from(Arc::clone(wakes));
        assert!(matches!(std::pin::pin!(get).poll(&mut Context::from_waker(&waker)), Poll::Pending));
    }
    queue.shutdown();
    assert_eq!((bad.count.load(Ordering::SeqCst), good.count.load(Ordering::SeqCst)), (1, 1));
}

/// Metrics whose recording panics.
struct PanickingMetrics;

impl metrics::HistogramFn for PanickingMetrics {
    fn record(&self, _: f64) {
        panic!("the metrics panic on purpose");
    }
}

impl metrics::GaugeFn for PanickingMetrics {
    fn increment(&self, _: f64) {
        panic!("the metrics panic on purpose");
    }

    fn decrement(&self, _: f64) {
        panic!("the metrics panic on purpose");
    }

    fn set(&self, _: f64) {
        panic!("the metrics panic on purpose");
    }
}

impl metrics::CounterFn for PanickingMetrics {
    fn increment(&self, _: u64) {
        panic!("the metrics panic on purpose");
    }

    fn absolute(&self, _: u64) {
        panic!("the metrics panic on purpose");
    }
}

impl metrics::Recorder for PanickingMetrics {
    fn describe_counter(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_gauge(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}
    fn describe_histogram(&self, _: metrics::KeyName, _: Option<metrics::Unit>, _: metrics::SharedString) {}

    fn register_counter(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Counter {
        metrics::Counter::from_arc(Arc::new(PanickingMetrics))
    }

    fn register_gauge(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::from_arc(Arc::new(PanickingMetrics))
    }

    fn register_histogram(&self, _: &metrics::Key, _: &metrics::Metadata<'_>) -> metrics::Histogram {
        metrics::Histogram::from_arc(Arc::new(PanickingMetrics))
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_that_panic_neither_lose_a_key_nor_end_a_worker() {
    let queue = metrics::with_local_recorder(&PanickingMetrics, || WorkQueue::named("panicking"));
    queue.add("a");
    queue.add_after("b", SECOND);
    let runs = AtomicUsize::new(0);
    let handler = async |_: &'static str| {
        let failed = runs.fetch_add(1, Ordering::SeqCst) == 0;
        if failed { Err("on purpose".into()) } else { Ok(()) }
    };
    queue.run_workers(2, handler).until(tokio::time::sleep(3 * SECOND)).await;
    assert_eq!(runs.load(Ordering::SeqCst), 3, "two keys, and a retry");
    assert_eq!((queue.len(), queue.in_flight(), queue.delayed_len()), (0, 0, 0));
}

/// A key whose copies panic.
#[derive(PartialEq, Eq, Hash)]
struct Uncopyable(u8);

impl Clone for Uncopyable {
    fn clone(&self) -> Self {
        assert!(self.0 != 1, "the clone panics on purpose");
        Self(self.0)
    }
}

#[test]
fn a_delayed_key_that_cannot_be_cloned_is_not_listed() {
    let queue = WorkQueue::builder().build();
    (0..3).for_each(|number| queue.add_after(Uncopyable(number), SECOND));
    let listed: Vec<_> = queue.delayed().into_iter().map(|delayed| delayed.key.0).collect();
    assert_eq!(listed, [0, 2]);
}
