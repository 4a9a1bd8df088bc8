//! Random operations, each compared with a simple model.

mod reference;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use kube_workqueue::{AddOptions, Delayed, Get, Item, Priority, RateLimiter, WorkQueue};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::time::{Instant, advance};

use reference::{Model, RETRY_AFTER};

type Key = u8;

#[derive(Clone, Debug)]
enum Operation {
    Add(Key, i32),
    AddAfter(Key, u64, i32),
    Advance(u64),
    TryGet,
    /// A new waiter.
    Wait,
    /// Drops the waiter at this position.
    GiveUp(usize),
    /// Polls all waiters that were woken.
    Wakened,
    Done(usize),
    Retry(usize),
    RetryAfter(usize, u64),
    Cancel(Key),
    Shutdown,
    Drain(bool),
}

fn operation() -> impl Strategy<Value = Operation> {
    let key = 0..8u8;
    let priority = prop_oneof![6 => Just(0), 1 => -2..3i32];
    let position = 0..4usize;
    prop_oneof![
        12 => (key.clone(), priority.clone()).prop_map(|(key, priority)| Operation::Add(key, priority)),
        6 => (key.clone(), 0..30u64, priority).prop_map(|(key, ms, priority)| Operation::AddAfter(key, ms, priority)),
        6 => (0..20u64).prop_map(Operation::Advance),
        6 => Just(Operation::TryGet),
        6 => Just(Operation::Wait),
        2 => position.clone().prop_map(Operation::GiveUp),
        8 => Just(Operation::Wakened),
        8 => position.clone().prop_map(Operation::Done),
        3 => position.clone().prop_map(Operation::Retry),
        2 => (position, 0..30u64).prop_map(|(position, ms)| Operation::RetryAfter(position, ms)),
        2 => key.prop_map(Operation::Cancel),
        1 => prop_oneof![Just(Operation::Shutdown), any::<bool>().prop_map(Operation::Drain)],
    ]
}

/// Delays every retry by the same time.
struct Constant;

impl RateLimiter<Key> for Constant {
    fn when(&self, _: &Key) -> Duration {
        Duration::from_millis(RETRY_AFTER)
    }

    fn forget(&self, _: &Key) {}

    fn num_requeues(&self, _: &Key) -> u32 {
        0
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Waiter<'a> {
    get: Pin<Box<Get<'a, Key>>>,
    woken: Arc<Flag>,
}

/// The queue and the model, side by side.
struct Pair<'a> {
    queue: &'a WorkQueue<Key>,
    model: Model,
    items: Vec<Item<Key>>,
    waiters: Vec<Waiter<'a>>,
    start: Instant,
}

impl<'a> Pair<'a> {
    async fn run(&mut self, operation: Operation) {
        let ms = Duration::from_millis;
        self.model.promote();
        match operation {
            Operation::Add(key, priority) => {
                self.queue.add_with(key, Priority(priority));
                self.model.add(key, priority);
            }
            Operation::AddAfter(key, delay, priority) => {
                self.queue.add_with(key, AddOptions::new().after(ms(delay)).priority(Priority(priority)));
                self.model.add_after(key, delay, priority);
            }
            Operation::Advance(by) => {
                advance(ms(by)).await;
                self.model.now += by;
                self.model.promote();
            }
            Operation::TryGet => {
                let item = self.queue.try_get();
                assert_eq!(item.as_ref().map(|item| *item.key()), self.model.take());
                self.items.extend(item);
            }
            Operation::Wait if self.waiters.len() < 4 => {
                self.waiters.push(Waiter { get: Box::pin(self.queue.get()), woken: Arc::default() });
                self.poll(self.waiters.len() - 1);
            }
            Operation::Wait => {}
            Operation::GiveUp(at) => {
                if at < self.waiters.len() {
                    drop(self.waiters.remove(at));
                }
            }
            Operation::Wakened => self.poll_woken(),
            Operation::Done(at) => self.finish(at, None, Item::done),
            Operation::Retry(at) => self.finish(at, Some(RETRY_AFTER), drop),
            Operation::RetryAfter(at, delay) => {
                self.finish(at, Some(delay), |item| item.retry_after(ms(delay)))
            }
            Operation::Cancel(key) => assert_eq!(self.queue.cancel(&key), self.model.cancel(key)),
            Operation::Shutdown => {
                self.queue.shutdown();
                self.model.close(false);
            }
            Operation::Drain(run) => {
                drop(self.queue.shutdown_and_drain(if run { Delayed::Run } else { Delayed::Drop }));
                self.model.close(run);
            }
        }
    }

    fn finish(&mut self, at: usize, again: Option<u64>, verdict: impl FnOnce(Item<Key>)) {
        if at < self.items.len() {
            let item = self.items.remove(at);
            let (key, priority) = (*item, item.priority().0);
            verdict(item);
            if let Some(delay) = again {
                self.model.add_after(key, delay, priority);
            }
            self.model.finish(key);
        }
    }

    /// Polls one waiter; says whether it is through.
    fn poll(&mut self, at: usize) -> bool {
        let Waiter { get, woken } = &mut self.waiters[at];
        let waker = Waker::from(Arc::clone(woken));
        let Poll::Ready(item) = get.as_mut().poll(&mut Context::from_waker(&waker)) else {
            assert!(self.model.nothing_to_take(), "a waiter waits though there is something to take");
            return false;
        };
        match &item {
            Some(item) => assert_eq!(Some(**item), self.model.take()),
            None => assert!(self.model.exhausted()),
        }
        self.items.extend(item);
        self.waiters.remove(at);
        true
    }

    /// Polls all woken waiters until none is left; then no waiter may have missed a key.
    fn poll_woken(&mut self) {
        while let Some(at) =
            self.waiters.iter().position(|waiter| waiter.woken.0.swap(false, Ordering::SeqCst))
        {
            self.poll(at);
        }
        let forgotten = !self.waiters.is_empty() && !self.model.nothing_to_take();
        assert!(!forgotten, "a waiter was not woken for a ready key");
    }

    fn check(&self) {
        assert_eq!(self.queue.len(), self.model.ready_len());
        assert_eq!(self.queue.in_flight(), self.items.len());
        let delayed: Vec<_> = self
            .queue
            .delayed()
            .into_iter()
            .map(|delayed| {
                ((delayed.due.unwrap() - self.start).as_millis() as u64, delayed.key, delayed.priority.0)
            })
            .collect();
        assert_eq!(delayed, self.model.delayed());
        assert_eq!(self.queue.is_shutting_down(), self.model.closed);
    }
}

async fn compare(operations: Vec<Operation>) {
    let queue = WorkQueue::builder().rate_limiter(Constant).oldest_every(4).build();
    let (items, waiters) = (Vec::new(), Vec::new());
    let mut pair = Pair { queue: &queue, model: Model::new(4), items, waiters, start: Instant::now() };
    for operation in operations {
        pair.run(operation).await;
        pair.check();
    }
    pair.poll_woken();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_behaves_like_its_model(operations in vec(operation(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(tokio::task::coop::unconstrained(compare(operations)));
    }
}
