//! Delayed keys.

use std::time::Duration;

use futures_util::FutureExt;
use kube_workqueue::{AddOptions, Priority, WorkQueue};
use tokio::time::{Instant, advance};

const MS: Duration = Duration::from_millis(1);

fn queue<K: Clone + Eq + std::hash::Hash + Send + Sync + 'static>() -> WorkQueue<K> {
    WorkQueue::builder().build()
}

/// TestSimpleQueue
#[tokio::test(start_paused = true)]
async fn a_delayed_key_comes_at_its_time_and_once() {
    let queue = queue();
    queue.add_after("foo", 50 * MS);
    assert_eq!(queue.len(), 0);
    advance(60 * MS).await;
    assert_eq!(queue.len(), 1);
    queue.get().await.unwrap().done();
    advance(10_000 * MS).await;
    assert_eq!(queue.len(), 0);
}

/// TestDeduping
#[tokio::test(start_paused = true)]
async fn the_earlier_time_wins() {
    let queue = queue();
    queue.add_after("foo", 50 * MS);
    queue.add_after("foo", 70 * MS);
    assert_eq!((queue.len(), queue.delayed_len()), (0, 1));
    advance(60 * MS).await;
    assert_eq!(queue.len(), 1);
    queue.get().await.unwrap().done();
    advance(20 * MS).await;
    assert_eq!(queue.len(), 0, "the later time was dropped");

    queue.add_after("foo", 50 * MS);
    queue.add_after("foo", 30 * MS);
    assert_eq!(queue.len(), 0);
    advance(40 * MS).await;
    assert_eq!(queue.len(), 1);
    queue.get().await.unwrap().done();
    advance(20 * MS).await;
    assert_eq!(queue.len(), 0);
}

/// TestAddTwoFireEarly
#[tokio::test(start_paused = true)]
async fn the_second_may_be_due_first() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("foo", 1000 * MS);
    queue.add_after("bar", 50 * MS);
    let bar = queue.get().await.unwrap();
    assert_eq!((*bar, start.elapsed()), ("bar", 50 * MS));
    queue.add_after("baz", 2000 * MS);
    let foo = queue.get().await.unwrap();
    assert_eq!((*foo, start.elapsed()), ("foo", 1000 * MS));
    let baz = queue.get().await.unwrap();
    assert_eq!((*baz, start.elapsed()), ("baz", 2050 * MS));
}

/// TestCopyShifting
#[tokio::test(start_paused = true)]
async fn keys_that_are_due_together_come_in_order_of_their_time() {
    let queue = queue();
    queue.add_after("foo", 1000 * MS);
    queue.add_after("bar", 500 * MS);
    queue.add_after("baz", 250 * MS);
    assert_eq!(queue.len(), 0);
    advance(2000 * MS).await;
    assert_eq!(queue.len(), 3);
    for expected in ["baz", "bar", "foo"] {
        let item = queue.try_get().unwrap();
        assert_eq!(*item, expected);
        item.done();
    }
}

#[tokio::test(start_paused = true)]
async fn equal_times_come_in_order_of_arrival() {
    let queue = queue();
    (0..100).for_each(|key| queue.add_after(key, 5 * MS));
    for key in 0..100 {
        let item = queue.get().await.unwrap();
        assert_eq!(*item, key);
        item.done();
    }
}

/// A key that became due earlier goes before a key added later, even if the queue was not used in between.
#[tokio::test(start_paused = true)]
async fn a_due_key_goes_before_a_later_add() {
    let queue = queue();
    queue.add_after("due", 10 * MS);
    advance(20 * MS).await;
    queue.add("later");
    let item = queue.try_get().unwrap();
    assert_eq!(*item, "due");
    item.done();
}

#[tokio::test(start_paused = true)]
async fn an_earlier_time_reaches_the_waiter() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("late", 1000 * MS);
    let mut get = Box::pin(queue.get());
    assert!((&mut get).now_or_never().is_none());
    queue.add_after("soon", 10 * MS);
    assert_eq!(*get.await.unwrap(), "soon");
    assert_eq!(start.elapsed(), 10 * MS);
}

/// The timekeeper is dropped; another waiter takes over.
#[tokio::test(start_paused = true)]
async fn timekeeping_is_handed_over() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("foo", 100 * MS);
    let mut keeper = Box::pin(queue.get());
    assert!((&mut keeper).now_or_never().is_none());
    let other = tokio::spawn({
        let queue = queue.clone();
        async move { queue.get().await.map(|item| *item) }
    });
    tokio::task::yield_now().await;
    drop(keeper);
    assert_eq!(other.await.unwrap(), Some("foo"));
    assert_eq!(start.elapsed(), 100 * MS);
}

/// Each key wakes one waiter, and every waiter gets a key.
#[tokio::test(start_paused = true)]
async fn many_waiters_share_the_delayed_keys() {
    let queue = queue();
    let waiters: Vec<_> = (0..20)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move {
                let item = queue.get().await.unwrap();
                let key: u64 = *item;
                item.done();
                key
            })
        })
        .collect();
    tokio::task::yield_now().await;
    (0..20u64).for_each(|key| queue.add_after(key, Duration::from_millis(key / 3)));
    let mut keys = Vec::new();
    for waiter in waiters {
        keys.push(waiter.await.unwrap());
    }
    keys.sort_unstable();
    assert_eq!(keys, (0..20).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn no_delay_is_an_add() {
    let queue = queue();
    queue.add_after("foo", Duration::ZERO);
    assert_eq!((queue.len(), queue.delayed_len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_add_now_does_not_cancel_the_delayed_one() {
    let queue = queue();
    queue.add_after("foo", 10 * MS);
    queue.add("foo");
    queue.get().await.unwrap().done();
    assert_eq!(queue.delayed_len(), 1);
    queue.get().await.unwrap().done();
    assert_eq!(queue.delayed_len(), 0);
}

#[tokio::test(start_paused = true)]
async fn delayed_keys_can_be_seen_and_cancelled() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("b", 20 * MS);
    queue.add_with("a", AddOptions::new().after(10 * MS).priority(Priority(1)));
    queue.add_after("c", 30 * MS);
    let seen: Vec<_> =
        queue.delayed().into_iter().map(|d| (d.key, d.due.unwrap() - start, d.priority.0)).collect();
    assert_eq!(seen, [("a", 10 * MS, 1), ("b", 20 * MS, 0), ("c", 30 * MS, 0)]);
    assert_eq!(queue.due(&"b"), Some(start + 20 * MS));
    assert!(queue.cancel(&"b"));
    assert!(!queue.cancel(&"b"));
    assert_eq!(queue.due(&"b"), None);
    for expected in ["a", "c"] {
        let item = queue.get().await.unwrap();
        assert_eq!(*item, expected);
        item.done();
    }
}

#[tokio::test(start_paused = true)]
async fn any_number_of_delayed_keys_is_listed() {
    let queue = queue();
    (0..10_000u64).for_each(|key| queue.add_after(key, Duration::from_secs(1 + key)));
    let listed: Vec<u64> = queue.delayed().iter().map(|delayed| delayed.key).collect();
    assert_eq!(listed, (0..10_000).collect::<Vec<_>>());
}

/// The timer of the waiter is set to a key that is cancelled; the waiter must still get the next one.
#[tokio::test(start_paused = true)]
async fn cancelling_the_first_leaves_the_next() {
    let queue = queue();
    let start = Instant::now();
    queue.add_after("a", 10 * MS);
    queue.add_after("b", 20 * MS);
    let mut get = Box::pin(queue.get());
    assert!((&mut get).now_or_never().is_none());
    assert!(queue.cancel(&"a"));
    assert_eq!(*get.await.unwrap(), "b");
    assert_eq!(start.elapsed(), 20 * MS);
}

#[tokio::test(start_paused = true)]
async fn a_delay_beyond_the_clock_holds_up_no_other() {
    let queue = queue();
    queue.add_after("never", Duration::MAX);
    queue.add_after("soon", MS);
    let item = queue.get().await.unwrap();
    assert_eq!(*item, "soon");
    item.done();
    assert_eq!(queue.delayed_len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hundred_thousand_delayed_keys_come_in_exact_order() {
    let queue = queue();
    let start = Instant::now();
    let mut random = fastrand::Rng::with_seed(7);
    let mut expected: Vec<_> = (0..100_000u32).map(|key| (random.u64(1..600_000), key)).collect();
    for (delay, key) in &expected {
        queue.add_after(*key, Duration::from_millis(*delay));
    }
    expected.sort_by_key(|(delay, _)| *delay);
    for (delay, key) in expected {
        let item = queue.get().await.unwrap();
        assert_eq!((*item, start.elapsed()), (key, Duration::from_millis(delay)));
        item.done();
    }
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_is_never() {
    let start = Instant::now();
    for delay in [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(u64::MAX / 2)] {
        let queue = WorkQueue::builder().build();
        queue.add_after("a", delay);
        assert_eq!((queue.due(&"a"), queue.delayed_len()), (None, 1));
        assert_eq!(queue.delayed()[0].due, None);
        let waited = tokio::time::timeout(Duration::from_secs(3600), queue.get()).await;
        assert!(waited.is_err(), "{delay:?}");
        // A key that is due wakes the one who waits beside it, and an earlier time wins.
        queue.add_after("b", Duration::from_secs(1));
        queue.get().await.unwrap().forget();
        queue.add_after("a", Duration::from_secs(1));
        let item = queue.get().await.unwrap();
        item.retry_after(delay);
        assert!(queue.cancel(&"a") && queue.delayed().is_empty());
    }
    assert_eq!(start.elapsed(), Duration::from_secs(3 * 3602), "no timer made the clock jump");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_on_keys_that_are_never_due_arms_no_timer() {
    let queue = WorkQueue::builder().build();
    queue.add_after("a", Duration::MAX);
    let other = queue.clone();
    let waiter = tokio::spawn(async move { other.get().await.map(|item| *item) });
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(start.elapsed(), Duration::from_secs(5));
    queue.add("b");
    assert_eq!(waiter.await.unwrap(), Some("b"));
}

/// A million keys that are due at once must not occupy a thread of the runtime, nor the lock of the queue.
#[tokio::test(start_paused = true)]
async fn moving_many_due_keys_yields_to_other_tasks() {
    let queue = queue();
    (0..10_000u32).for_each(|key| queue.add_after(key, MS));
    advance(MS).await;
    let mut yields = 0;
    let mut get = std::pin::pin!(queue.get());
    let item = loop {
        match get.as_mut().now_or_never() {
            Some(item) => break item.unwrap(),
            None => yields += 1,
        }
    };
    assert!(yields >= 5, "{yields} yields");
    assert_eq!((*item, queue.len(), queue.delayed_len()), (0, 9_999, 0));
}

/// The waiter that watches the clock is in a runtime whose thread is blocked: here, one that is not driven any more. A worker of
/// another runtime gets the key in time.
#[test]
fn a_blocked_runtime_does_not_delay_due_keys_for_another_one() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (blocked, other) = (runtime(), runtime());
    let queue = queue();
    let mut waits = Box::pin(queue.get());
    blocked.block_on(async {
        queue.add_after("k", 300 * MS);
        assert!((&mut waits).now_or_never().is_none());
    });
    let taken = other.block_on(async { tokio::time::timeout(3000 * MS, queue.get()).await });
    assert_eq!(taken.ok().flatten().map(|item| *item), Some("k"));
    drop(waits);
}

/// Each of two runtimes has a worker; whichever is blocked, the other one takes keys that are added.
#[test]
fn a_blocked_runtime_does_not_keep_added_keys_from_another_one() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (blocked, other) = (runtime(), runtime());
    let queue = queue();
    let mut waits = Box::pin(queue.get());
    blocked.block_on(async { assert!((&mut waits).now_or_never().is_none()) });
    let taken = other.block_on(async {
        let mut get = Box::pin(queue.get());
        assert!((&mut get).now_or_never().is_none());
        queue.add("k");
        tokio::time::timeout(MS, get).await
    });
    assert_eq!(taken.ok().flatten().map(|item| *item), Some("k"));
    drop(waits);
}
