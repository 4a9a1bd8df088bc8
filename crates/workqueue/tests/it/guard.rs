//! Finishing an item, and dropping it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use kube_workqueue::{ExponentialLimiter, Priority, WorkQueue};
use tokio::time::{Instant, timeout};

fn queue() -> WorkQueue<&'static str> {
    let limiter = ExponentialLimiter::new(Duration::from_millis(10), Duration::from_secs(1));
    WorkQueue::builder().rate_limiter(limiter).build()
}

#[tokio::test(start_paused = true)]
async fn dropping_an_item_retries_it() {
    let queue = queue();
    queue.add("foo");
    drop(queue.get().await.unwrap());
    assert_eq!((queue.num_requeues(&"foo"), queue.in_flight(), queue.delayed_len()), (1, 0, 1));
    let start = Instant::now();
    let item = queue.get().await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(10));
    assert_eq!(item.num_requeues(), 1);
    item.forget();
    assert_eq!(queue.num_requeues(&"foo"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_panic_retries() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _held = item;
        panic!("on purpose");
    }));
    assert!(panicked.is_err());
    assert_eq!(*queue.get().await.unwrap(), "foo");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_future_retries() {
    let queue = queue();
    queue.add("foo");
    let work = async {
        let _item = queue.get().await.unwrap();
        std::future::pending::<()>().await;
    };
    assert!(timeout(Duration::from_secs(1), work).await.is_err());
    assert_eq!(*queue.get().await.unwrap(), "foo");
}

#[tokio::test(start_paused = true)]
async fn retries_wait_longer_each_time() {
    let queue = queue();
    queue.add("foo");
    let mut waits = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        queue.get().await.unwrap().retry();
        waits.push(start.elapsed().as_millis());
    }
    assert_eq!(waits, [0, 10, 20, 40, 80]);
}

#[tokio::test(start_paused = true)]
async fn done_keeps_the_record_and_retry_after_does_not_touch_it() {
    let queue = queue();
    queue.add("foo");
    queue.get().await.unwrap().retry();
    queue.get().await.unwrap().done();
    assert_eq!(queue.num_requeues(&"foo"), 1);
    queue.add("foo");
    let start = Instant::now();
    queue.get().await.unwrap().retry_after(Duration::from_secs(3));
    assert_eq!(queue.num_requeues(&"foo"), 1);
    queue.get().await.unwrap().forget();
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!(queue.num_requeues(&"foo"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority() {
    let queue = queue();
    queue.add_with("foo", Priority(3));
    queue.get().await.unwrap().retry();
    assert_eq!(queue.get().await.unwrap().priority(), Priority(3));
}
