//! Shutdown and drain.

use std::time::Duration;

use futures_util::FutureExt;
use kube_workqueue::{Delayed, WorkQueue};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::builder().build()
}

/// TestQueueDrainageUsingShutDownWithDrain
#[tokio::test(start_paused = true)]
async fn drain_waits_for_keys_in_flight() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let (first, second) = (queue.get().await.unwrap(), queue.get().await.unwrap());
    let mut drain = Box::pin(queue.shutdown_and_drain(Delayed::Drop));
    assert!(queue.get().await.is_none(), "closed from the call on");
    assert!((&mut drain).now_or_never().is_none());
    first.done();
    assert!((&mut drain).now_or_never().is_none());
    second.done();
    assert!(drain.await);
}

/// TestNoQueueDrainageUsingShutDown
#[tokio::test(start_paused = true)]
async fn shutdown_does_not_wait() {
    let queue = queue();
    queue.add("foo");
    queue.add("bar");
    let _items = (queue.get().await.unwrap(), queue.get().await.unwrap());
    queue.shutdown();
    queue.shutdown();
    assert!(queue.is_shutting_down());
    assert!(queue.get().await.is_none());
}

/// TestForceQueueShutdownUsingShutDown
#[tokio::test(start_paused = true)]
async fn shutdown_ends_a_drain() {
    let queue = queue();
    queue.add("foo");
    let _held = queue.get().await.unwrap();
    let drain = tokio::spawn({
        let queue = queue.clone();
        async move { queue.shutdown_and_drain(Delayed::Drop).await }
    });
    tokio::task::yield_now().await;
    queue.shutdown();
    assert!(!drain.await.unwrap());
}

/// TestQueueDrainageUsingShutDownWithDrainWithDirtyItem, with one difference: a `get` during the drain does not
/// return `None` and then a key; it waits for the key that is still to come.
#[tokio::test(start_paused = true)]
async fn drain_runs_keys_added_while_in_flight() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    queue.add("foo");
    let mut drain = Box::pin(queue.shutdown_and_drain(Delayed::Drop));
    let mut next = Box::pin(queue.get());
    assert!((&mut next).now_or_never().is_none());
    item.done();
    assert!((&mut drain).now_or_never().is_none());
    let again = next.await.unwrap();
    assert_eq!(*again, "foo");
    assert!((&mut drain).now_or_never().is_none());
    again.done();
    assert!(queue.get().await.is_none());
    assert!(drain.await);
}

/// client-go returns from the drain while keys are queued, if none is in flight.
#[tokio::test(start_paused = true)]
async fn drain_waits_for_queued_keys() {
    let queue = queue();
    queue.add("foo");
    let mut drain = Box::pin(queue.shutdown_and_drain(Delayed::Drop));
    assert!((&mut drain).now_or_never().is_none());
    queue.get().await.unwrap().done();
    assert!(drain.await);
}

#[tokio::test(start_paused = true)]
async fn drain_drops_or_runs_delayed_keys() {
    for (delayed, runs, took) in [(Delayed::Drop, 1, Duration::ZERO), (Delayed::Run, 2, SECOND * 10)] {
        let (queue, start) = (queue(), Instant::now());
        queue.add("now");
        queue.add_after("later", SECOND * 10);
        let worker = tokio::spawn({
            let queue = queue.clone();
            async move {
                let mut runs = 0;
                while let Some(item) = queue.get().await {
                    runs += 1;
                    item.done();
                }
                runs
            }
        });
        assert!(queue.shutdown_and_drain(delayed).await);
        assert_eq!((worker.await.unwrap(), start.elapsed()), (runs, took));
    }
}

/// A drain that runs delayed keys can be ended by a shutdown.
#[tokio::test(start_paused = true)]
async fn shutdown_drops_the_delayed_keys_of_a_drain() {
    let queue = queue();
    queue.add_after("later", SECOND);
    let drain = queue.shutdown_and_drain(Delayed::Run);
    queue.shutdown();
    assert_eq!(queue.delayed_len(), 0);
    assert!(drain.await, "nothing is left");
    assert!(queue.get().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_shutdown_ends_the_key() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    let drain = queue.shutdown_and_drain(Delayed::Run);
    item.retry();
    assert!(drain.await);
    assert_eq!((queue.len(), queue.delayed_len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn every_waiter_is_woken_by_shutdown() {
    let queue = queue();
    let waiters: Vec<_> = (0..10)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.is_none() })
        })
        .collect();
    queue.add_after("never", SECOND);
    sleep(Duration::from_millis(1)).await;
    queue.shutdown();
    for waiter in waiters {
        assert!(waiter.await.unwrap());
    }
}

/// The last key is taken by one worker; the others, which waited because it was queued, must be woken.
#[tokio::test(start_paused = true)]
async fn waiters_are_woken_when_the_last_key_is_taken() {
    let queue = queue();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    queue.add("foo");
    queue.shutdown();
    let others: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let mut runs = 0;
                while let Some(item) = queue.get().await {
                    runs += 1;
                    item.done();
                }
                runs
            })
        })
        .collect();
    tokio::task::yield_now().await;
    item.done();
    let mut runs = 0;
    for other in others {
        runs += other.await.unwrap();
    }
    assert_eq!(runs, 1);
}

#[test]
fn nothing_is_accepted_after_shutdown() {
    let queue = queue();
    queue.shutdown();
    queue.add("a");
    queue.add_after("b", SECOND);
    queue.add_rate_limited("c");
    assert_eq!((queue.len(), queue.delayed_len()), (0, 0));
}
