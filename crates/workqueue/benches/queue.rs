//! Measures the queue. Prints one line per measurement: name, wall-clock time and CPU time in nanoseconds per key; or name
//! and bytes. `compare.sh` runs the same measurements on client-go's queue and prints the ratios.

#![allow(missing_docs, clippy::print_stdout)]

use std::alloc::System;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cap::Cap;
use cpu_time::ProcessTime;
use kube_workqueue::{Delayed, WorkQueue};

/// Counts live bytes.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const MILLION: usize = 1_000_000;
/// Each measurement is repeated and the best result is printed, because the machine may be busy.
const ROUNDS: usize = 5;

/// Keys like those of a controller in client-go: shared, immutable strings.
type Key = Arc<str>;

fn main() {
    let keys: Vec<Key> = (0..MILLION).map(|n| format!("namespace-{}/name-{n}", n % 100).into()).collect();
    best("add+get+done of one key", || uncontended(&keys[0]));
    best("1M distinct keys", || distinct(&keys));
    best("64 workers contending", || contending(&keys));
    best("1M delayed keys", || delayed(&keys));
    best("8,000 keys of one hash", || one_hash(WorkQueue::builder().build()));
    best("8,000 keys of one hash, ordered", || one_hash(WorkQueue::builder().ordered().build()));
    live_bytes("memory of a queued key", || memory(&keys, |queue, key, _| queue.add(key)));
    let after =
        |queue: &WorkQueue<Key>, key, n: usize| queue.add_after(key, Duration::from_secs(n as u64 + 1));
    live_bytes("memory of a delayed key", || memory(&keys, after));
}

fn best(name: &str, measure: impl Fn() -> Cost) {
    if !wanted(name) {
        return;
    }
    let costs: Vec<_> = (0..ROUNDS).map(|_| measure()).collect();
    let least = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(f64::INFINITY, f64::min);
    println!("{name}\t{:.1}\t{:.1}", least(|cost| cost.clock), least(|cost| cost.processors));
}

fn live_bytes(name: &str, measure: impl Fn() -> f64) {
    if wanted(name) {
        println!("{name}\t{:.1}", measure());
    }
}

/// `cargo bench --bench queue -- delayed` runs only the measurements with that word in their names.
fn wanted(name: &str) -> bool {
    std::env::args().skip(1).find(|arg| !arg.starts_with("--")).is_none_or(|word| name.contains(&word))
}

/// Nanoseconds per key. A busy machine distorts the CPU time least.
struct Cost {
    clock: f64,
    processors: f64,
}

struct Stopwatch {
    clock: Instant,
    processors: ProcessTime,
}

impl Stopwatch {
    fn start() -> Self {
        Self { clock: Instant::now(), processors: ProcessTime::now() }
    }

    fn stop(self, keys: usize) -> Cost {
        let per_key = |time: Duration| time.as_nanos() as f64 / keys as f64;
        Cost { clock: per_key(self.clock.elapsed()), processors: per_key(self.processors.elapsed()) }
    }
}

fn queue() -> WorkQueue<Key> {
    WorkQueue::builder().build()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime")
}

fn uncontended(key: &Key) -> Cost {
    runtime().block_on(async {
        let queue = queue();
        let watch = Stopwatch::start();
        for _ in 0..MILLION {
            queue.add(Arc::clone(key));
            black_box(queue.get().await.expect("not shut down")).done();
        }
        watch.stop(MILLION)
    })
}

fn distinct(keys: &[Key]) -> Cost {
    runtime().block_on(async {
        let queue = queue();
        let watch = Stopwatch::start();
        keys.iter().for_each(|key| queue.add(Arc::clone(key)));
        for _ in 0..keys.len() {
            black_box(queue.get().await.expect("not shut down")).done();
        }
        watch.stop(keys.len())
    })
}

/// A key with a legal but useless `Hash`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct OneHash(usize);

impl std::hash::Hash for OneHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        0.hash(state);
    }
}

fn one_hash(queue: WorkQueue<OneHash>) -> Cost {
    const KEYS: usize = 8_000;
    let watch = Stopwatch::start();
    (0..KEYS).for_each(|number| queue.add(OneHash(number)));
    while let Some(item) = queue.try_get() {
        black_box(item).done();
    }
    watch.stop(KEYS)
}

fn contending(keys: &[Key]) -> Cost {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    let shares: Vec<Vec<Key>> = keys.chunks(keys.len() / 4).map(<[Key]>::to_vec).collect();
    runtime.block_on(async {
        let queue = queue();
        let watch = Stopwatch::start();
        for _ in 0..64 {
            let queue = queue.clone();
            tokio::spawn(async move {
                while let Some(item) = queue.get().await {
                    black_box(item).done();
                }
            });
        }
        let add = |share: Vec<Key>| {
            let queue = queue.clone();
            tokio::spawn(async move {
                for key in share {
                    queue.add(key);
                    tokio::task::consume_budget().await;
                }
            })
        };
        for producer in shares.into_iter().map(add).collect::<Vec<_>>() {
            producer.await.expect("no panic");
        }
        queue.shutdown_and_drain(Delayed::Run).await;
        watch.stop(keys.len())
    })
}

fn delayed(keys: &[Key]) -> Cost {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut random = fastrand::Rng::with_seed(1);
        let queue = queue();
        let watch = Stopwatch::start();
        for key in keys {
            queue.add_after(Arc::clone(key), Duration::from_nanos(random.u64(1..600_000_000_000)));
        }
        tokio::time::advance(Duration::from_secs(601)).await;
        for _ in 0..keys.len() {
            black_box(queue.get().await.expect("not shut down")).done();
        }
        watch.stop(keys.len())
    })
}

/// Live bytes of the queue per key, without the text of the key.
fn memory(keys: &[Key], add: impl Fn(&WorkQueue<Key>, Key, usize)) -> f64 {
    let before = ALLOCATOR.allocated();
    let queue = queue();
    keys.iter().enumerate().for_each(|(n, key)| add(&queue, Arc::clone(key), n));
    let bytes = ALLOCATOR.allocated() - before;
    drop(queue);
    bytes as f64 / keys.len() as f64
}
