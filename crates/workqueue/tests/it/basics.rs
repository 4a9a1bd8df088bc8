//! Adding, taking, finishing.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kube_workqueue::{Delayed, WorkQueue};
use tokio::time::sleep;

fn plain<K: Clone + Eq + std::hash::Hash + Send + Sync + 'static>() -> WorkQueue<K> {
    WorkQueue::builder().build()
}

async fn shut_down(queue: &WorkQueue<i32>, drain: bool) {
    if drain {
        assert!(queue.shutdown_and_drain(Delayed::Drop).await);
    } else {
        queue.shutdown();
    }
}

/// TestBasic: many producers and consumers; keys added after shutdown are ignored.
#[tokio::test(start_paused = true)]
async fn producers_and_consumers() {
    for drain in [false, true] {
        let queue = plain();
        let producers: Vec<_> = (0..50)
            .map(|key| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    for _ in 0..50 {
                        queue.add(key);
                        sleep(Duration::from_millis(1)).await;
                    }
                })
            })
            .collect();
        let consumers: Vec<_> = (0..10)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut seen = 0;
                    while let Some(item) = queue.get().await {
                        assert_ne!(*item, -1, "added after shutdown");
                        seen += 1;
                        sleep(Duration::from_millis(3)).await;
                        item.done();
                    }
                    seen
                })
            })
            .collect();
        for producer in producers {
            producer.await.unwrap();
        }
        shut_down(&queue, drain).await;
        queue.add(-1);
        let mut seen = 0;
        for consumer in consumers {
            seen += consumer.await.unwrap();
        }
        assert!((50..=2500).contains(&seen), "each key at least once, at most once an add: {seen}");
        assert!(queue.is_empty());
    }
}

/// TestAddWhileProcessing: every worker adds every key again once while it holds it.
#[tokio::test(start_paused = true)]
async fn adding_while_processing() {
    for drain in [false, true] {
        let queue = plain();
        (0..50).for_each(|key| queue.add(key));
        let consumers: Vec<_> = (0..10)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    let mut seen = HashMap::new();
                    while let Some(item) = queue.get().await {
                        let times = seen.entry(*item).or_insert(0);
                        *times += 1;
                        if *times < 2 {
                            queue.add(*item);
                        }
                        tokio::task::yield_now().await;
                        item.done();
                    }
                    seen.values().sum::<i32>()
                })
            })
            .collect();
        sleep(Duration::from_millis(1)).await;
        shut_down(&queue, drain).await;
        let mut runs = 0;
        for consumer in consumers {
            runs += consumer.await.unwrap();
        }
        assert!(runs >= 100, "each of 50 keys was added again at least once: {runs}");
        assert!(queue.is_empty());
    }
}

/// TestLen
#[test]
fn len_counts_distinct_queued_keys() {
    let queue = plain();
    assert!(queue.is_empty());
    queue.add("foo");
    assert!(queue.len() == 1 && !queue.is_empty());
    queue.add("bar");
    assert_eq!(queue.len(), 2);
    queue.add("foo");
    assert_eq!(queue.len(), 2);
}

/// TestReinsert
#[test]
fn a_key_added_while_in_flight_is_queued_when_done() {
    let queue = plain();
    queue.add("foo");
    let item = queue.try_get().unwrap();
    queue.add("foo");
    assert_eq!(queue.len(), 0, "not while a worker holds it");
    item.done();
    let item = queue.try_get().unwrap();
    assert_eq!(*item, "foo");
    item.done();
    assert!(queue.is_empty());
}

/// TestCollapse
#[test]
fn two_adds_are_one_run() {
    let queue = plain();
    queue.add("bar");
    queue.add("bar");
    queue.try_get().unwrap().done();
    assert!(queue.try_get().is_none());
}

/// TestCollapseWhileProcessing: a second worker gets the key once, after the first is done.
#[tokio::test(start_paused = true)]
async fn adds_while_in_flight_coalesce() {
    let queue = plain();
    queue.add("foo");
    let item = queue.get().await.unwrap();
    queue.add("foo");
    queue.add("foo");
    let mut other = Box::pin(queue.get());
    assert!((&mut other).now_or_never().is_none());
    item.done();
    other.await.unwrap().done();
    assert!(queue.is_empty());
}

/// TestGarbageCollection: neither queue nor tables keep a finished key alive.
#[test]
fn finished_keys_are_not_kept() {
    let queue = plain();
    let key: Arc<str> = "foo".into();
    queue.add(Arc::clone(&key));
    queue.try_get().unwrap().done();
    queue.add_after(Arc::clone(&key), Duration::from_secs(1));
    queue.cancel(&key);
    assert_eq!(Arc::strong_count(&key), 1);
}

#[test]
fn first_in_first_out_over_many_wraps() {
    let queue = plain();
    let (mut next_in, mut next_out) = (0, 0);
    for round in 1..200 {
        for _ in 0..round % 17 {
            queue.add(next_in);
            next_in += 1;
        }
        for _ in 0..round % 13 {
            let Some(item) = queue.try_get() else { break };
            assert_eq!(*item, next_out);
            next_out += 1;
            item.done();
        }
    }
    assert_eq!(queue.len(), next_in - next_out);
}

/// A burst grows the queue; order and dedup survive both growing and shrinking.
#[test]
fn a_burst_comes_and_goes() {
    let queue = plain();
    (0..100_000u32).for_each(|key| queue.add(key));
    (0..100_000u32).for_each(|key| queue.add(key));
    for key in 0..100_000u32 {
        let item = queue.try_get().unwrap();
        assert_eq!(*item, key);
        item.done();
    }
    assert!(queue.try_get().is_none());
}

/// A `get` that is dropped after it was woken passes the wake-up on.
#[tokio::test(start_paused = true)]
async fn a_cancelled_get_loses_nothing() {
    let queue = plain();
    let mut first = Box::pin(queue.get());
    let mut second = take_one(queue.clone());
    assert!((&mut first).now_or_never().is_none());
    tokio::task::yield_now().await;
    queue.add("foo");
    drop(first);
    assert_eq!((&mut second).await.unwrap(), Some("foo"));
}

fn take_one(queue: WorkQueue<&'static str>) -> tokio::task::JoinHandle<Option<&'static str>> {
    tokio::spawn(async move {
        let item = queue.get().await?;
        let key = *item;
        item.done();
        Some(key)
    })
}
