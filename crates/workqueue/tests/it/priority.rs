//! Priorities.

use std::time::Duration;

use kube_workqueue::{AddOptions, Priority, WorkQueue};
use tokio::time::advance;

fn take_all<K: Clone + Eq + std::hash::Hash + Send + Sync + 'static>(queue: &WorkQueue<K>) -> Vec<K> {
    std::iter::from_fn(|| {
        let item = queue.try_get()?;
        let key = item.key().clone();
        item.done();
        Some(key)
    })
    .collect()
}

#[test]
fn higher_first_and_first_in_first_out_within() {
    let queue = WorkQueue::builder().build();
    queue.add("n1");
    queue.add_with("l1", Priority::LOW);
    queue.add_with("h1", Priority::HIGH);
    queue.add("n2");
    queue.add_with("h2", Priority::HIGH);
    queue.add_with("l2", Priority::LOW);
    assert_eq!(take_all(&queue), ["h1", "h2", "n1", "n2", "l1", "l2"]);
}

#[test]
fn a_higher_priority_moves_a_key_up_and_a_lower_one_has_no_effect() {
    let queue = WorkQueue::builder().build();
    queue.add("a");
    queue.add("b");
    queue.add("c");
    queue.add_with("c", Priority(5));
    queue.add_with("c", Priority(1));
    queue.add_with("a", Priority::LOW);
    assert_eq!(take_all(&queue), ["c", "a", "b"]);
}

#[test]
fn an_add_while_in_flight_sets_the_priority() {
    let queue = WorkQueue::builder().build();
    queue.add("held");
    let item = queue.try_get().unwrap();
    queue.add("other");
    queue.add("held");
    queue.add_with("held", Priority::HIGH);
    item.done();
    assert_eq!(take_all(&queue), ["held", "other"]);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_keeps_its_priority() {
    let queue = WorkQueue::builder().build();
    let second = Duration::from_secs(1);
    queue.add_after("late", second);
    queue.add_with("late", AddOptions::new().priority(Priority(1)).after(second * 2));
    advance(second).await;
    queue.add("other");
    let item = queue.try_get().unwrap();
    assert_eq!((*item, item.priority()), ("late", Priority(1)));
    item.done();
}

#[tokio::test(start_paused = true)]
async fn a_new_priority_of_a_delayed_key_changes_no_other() {
    let queue = WorkQueue::builder().build();
    let add = |key, priority| {
        queue.add_with(key, AddOptions::new().priority(Priority(priority)).after(Duration::from_secs(1)));
    };
    add("first", 1);
    add("second", 2);
    add("first", 3);
    let delayed = queue.delayed();
    let priorities: Vec<_> = delayed.iter().map(|delayed| (delayed.key, delayed.priority)).collect();
    assert_eq!(priorities, [("first", Priority(3)), ("second", Priority(2))]);
}

/// Under a flood of urgent keys, a key with `m` older ones before it waits at most `n * (m + 1)` takes.
#[test]
fn low_priorities_do_not_starve() {
    for others in [Priority::HIGH, Priority::default()] {
        let queue = WorkQueue::builder().oldest_every(8).build();
        let low: Vec<_> = (0..10u32).collect();
        low.iter().for_each(|key| queue.add_with(*key, Priority::LOW));
        let mut taken_at = Vec::new();
        for (other, take) in (1000..).zip(1..=200) {
            queue.add_with(other, others);
            let item = queue.try_get().unwrap();
            if *item < 1000 {
                taken_at.push(take);
            }
            item.done();
        }
        assert_eq!(taken_at, (1..=10).map(|m| m * 8).collect::<Vec<_>>(), "{others:?}");
    }
}

/// A queue with keys in it may begin to use priorities at any time.
#[test]
fn priorities_may_be_used_at_any_time() {
    let queue = WorkQueue::builder().oldest_every(u32::MAX).build();
    (0..1000).for_each(|key| queue.add(key));
    queue.add_with(2000, Priority(1));
    queue.add(500);
    let taken = take_all(&queue);
    assert_eq!(taken[0], 2000);
    assert_eq!(taken[1..], (0..1000).collect::<Vec<_>>());
}
