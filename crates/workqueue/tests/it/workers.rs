//! Workers and handlers.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use kube_workqueue::{Verdict, WorkQueue};
use tokio::time::{Instant, sleep};

#[derive(Debug)]
struct Odd;

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("odd")
    }
}

impl std::error::Error for Odd {}

async fn even(number: u32) -> Result<u32, Odd> {
    if number % 2 == 0 { Ok(number / 2) } else { Err(Odd) }
}

/// The handler borrows, mixes error types with `?`, returns early, and needs no annotation of its result.
#[tokio::test(start_paused = true)]
async fn a_handler_may_borrow_and_use_any_error() {
    let queue = WorkQueue::named("numbers");
    let seen = RefCell::new(Vec::new());
    for key in ["4", "8", "3", "x"] {
        queue.add(key.to_owned());
    }
    queue
        .run_workers(2, async |key: String| {
            if key == "8" {
                return Ok(());
            }
            let half = even(key.parse()?).await?;
            seen.borrow_mut().push(half);
            Ok(())
        })
        .until(sleep(Duration::from_millis(1)))
        .await;
    assert_eq!(*seen.borrow(), [2]);
    let retries: Vec<_> = ["4", "8", "3", "x"].map(|key| queue.num_requeues(&key.to_owned())).into();
    assert_eq!(retries, [0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn workers_inside_one_task_can_be_spawned() {
    let queue = WorkQueue::named("spawned");
    queue.add(1);
    queue.shutdown();
    let (workers, sum) = (queue.clone(), Arc::new(AtomicU32::new(0)));
    let counter = Arc::clone(&sum);
    let task = tokio::spawn(async move {
        let handler = async move |key: u32| {
            tokio::task::yield_now().await;
            counter.fetch_add(key, Ordering::Relaxed);
            Ok(())
        };
        workers.run_workers(2, handler).until(sleep(Duration::from_secs(1))).await;
    });
    task.await.unwrap();
    assert_eq!(sum.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn a_verdict_can_ask_for_more() {
    let queue = WorkQueue::named("leases");
    let start = Instant::now();
    queue.add("lease");
    let times = RefCell::new(Vec::new());
    queue
        .run_workers(1, async |_: &str| {
            times.borrow_mut().push(start.elapsed().as_secs());
            Ok(Verdict::Again(Duration::from_secs(10)))
        })
        .until(sleep(Duration::from_secs(25)))
        .await;
    assert_eq!(*times.borrow(), [0, 10, 20]);
}
