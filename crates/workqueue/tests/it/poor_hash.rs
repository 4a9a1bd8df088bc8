//! Keys whose `Hash` is legal but poor. The tests count comparisons of keys, which is where the time goes.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube_workqueue::{ExponentialLimiter, MAX_KEYS_PER_HASH, Priority, RateLimiter, WorkQueue};

const KEYS: usize = 13_000;

static COMPARISONS: [AtomicUsize; 10] = [const { AtomicUsize::new(0) }; 10];

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

/// Counted like `Eq`.
impl<const TEST: usize> Ord for Key<TEST> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        COMPARISONS[TEST].fetch_add(1, Ordering::Relaxed);
        (self.hash, self.name).cmp(&(other.hash, other.name))
    }
}

impl<const TEST: usize> PartialOrd for Key<TEST> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Asserts that each of `operations` on keys compared at most as many keys as are distinguished for one hash value.
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

#[test]
fn a_key_of_the_same_hash_value_as_one_in_flight_is_queued() {
    let queue = WorkQueue::builder().build();
    queue.add(Key::<9>::new(1));
    let held = queue.try_get().unwrap();
    queue.add(Key::<9>::new(2));
    assert_eq!(queue.try_get().map(|item| item.name), Some(2));
    held.done();
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_higher_priority_moves_up_a_key_among_others_of_its_hash_value() {
    let queue = WorkQueue::builder().build();
    (0..MAX_KEYS_PER_HASH).for_each(|name| queue.add(Key::<9>::new(name)));
    let last = MAX_KEYS_PER_HASH - 1;
    queue.add_with(Key::<9>::new(last), Priority::HIGH);
    assert_eq!(queue.len(), MAX_KEYS_PER_HASH);
    assert_eq!(queue.try_get().map(|item| item.name), Some(last));
}

#[test]
fn as_many_keys_as_promised_are_counted_separately() {
    let limiter = ExponentialLimiter::new(Duration::from_millis(1), Duration::from_secs(1));
    for name in 0..MAX_KEYS_PER_HASH + 2 {
        limiter.when(&Key::<9>::new(name));
    }
    let counts = (0..MAX_KEYS_PER_HASH + 2).map(|name| limiter.num_requeues(&Key::<9>::new(name)));
    let expected = std::iter::repeat_n(1, MAX_KEYS_PER_HASH).chain([2, 2]);
    assert!(counts.eq(expected), "the last two share a count");
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

/// Beyond the bound, `Ord` keeps every promise: each key is queued once, whatever its priority, and moves up in place.
#[test]
fn an_ordered_queue_tells_any_number_of_keys_of_one_hash_value_apart() {
    for priority in [Priority::NORMAL, Priority::LOW] {
        let queue = WorkQueue::builder().ordered().build();
        for _ in 0..2 {
            (0..KEYS).rev().for_each(|name| queue.add_with(Key::<6>::new(name), priority));
        }
        assert_eq!(queue.len(), KEYS);
        let held = queue.try_get().unwrap();
        queue.add(held.key().clone());
        assert_eq!(queue.len(), KEYS - 1, "added while in flight");
        held.done();
        let urgent = Key::new(7);
        queue.add_with(urgent.clone(), Priority::HIGH);
        let first = queue.try_get().unwrap();
        assert_eq!((&*first, queue.len()), (&urgent, KEYS - 1));
        first.done();
        let mut taken = Vec::new();
        while let Some(item) = queue.try_get() {
            taken.push(item.name);
            item.done();
        }
        assert_eq!(taken.len(), KEYS - 1, "each once");
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), KEYS - 1);
    }
    // Each add also looks for the key in the order of the others, in up to three queues.
    assert_bounded::<6>(2 * 4 * KEYS * 2);
}

#[tokio::test(start_paused = true)]
async fn an_ordered_queue_delays_each_of_any_number_of_keys_of_one_hash_value_once() {
    let (long, short) = (Duration::from_secs(2), Duration::from_secs(1));
    let queue = WorkQueue::builder().ordered().build();
    for delay in [long, short, long] {
        (0..KEYS).for_each(|name| queue.add_after(Key::<7>::new(name), delay));
    }
    assert_eq!(queue.delayed_len(), KEYS);
    let due = tokio::time::Instant::now() + short;
    assert!((0..KEYS).all(|name| queue.due(&Key::new(name)) == Some(due)), "the earlier time wins");
    assert!((0..KEYS).step_by(2).all(|name| queue.cancel(&Key::new(name))));
    assert!((0..KEYS).step_by(2).all(|name| !queue.cancel(&Key::new(name))));
    tokio::time::advance(short).await;
    assert_eq!(take_all(&queue), (0..KEYS).skip(1).step_by(2).collect());
    assert_bounded::<7>(10 * KEYS);
}

/// Keys of other hash values are not affected by a crowd.
#[test]
fn an_ordered_queue_keeps_the_order_of_adds() {
    let queue = WorkQueue::builder().ordered().build();
    let names: Vec<usize> = (0..1_000).map(|n| n * 7 % 1_000).collect();
    names.iter().for_each(|&name| queue.add(Key::<8> { hash: name % 3, name }));
    let taken: Vec<usize> = std::iter::from_fn(|| {
        let item = queue.try_get()?;
        let name = item.name;
        item.done();
        Some(name)
    })
    .collect();
    assert_eq!(taken, names);
}
