//! Keys whose `Hash` is legal but poor. The tests count comparisons of keys, which is where the time goes.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_workqueue::{ExponentialLimiter, MAX_KEYS_PER_HASH, Priority, RateLimiter, WorkQueue};

const KEYS: usize = 13_000;

static COMPARISONS: [AtomicUsize; 6] = [const { AtomicUsize::new(0) }; 6];

/// A key of test `TEST`. All keys with the same `hash` have one hash value.
#[derive(Clone, Debug)]
struct Key<const TEST: usize> {
    hash: usize,
    name: usize,
}

impl<const TEST: usize> Key<TEST> {
    fn new(name: usize) -> Self {
        Self { hash: 0, name }
    }
}

impl<const TEST: usize> PartialEq for Key<TEST> {
    fn eq(&self, other: &Self) -> bool {
        COMPARISONS[TEST].fetch_add(1, Ordering::Relaxed);
        (self.hash, self.name) == (other.hash, other.name)
    }
}

impl<const TEST: usize> Eq for Key<TEST> {}

impl<const TEST: usize> Hash for Key<TEST> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

/// Asserts that each of `operations` on keys compared at most as many keys as are told apart for one hash value.
fn assert_bounded<const TEST: usize>(operations: usize) {
    let comparisons = COMPARISONS[TEST].load(Ordering::Relaxed);
    assert!(comparisons <= operations * MAX_KEYS_PER_HASH, "{comparisons} comparisons");
}

/// Takes all keys, one at a time, and returns their names.
fn take_all<const TEST: usize>(queue: &WorkQueue<Key<TEST>>) -> BTreeSet<usize> {
    let mut names = BTreeSet::new();
    while let Some(item) = queue.try_get() {
        names.insert(item.name);
        item.done();
    }
    names
}

#[test]
fn keys_of_one_hash_value_are_queued_in_bounded_time() {
    let queue = WorkQueue::builder().build();
    (0..KEYS).for_each(|name| queue.add(Key::<0>::new(name)));
    assert_bounded::<0>(KEYS);
    assert_eq!(queue.len(), KEYS);
    assert_eq!(take_all(&queue).len(), KEYS);
    assert_bounded::<0>(3 * KEYS);
}

#[tokio::test(start_paused = true)]
async fn keys_of_one_hash_value_are_delayed_in_bounded_time() {
    let queue = WorkQueue::builder().build();
    let delay = Duration::from_secs(1);
    (0..KEYS).for_each(|name| queue.add_after(Key::<1>::new(name), delay));
    assert_eq!(queue.delayed_len(), KEYS);
    tokio::time::advance(delay).await;
    assert_eq!(take_all(&queue).len(), KEYS);
    assert_bounded::<1>(4 * KEYS);
}

#[test]
fn keys_of_one_hash_value_are_ranked_in_bounded_time() {
    let queue = WorkQueue::builder().build();
    (0..KEYS).for_each(|name| queue.add_with(Key::<2>::new(name), Priority::LOW));
    assert_eq!(take_all(&queue).len(), KEYS);
    assert_bounded::<2>(3 * KEYS);
}

/// Keys beyond the bound share one count: the delays grow, and a retry is never free.
#[test]
fn failures_of_one_hash_value_are_counted_in_bounded_time() {
    let limiter = ExponentialLimiter::new(Duration::from_millis(1), Duration::from_secs(1));
    for name in 0..KEYS {
        let before = limiter.num_requeues(&Key::<3>::new(name));
        limiter.when(&Key::<3>::new(name));
        assert!(limiter.num_requeues(&Key::<3>::new(name)) == before + 1);
    }
    assert_bounded::<3>(4 * KEYS);
    (0..KEYS).for_each(|name| limiter.forget(&Key::<3>::new(name)));
    assert!((0..KEYS).all(|name| limiter.num_requeues(&Key::<3>::new(name)) == 0));
}

/// Up to the bound every promise holds.
#[test]
fn as_many_keys_as_documented_are_told_apart() {
    let queue = WorkQueue::builder().build();
    for _ in 0..3 {
        (0..MAX_KEYS_PER_HASH).for_each(|name| queue.add(Key::<4>::new(name)));
    }
    assert_eq!(queue.len(), MAX_KEYS_PER_HASH);
    let first = queue.try_get().unwrap();
    queue.add(first.key().clone());
    assert_eq!(queue.len(), MAX_KEYS_PER_HASH - 1, "added while in flight");
}

/// A key beyond the bound may be queued twice. Two workers still never hold it at once.
#[test]
fn a_key_that_is_queued_twice_has_one_worker_at_a_time() {
    for priority in [Priority::NORMAL, Priority::LOW] {
        let queue = WorkQueue::builder().build();
        let last = Key::<5>::new(MAX_KEYS_PER_HASH);
        (0..MAX_KEYS_PER_HASH).for_each(|name| queue.add_with(Key::<5>::new(name), priority));
        queue.add_with(last.clone(), priority);
        queue.add_with(last.clone(), priority);
        for name in 0..MAX_KEYS_PER_HASH {
            let item = queue.try_get().unwrap();
            assert_eq!(item.name, name);
            item.done();
        }
        let held = queue.try_get().unwrap();
        assert_eq!(*held, last);
        assert!(queue.try_get().is_none(), "no second worker");
        held.done();
        let again = queue.try_get().unwrap();
        assert_eq!(*again, last, "the second add counts as an add while in flight");
        again.done();
        assert!(queue.try_get().is_none());
    }
}

/// A few hash values with many keys each. Splitting the table must not assume that they spread evenly.
#[test]
fn few_hash_values_do_not_overfill_a_table() {
    let queue = WorkQueue::builder().build();
    for name in 0..60 * 300 {
        queue.add(Key::<5> { hash: name % 60, name });
    }
    assert_eq!(take_all(&queue).len(), 60 * 300);
}
