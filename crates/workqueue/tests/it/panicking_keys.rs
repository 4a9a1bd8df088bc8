//! Keys whose `Hash`, `Eq`, `Clone` or drop panics: each costs its own key and leaves the queue intact.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kube_workqueue::{Delayed, ExponentialLimiter, Priority, RateLimiter, WorkQueue};

const SECOND: Duration = Duration::from_secs(1);

/// The operation that panics from now on.
#[derive(Default)]
struct Fuses {
    hash: AtomicBool,
    eq: AtomicBool,
    clone: AtomicBool,
    drop: AtomicBool,
}

/// A key that panics in the named ways if its name is `bad`.
struct Key(&'static str, Arc<Fuses>);

impl Key {
    fn check(&self, fuse: fn(&Fuses) -> &AtomicBool) {
        assert!(self.0 != "bad" || !fuse(&self.1).load(Ordering::SeqCst), "on purpose");
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.check(|fuses| &fuses.hash);
        // One hash value for all: every key is compared.
        0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.check(|fuses| &fuses.eq);
        other.check(|fuses| &fuses.eq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Clone for Key {
    fn clone(&self) -> Self {
        self.check(|fuses| &fuses.clone);
        Self(self.0, Arc::clone(&self.1))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.check(|fuses| &fuses.drop);
    }
}

fn blow(fuse: &AtomicBool) {
    fuse.store(true, Ordering::SeqCst);
}

/// Takes all keys and returns their names.
fn take_all(queue: &WorkQueue<Key>) -> Vec<&'static str> {
    std::iter::from_fn(|| {
        let item = queue.try_get()?;
        let name = item.0;
        item.done();
        Some(name)
    })
    .collect()
}

fn with_three(priority: Priority) -> (WorkQueue<Key>, Arc<Fuses>, impl Fn(&'static str) -> Key) {
    let fuses = Arc::new(Fuses::default());
    let queue = WorkQueue::builder().build();
    let of = Arc::clone(&fuses);
    let key = move |name| Key(name, Arc::clone(&of));
    ["a", "bad", "b"].into_iter().for_each(|name| queue.add_with(key(name), priority));
    (queue, fuses, key)
}

#[test]
fn a_key_that_cannot_be_hashed_is_dropped() {
    let (queue, fuses, key) = with_three(Priority::NORMAL);
    blow(&fuses.hash);
    assert_eq!(take_all(&queue), ["a", "b"]);
    assert_eq!((queue.len(), queue.in_flight()), (0, 0));
    queue.add(key("c"));
    assert_eq!(take_all(&queue), ["c"]);
}

#[test]
fn a_key_that_cannot_be_cloned_is_dropped() {
    for priority in [Priority::NORMAL, Priority::HIGH] {
        let (queue, fuses, _) = with_three(priority);
        blow(&fuses.clone);
        assert_eq!(take_all(&queue), ["a", "b"]);
        assert_eq!((queue.len(), queue.in_flight()), (0, 0));
    }
}

/// A drain does not wait for a key that was dropped.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_although_the_last_key_is_dropped() {
    let fuses = Arc::new(Fuses::default());
    let queue = WorkQueue::builder().build();
    queue.add(Key("bad", Arc::clone(&fuses)));
    blow(&fuses.clone);
    let drain = queue.shutdown_and_drain(Delayed::Run);
    let worker = async {
        while let Some(item) = queue.get().await {
            item.done();
        }
    };
    let (drained, ()) = tokio::time::timeout(SECOND, async { tokio::join!(drain, worker) }).await.unwrap();
    assert!(drained);
}

#[test]
fn a_key_that_cannot_be_compared_is_not_deduplicated() {
    for priority in [Priority::NORMAL, Priority::HIGH] {
        let (queue, fuses, key) = with_three(priority);
        blow(&fuses.eq);
        queue.add_with(key("b"), priority);
        queue.add_with(key("bad"), priority);
        assert_eq!(take_all(&queue), ["a", "bad", "b", "bad"]);
        assert_eq!((queue.len(), queue.in_flight()), (0, 0), "each of them was finished");
        queue.add_after(key("bad"), SECOND);
        queue.add_after(key("c"), SECOND);
        assert!(queue.cancel(&key("c")) && !queue.cancel(&key("bad")));
        let limiter = ExponentialLimiter::new(SECOND, 10 * SECOND);
        limiter.when(&key("bad"));
        assert_eq!((limiter.when(&key("c")), limiter.when(&key("c"))), (SECOND, 2 * SECOND));
    }
}

#[test]
fn a_drop_that_panics_reaches_nobody() {
    let (queue, fuses, key) = with_three(Priority::NORMAL);
    blow(&fuses.drop);
    queue.add(key("bad"));
    queue.add_after(key("bad"), SECOND);
    queue.add_after(key("c"), SECOND);
    queue.shutdown();
    assert_eq!((queue.len(), queue.delayed_len()), (3, 0));
    // Dropping the other copies would panic in this test.
    fuses.drop.store(false, Ordering::SeqCst);
    assert_eq!(take_all(&queue), ["a", "bad", "b"]);
}

/// A key whose copies are counted.
#[derive(PartialEq, Eq, Hash)]
struct Counted(usize);

static COPIES: AtomicUsize = AtomicUsize::new(0);

impl Clone for Counted {
    fn clone(&self) -> Self {
        COPIES.fetch_add(1, Ordering::SeqCst);
        Self(self.0)
    }
}

/// The first use of a priority copies and moves nothing, and keys that were queued before keep their order.
#[test]
fn the_first_priority_does_not_move_queued_keys() {
    let queue = WorkQueue::builder().oldest_every(u32::MAX).build();
    (0..10_000).for_each(|number| queue.add(Counted(number)));
    queue.add_with(Counted(5), Priority::HIGH);
    queue.add_with(Counted(6), Priority::LOW);
    queue.add_with(Counted(20_000), Priority::LOW);
    queue.add(Counted(7));
    queue.add_with(Counted(3), Priority::HIGH);
    assert_eq!((COPIES.load(Ordering::SeqCst), queue.len()), (0, 10_001));
    let mut taken = Vec::new();
    while let Some(item) = queue.try_get() {
        taken.push(item.0);
        item.done();
    }
    let rest = (0..10_000).filter(|number| ![3, 5].contains(number));
    assert_eq!(taken, [3, 5].into_iter().chain(rest).chain([20_000]).collect::<Vec<_>>());
}
