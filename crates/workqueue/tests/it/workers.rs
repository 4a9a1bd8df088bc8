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
    if number.is_multiple_of(2) { Ok(number / 2) } else { Err(Odd) }
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
async fn a_verdict_can_ask_for_another_run() {
    let queue = WorkQueue::named("leases");
    let start = Instant::now();
    queue.add("lease");
    let times = RefCell::new(Vec::new());
    queue
        .run_workers(1, async |_: &str| {
            times.borrow_mut().push(start.elapsed().as_secs());
            Ok(Verdict::RequeueAfter(Duration::from_secs(10)))
        })
        .until(sleep(Duration::from_secs(25)))
        .await;
    assert_eq!(*times.borrow(), [0, 10, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_caught_and_the_key_retried() {
    let queue = WorkQueue::named("brittle");
    queue.add("glass");
    let calls = RefCell::new(0);
    queue
        .run_workers(1, async |_: &str| {
            *calls.borrow_mut() += 1;
            if *calls.borrow() < 3 {
                panic!("broken");
            }
            Ok(())
        })
        .until(sleep(Duration::from_secs(1)))
        .await;
    assert_eq!(*calls.borrow(), 3);
    assert_eq!(queue.num_requeues(&"glass"), 0, "success forgets");
    assert_eq!((queue.in_flight(), queue.delayed_len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_retry_verdict_counts_as_failure() {
    let queue = WorkQueue::named("shy");
    queue.add("key");
    queue
        .run_workers(1, async |_: &str| Ok(Verdict::Retry))
        .until(sleep(Duration::from_millis(12))) // runs at 0, 5 and 5 + 10 ms
        .await;
    assert_eq!(queue.num_requeues(&"key"), 2);
}

/// After the stop no key is taken, keys in flight are finished, and queued keys stay.
#[tokio::test(start_paused = true)]
async fn stopping_finishes_keys_in_flight() {
    let queue = WorkQueue::named("graceful");
    let finished = RefCell::new(Vec::new());
    (0..5).for_each(|key| queue.add(key));
    let start = Instant::now();
    queue
        .run_workers(2, async |key: u32| {
            sleep(Duration::from_secs(10)).await;
            finished.borrow_mut().push(key);
            Ok(())
        })
        .until(sleep(Duration::from_secs(15)))
        .await;
    assert_eq!(*finished.borrow(), [0, 1, 2, 3]);
    assert_eq!(start.elapsed().as_secs(), 20);
    assert_eq!(queue.len(), 1);
    assert!(!queue.is_shutting_down());
}

#[tokio::test(start_paused = true)]
async fn no_more_handlers_at_once_than_workers() {
    let queue = WorkQueue::named("bounded");
    let (running, most) = (RefCell::new(0), RefCell::new(0));
    (0..20).for_each(|key| queue.add(key));
    queue.shutdown();
    queue
        .run_workers(3, async |_: u32| {
            *running.borrow_mut() += 1;
            let now = *running.borrow();
            most.replace_with(|most| now.max(*most));
            sleep(Duration::from_secs(1)).await;
            *running.borrow_mut() -= 1;
            Ok(())
        })
        .await;
    assert_eq!(*most.borrow(), 3);
}

/// Keys of workers that are dropped are retried.
#[tokio::test(start_paused = true)]
async fn keys_of_dropped_workers_are_retried() {
    let queue = WorkQueue::named("dropped");
    queue.add("a");
    let workers = queue.run_workers(1, async |_: &str| {
        std::future::pending::<()>().await;
        Ok(())
    });
    assert!(tokio::time::timeout(Duration::from_secs(1), workers).await.is_err());
    assert_eq!(queue.in_flight(), 0);
    assert_eq!(*queue.get().await.unwrap(), "a");
}

#[tokio::test]
async fn spawned_workers_run_as_tasks_and_stop() {
    let queue = WorkQueue::named("tasks");
    let sum = Arc::new(AtomicU32::new(0));
    (1..=100).for_each(|key| queue.add(key));
    queue.shutdown();
    let counter = Arc::clone(&sum);
    queue
        .spawn_workers(4, move |key: u32| {
            let counter = Arc::clone(&counter);
            async move {
                tokio::task::yield_now().await;
                counter.fetch_add(key, Ordering::Relaxed);
                Ok(())
            }
        })
        .await;
    assert_eq!(sum.load(Ordering::Relaxed), 5050);
}

/// A queue that is never empty must not delay the stop signal.
#[tokio::test]
async fn a_busy_queue_can_be_stopped() {
    let queue = WorkQueue::named("busy");
    let calls = RefCell::new(0u32);
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let stop = RefCell::new(Some(stop));
    queue.add(0);
    queue
        .run_workers(2, async |key: u32| {
            queue.add(key + 1);
            if calls.replace_with(|calls| *calls + 1) == 1000 {
                let _ = stop.borrow_mut().take().expect("only once").send(());
            }
            Ok(())
        })
        .until(stopped)
        .await;
    assert!(*calls.borrow() > 1000);
}
