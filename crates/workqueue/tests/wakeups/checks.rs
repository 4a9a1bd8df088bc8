//! Situations in which a wake-up could be lost.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shuttle::future::block_on;
use shuttle::thread;

use crate::WorkQueue;
use crate::drain::Delayed;
use crate::time;

const MS: Duration = Duration::from_millis(1);

fn queue() -> WorkQueue<u8> {
    WorkQueue::builder().build()
}

/// Checks all schedules.
fn exhaustively(check: impl Fn() + Send + Sync + 'static) {
    shuttle::check_dfs(check, None);
}

/// Many schedules with few preemptions, and many random ones, where there are too many to check all.
fn widely(check: impl Fn() + Clone + Send + Sync + 'static) {
    shuttle::check_pct(check.clone(), 500, 3);
    shuttle::check_random(check, 500);
}

fn take(queue: &WorkQueue<u8>) -> Option<u8> {
    let item = block_on(queue.get())?;
    let key = *item;
    item.done();
    Some(key)
}

fn in_thread<R: Send + 'static>(
    queue: &WorkQueue<u8>,
    run: impl FnOnce(&WorkQueue<u8>) -> R + Send + 'static,
) -> thread::JoinHandle<R> {
    let queue = queue.clone();
    thread::spawn(move || run(&queue))
}

/// Polls a `get` once and drops it.
fn wait_and_give_up(queue: &WorkQueue<u8>) {
    let mut get = pin!(queue.get());
    if let Poll::Ready(item) = get.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        // Put it back for the other waiters.
        let item = item.expect("not shut down");
        queue.add(*item);
        item.done();
    }
    thread::yield_now();
}

#[test]
fn an_add_meets_a_get() {
    exhaustively(|| {
        let queue = queue();
        let worker = in_thread(&queue, take);
        queue.add(1);
        assert_eq!(worker.join().unwrap(), Some(1));
    });
}

#[test]
fn two_adds_meet_two_gets() {
    widely(|| {
        let queue = queue();
        let workers = [in_thread(&queue, take), in_thread(&queue, take)];
        let producer = in_thread(&queue, |queue| queue.add(1));
        queue.add(2);
        let mut keys = workers.map(|worker| worker.join().unwrap().unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
        producer.join().unwrap();
    });
}

#[test]
fn a_get_that_gives_up_passes_its_wake_up_on() {
    widely(|| {
        let queue = queue();
        let quitter = in_thread(&queue, wait_and_give_up);
        let worker = in_thread(&queue, take);
        queue.add(1);
        assert_eq!(worker.join().unwrap(), Some(1));
        quitter.join().unwrap();
    });
}

#[test]
fn a_key_added_while_held_reaches_another_worker() {
    widely(|| {
        let queue = queue();
        queue.add(1);
        let held = block_on(queue.get()).unwrap();
        let other = in_thread(&queue, take);
        let producer = in_thread(&queue, |queue| queue.add(1));
        producer.join().unwrap();
        held.done();
        assert_eq!(other.join().unwrap(), Some(1));
    });
}

#[test]
fn a_key_added_while_another_finishes_is_never_lost() {
    widely(|| {
        let queue = queue();
        queue.add(1);
        let held = block_on(queue.get()).unwrap();
        let producer = in_thread(&queue, |queue| queue.add(1));
        let other = in_thread(&queue, take);
        held.done();
        producer.join().unwrap();
        assert_eq!(other.join().unwrap(), Some(1));
    });
}

#[test]
fn a_delayed_key_reaches_a_waiter() {
    exhaustively(|| {
        let queue = queue();
        let worker = in_thread(&queue, take);
        queue.add_after(1, MS);
        assert_eq!(worker.join().unwrap(), Some(1));
    });
}

#[test]
fn an_earlier_time_reaches_the_timekeeper() {
    widely(|| {
        let queue = queue();
        queue.add_after(1, MS * 1000);
        let workers = [in_thread(&queue, take), in_thread(&queue, take)];
        queue.add_after(2, MS);
        let mut keys = workers.map(|worker| worker.join().unwrap().unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
    });
}

#[test]
fn a_timekeeper_that_gives_up_is_replaced() {
    widely(|| {
        let queue = queue();
        queue.add_after(1, MS);
        let quitter = in_thread(&queue, wait_and_give_up);
        let worker = in_thread(&queue, take);
        assert_eq!(worker.join().unwrap(), Some(1));
        quitter.join().unwrap();
    });
}

/// The timekeeper is called away for a ready key while another key is still delayed.
#[test]
fn a_timekeeper_that_finds_work_is_replaced() {
    widely(|| {
        let queue = queue();
        queue.add_after(1, MS);
        let workers = [in_thread(&queue, take), in_thread(&queue, take)];
        queue.add(2);
        let mut keys = workers.map(|worker| worker.join().unwrap().unwrap());
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
    });
}

#[test]
fn cancelling_the_first_delayed_key_strands_no_waiter() {
    widely(|| {
        let queue = queue();
        queue.add_after(1, MS);
        queue.add_after(2, MS * 2);
        let worker = in_thread(&queue, |queue| {
            let first = take(queue);
            if first == Some(1) { take(queue) } else { first }
        });
        queue.cancel(&1);
        assert_eq!(worker.join().unwrap(), Some(2));
    });
}

/// A runtime whose thread is blocked holds a waiter that was woken, or the timer. A worker of another runtime gets the key.
#[test]
fn a_blocked_runtime_does_not_keep_keys_from_another_one() {
    widely(|| {
        for delay in [Duration::ZERO, MS] {
            let queue = queue();
            let worker = in_thread(&queue, |queue| {
                time::enter_runtime(1);
                take(queue)
            });
            // Waits, is perhaps woken, and is never polled again.
            let mut blocked = Box::pin(queue.get());
            let polled = blocked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
            queue.add_after(1, delay);
            assert_eq!(worker.join().unwrap(), Some(1));
            drop(blocked);
        }
    });
}

/// All workers end after a shutdown, and no queued key is skipped.
#[test]
fn shutdown_reaches_every_worker() {
    widely(|| {
        let queue = queue();
        let count = |queue: &WorkQueue<u8>| std::iter::from_fn(|| take(queue)).count();
        let workers = [in_thread(&queue, count), in_thread(&queue, count)];
        queue.add(1);
        queue.add(2);
        queue.shutdown();
        assert_eq!(workers.map(|worker| worker.join().unwrap()).iter().sum::<usize>(), 2);
    });
}

#[test]
fn a_drain_ends_when_all_is_done() {
    widely(|| {
        let queue = queue();
        queue.add(1);
        queue.add_after(2, MS);
        let count = |queue: &WorkQueue<u8>| std::iter::from_fn(|| take(queue)).count();
        let workers = [in_thread(&queue, count), in_thread(&queue, count)];
        assert!(block_on(queue.shutdown_and_drain(Delayed::Run)));
        assert_eq!((queue.len(), queue.in_flight()), (0, 0));
        assert_eq!(workers.map(|worker| worker.join().unwrap()).iter().sum::<usize>(), 2);
    });
}

#[test]
fn a_shutdown_frees_a_drain() {
    widely(|| {
        let queue = queue();
        queue.add(1);
        let held = block_on(queue.get()).unwrap();
        let mut drain = Box::pin(queue.shutdown_and_drain(Delayed::Drop));
        let other = in_thread(&queue, |queue| queue.shutdown());
        assert!(!block_on(&mut drain), "ended early: the key is still in flight");
        other.join().unwrap();
        held.done();
    });
}
