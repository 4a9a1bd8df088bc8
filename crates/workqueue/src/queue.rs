//! The handle a user holds.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::add::AddOptions;
use crate::builder::Builder;
use crate::drain::{Delayed, Drain};
use crate::get::Get;
use crate::item::Item;
use crate::priority::Priority;
use crate::ready::Ticket;
use crate::shared::{Shared, nanos};

/// A queue of keys that need work, shared by any number of producers and workers.
///
/// Promises:
/// 1. A key is never held by two workers at once.
/// 2. A key added any number of times before a worker takes it is taken once. A key added while a worker
///    holds it is taken once more afterwards.
/// 3. First in, first out; with priorities, highest first and first in, first out within a priority, except
///    that every so often the longest waiting key goes first (see [`Builder::oldest_every`]).
/// 4. A taken key always comes back to a verdict: an [`Item`] that is dropped without one is retried.
/// 5. A delayed key is added at its time, in exact order of time. A key is delayed at most once, until the
///    earliest time asked for. A delayed key that is also added at once runs now and at its time.
/// 6. No operation but `get` and the drain ever waits, whatever the number of keys.
/// 7. Once [`get`](WorkQueue::get) has returned `None` it always will.
///
/// Not promised: that a key is taken as often as it was added, or that a delayed key runs while nobody calls
/// `get` (the queue has no task of its own; those who wait for work keep the time).
///
/// Cloning is cheap; all clones are the same queue.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use kube_workqueue::WorkQueue;
///
/// let queue = WorkQueue::named("greetings");
/// queue.add("world");
/// queue.add("world");
///
/// let item = queue.get().await.expect("not shut down");
/// assert_eq!(*item, "world");
/// item.forget();                 // success
/// assert_eq!(queue.len(), 0);    // two adds, one run
/// # }
/// ```
pub struct WorkQueue<K> {
    pub(crate) shared: Arc<Handle<K>>,
}

/// One clone of a [`WorkQueue`], with its items. Each clone has a reference count of its own: workers that have
/// a clone each do not fight for the cache line of a common count with every item they take.
pub(crate) struct Handle<K>(Arc<Shared<K>>);

impl<K> Deref for Handle<K> {
    type Target = Shared<K>;

    fn deref(&self) -> &Shared<K> {
        &self.0
    }
}

/// A key that waits for its time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DelayedKey<K> {
    /// The key.
    pub key: K,
    /// When it will be added; `None` is never.
    pub due: Option<Instant>,
    /// The priority it will be added with.
    pub priority: Priority,
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> WorkQueue<K> {
    /// A queue with the default rate limiter and metrics under `name`.
    pub fn named(name: impl Into<String>) -> Self {
        Self::builder().name(name).build()
    }

    /// A queue to your taste.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// The name it was given, or "".
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// `key` needs work. Ignored after shutdown.
    pub fn add(&self, key: K) {
        self.add_now(key, Priority::default());
    }

    /// `key` needs work after `delay`. If it is delayed already, the earlier time wins. After `Duration::MAX` is never:
    /// the key stays delayed until it is added with an earlier time or cancelled.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_delayed(key, delay, Priority::default());
    }

    /// `key` needs work after a delay that the rate limiter chooses, and counts as having failed once more.
    pub fn add_rate_limited(&self, key: K) {
        let delay = self.shared.limiter().when(&key);
        self.add_after(key, delay);
    }

    /// `key` needs work, with a priority, a delay, or both.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use kube_workqueue::{AddOptions, Priority, WorkQueue};
    /// # let queue = WorkQueue::builder().build();
    /// queue.add_with("a", Priority::LOW);
    /// queue.add_with("b", AddOptions::new().priority(Priority(7)).after(Duration::from_secs(3)));
    /// ```
    pub fn add_with(&self, key: K, options: impl Into<AddOptions>) {
        let AddOptions { priority, after, rate_limited } = options.into();
        let limited = rate_limited.then(|| self.shared.limiter().when(&key));
        match limited.max(after) {
            Some(delay) => self.add_delayed(key, delay, priority),
            None => _ = self.add_now(key, priority),
        }
    }

    /// Waits for a key and takes it; `None` once the queue is shut down and nothing will come any more.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: it holds no key, and a wake-up meant for it passes on to
    /// another. As with any such future, do not keep one around without polling it.
    ///
    /// # Panics
    /// Waiting while keys are delayed needs a tokio runtime with time enabled.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(self)
    }

    /// Takes a key if one is ready.
    pub fn try_get(&self) -> Option<Item<K>> {
        let started = self.shared.measured_now();
        let ticket = self.shared.with_due(|state| state.take(started))?;
        Some(Item::new(self.same(), ticket, started))
    }

    /// How many keys are ready to be taken.
    pub fn len(&self) -> usize {
        self.shared.with_due(|state| state.ready_len())
    }

    /// Whether no key is ready to be taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys workers hold.
    pub fn in_flight(&self) -> usize {
        self.shared.with(|state| state.in_flight().len())
    }

    /// How often `key` has failed since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.limiter().num_requeues(key)
    }

    /// Forgets the failures of `key`. Delayed and queued work stays.
    pub fn forget(&self, key: &K) {
        self.shared.limiter().forget(key);
    }

    /// The keys that wait for their time, soonest first. Copies them all: for people and tests, not for hot
    /// paths.
    pub fn delayed(&self) -> Vec<DelayedKey<K>> {
        let copy = |(key, due, turn, priority): (&K, u64, u32, Priority)| (due, turn, key.clone(), priority);
        let mut keys: Vec<_> = self.shared.with_due(|state| state.delayed().iter().map(copy).collect());
        keys.sort_unstable_by_key(|(due, turn, ..)| (*due, *turn));
        let describe = |(due, _, key, priority)| DelayedKey { key, due: self.shared.instant(due), priority };
        keys.into_iter().map(describe).collect()
    }

    /// How many keys wait for their time.
    pub fn delayed_len(&self) -> usize {
        self.shared.with_due(|state| state.delayed().len())
    }

    /// When `key` will be added; `None` if it is not delayed, or for ever.
    pub fn due(&self, key: &K) -> Option<Instant> {
        let hash = self.shared.hash(key);
        let due = self.shared.with_due(|state| state.delayed().due(hash, key))?;
        self.shared.instant(due)
    }

    /// Forgets that `key` is delayed; says whether it was. Queued and running work is not touched.
    pub fn cancel(&self, key: &K) -> bool {
        let hash = self.shared.hash(key);
        self.shared.with_due(|state| state.cancel(hash, key))
    }

    /// Accepts nothing more and drops what is delayed. Workers still get what is queued, then `None`. Ends
    /// the waiting of any drain.
    pub fn shutdown(&self) {
        self.shared.with_due(|state| {
            state.close(false);
            state.abort_drains();
        });
    }

    /// Accepts nothing more, and waits until workers have finished all that is queued and in flight; delayed
    /// keys are dropped at once, or run at their time. From now on a retry is a `done`, so that a key that
    /// always fails cannot hold up the end.
    ///
    /// `false` if [`shutdown`](WorkQueue::shutdown) ended the wait. Somebody must be calling `get`: the queue
    /// does not run anything itself. The queue is closed when this is called; only the waiting is lazy.
    pub fn shutdown_and_drain(&self, delayed: Delayed) -> Drain<'_, K> {
        Drain::new(self, delayed)
    }

    /// Whether the queue no longer accepts keys.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.with(|state| state.is_closed())
    }

    /// Brings the gauges `workqueue_unfinished_work_seconds` and `workqueue_longest_running_processor_seconds`
    /// up to date. [`run_workers`](WorkQueue::run_workers) does so twice a second; with workers of your own,
    /// call this before metrics are read.
    pub fn refresh_metrics(&self) {
        if let Some(metrics) = self.shared.metrics() {
            let now = self.shared.now();
            let (total, longest) = self.shared.with(|state| state.in_flight().ages(now));
            metrics.unfinished(total, longest);
        }
    }

    /// Says whether the key was accepted.
    fn add_now(&self, key: K, priority: Priority) -> bool {
        let (hash, since) = (self.shared.hash(&key), self.shared.measured_now());
        self.shared.with_due(|state| state.add(Ticket { key, hash, priority, since }))
    }

    pub(crate) fn add_delayed(&self, key: K, delay: Duration, priority: Priority) {
        let accepted = if delay.is_zero() {
            self.add_now(key, priority)
        } else {
            let (hash, now) = (self.shared.hash(&key), self.shared.now());
            let due = now.saturating_add(nanos(delay));
            self.shared.with(|state| {
                state.promote(now);
                state.add_at(hash, key, due, priority)
            })
        };
        if accepted && let Some(metrics) = self.shared.metrics() {
            metrics.retried();
        }
    }
}

impl<K> WorkQueue<K> {
    pub(crate) fn new(shared: Shared<K>) -> Self {
        Self { shared: Arc::new(Handle(Arc::new(shared))) }
    }

    /// The same handle, for an item.
    pub(crate) fn same(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::new(Handle(Arc::clone(&self.shared.0))) }
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("WorkQueue");
        debug.field("name", &self.name());
        self.shared.with(|state| {
            debug.field("ready", &state.ready_len());
            debug.field("in_flight", &state.in_flight().len());
            debug.field("delayed", &state.delayed().len());
            debug.field("shutting_down", &state.is_closed());
        });
        debug.finish()
    }
}
