//! A million adds, 64 workers, several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use kube_workqueue::{Delayed, WorkQueue};

const KEYS: usize = 10_000;
const PRODUCERS: u64 = 4;
const ADDS: usize = 1_000_000 / PRODUCERS as usize;
const WORKERS: usize = 64;

/// State of one key.
#[derive(Default)]
struct Cell {
    /// Whether a worker holds it.
    held: AtomicBool,
    /// Incremented before each add.
    wanted: AtomicU32,
    /// The value of `wanted` that a worker saw.
    seen: AtomicU32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_key_is_held_twice_and_none_is_lost() {
    let queue = WorkQueue::builder().build();
    let cells: Arc<Vec<Cell>> = Arc::new((0..KEYS).map(|_| Cell::default()).collect());
    let runs = Arc::new(AtomicU64::new(0));

    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(queue.clone(), Arc::clone(&cells), Arc::clone(&runs))))
        .collect();
    let producers: Vec<_> =
        (0..PRODUCERS).map(|seed| tokio::spawn(produce(queue.clone(), Arc::clone(&cells), seed))).collect();
    for producer in producers {
        producer.await.unwrap();
    }
    assert!(queue.shutdown_and_drain(Delayed::Run).await);
    for worker in workers {
        worker.await.unwrap();
    }

    for (key, cell) in cells.iter().enumerate() {
        assert_eq!(
            cell.seen.load(Ordering::SeqCst),
            cell.wanted.load(Ordering::SeqCst),
            "key {key} was lost"
        );
    }
    assert!(runs.load(Ordering::SeqCst) >= KEYS as u64);
    assert_eq!((queue.len(), queue.in_flight(), queue.delayed_len()), (0, 0, 0));
}

async fn produce(queue: WorkQueue<usize>, cells: Arc<Vec<Cell>>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    for n in 0..ADDS {
        let key = random.usize(0..KEYS);
        cells[key].wanted.fetch_add(1, Ordering::SeqCst);
        match random.u8(0..100) {
            0 => queue.add_after(key, Duration::from_micros(random.u64(0..2000))),
            _ => queue.add(key),
        }
        if n % 1000 == 0 {
            tokio::task::yield_now().await;
        }
    }
}

async fn work(queue: WorkQueue<usize>, cells: Arc<Vec<Cell>>, runs: Arc<AtomicU64>) {
    while let Some(item) = queue.get().await {
        let cell = &cells[*item];
        assert!(!cell.held.swap(true, Ordering::SeqCst), "key {} is held twice", *item);
        let wanted = cell.wanted.load(Ordering::SeqCst);
        if runs.fetch_add(1, Ordering::SeqCst).is_multiple_of(8) {
            tokio::task::yield_now().await;
        }
        cell.seen.store(wanted, Ordering::SeqCst);
        cell.held.store(false, Ordering::SeqCst);
        item.done();
    }
}
