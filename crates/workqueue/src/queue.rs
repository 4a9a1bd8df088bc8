//! The handle of a queue.

use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::add::AddOptions;
use crate::builder::Builder;
use crate::delayed::Copied;
use crate::drain::{Delayed, Drain};
use crate::get::Get;
use crate::item::Item;
use crate::priority::Priority;
use crate::ready::Ticket;
use crate::shared::{Shared, nanos};

/// Number of delayed keys that are copied while the lock is held.
const COPY_AT_ONCE: usize = 64;

/// A queue of keys that need work, shared by any number of producers and workers.
///
/// Promises:
/// 1. A key is never held by two workers at once.
/// 2. A key added any number of times before a worker takes it is taken once. A key added while a worker
///    holds it is taken once more afterwards.
/// 3. Keys are taken first in, first out; with priorities, highest first and first in, first out within a priority,
///    except that every n-th take serves the oldest key (see [`Builder::oldest_every`]).
/// 4. No taken key is lost: an [`Item`] that is dropped is retried.
/// 5. A delayed key is added when it is due, in exact order of due times. A key is delayed at most once, until the
///    earliest of the requested times. A delayed key that is also added without a delay runs now and when it is due.
/// 6. Only `get` and the drain wait. No other operation does, whatever the number of keys.
/// 7. Once [`get`](WorkQueue::get) has returned `None` it always will.
///
/// Promises 2 and 5 hold for up to [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) queued, and as many delayed, keys of
/// one hash value, and for any number of them if the queue is [`ordered`](Builder::ordered). Without an order, a key beyond
/// that may run several times instead of once, and [`due`](WorkQueue::due) and [`cancel`](WorkQueue::cancel) may not find it;
/// it is never lost, and never has two workers. With a sound `Hash` this does not happen.
///
/// `Hash`, `Eq`, `Ord` and `Clone` of keys must not use the queue: some calls of them need its lock. They are few, whatever the
/// number of keys: an add compares the key with at most [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) queued and as many
/// delayed keys, and with keys in flight, of the same hash value, and looks for it in the order of the others if there is
/// one; a take hashes and clones one key. If one of them panics, that
/// key is dropped or not deduplicated, and the queue goes on with the others. Everything else of the user (drops of keys, rate limiters,
/// wakers, metrics) is called without the lock.
///
/// Not promised: that a key is taken as often as it was added, or that a delayed key runs while no task waits in `get`
/// (the queue has no task of its own; waiting workers watch the clock).
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

/// One clone of a [`WorkQueue`], with its items. Each clone has its own reference count, so workers with a clone each do
/// not contend for the cache line of a common count with every item.
pub(crate) struct Handle<K>(Arc<Shared<K>>);

impl<K> Deref for Handle<K> {
    type Target = Shared<K>;

    fn deref(&self) -> &Shared<K> {
        &self.0
    }
}

/// A delayed key.
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
    /// Builds a queue with the default rate limiter and with metrics under `name`.
    pub fn named(name: impl Into<String>) -> Self {
        Self::builder().name(name).build()
    }

    /// Configures a queue.
    pub fn builder() -> Builder<K> {
        Builder::new()
    }

    /// The name of the queue, or "".
    pub fn name(&self) -> &str {
        self.shared.name()
    }

    /// Adds `key`. Ignored after shutdown.
    pub fn add(&self, key: K) {
        self.add_now(key, Priority::default());
    }

    /// Adds `key` after `delay`. If it is delayed already, the earlier time wins. `Duration::MAX` means never: the key stays
    /// delayed until it is added with an earlier time or cancelled.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.add_delayed(key, delay, Priority::default());
    }

    /// Counts a failure of `key`, and adds it after the delay that the rate limiter returns.
    pub fn add_rate_limited(&self, key: K) {
        let delay = self.shared.retry_delay(&key);
        self.add_after(key, delay);
    }

    /// Adds `key` with a priority, a delay, or both.
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
        let limited = rate_limited.then(|| self.shared.retry_delay(&key));
        match limited.max(after) {
            Some(delay) => self.add_delayed(key, delay, priority),
            None => _ = self.add_now(key, priority),
        }
    }

    /// Waits for a key and takes it. `None` if the queue is shut down and no key can become ready any more.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time: it holds no key, and a wake-up meant for it passes on to another one. As
    /// with any such future, do not keep it without polling it.
    ///
    /// # Panics
    /// Waiting while keys are delayed needs a tokio runtime with time enabled.
    pub fn get(&self) -> Get<'_, K> {
        Get::new(self)
    }

    /// Takes a key if one is ready.
    pub fn try_get(&self) -> Option<Item<K>> {
        let started = self.shared.measured_now();
        let taken = self.shared.with_due(|state| state.take(started))?;
        Some(Item::new(self.same(), taken, started))
    }

    /// Number of keys that are ready to be taken.
    pub fn len(&self) -> usize {
        self.shared.with_due(|state| state.ready_len())
    }

    /// Whether no key is ready to be taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of keys that workers hold.
    pub fn in_flight(&self) -> usize {
        self.shared.with(|state| state.in_flight().len())
    }

    /// Number of failures of `key` since they were last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.num_requeues(key)
    }

    /// Forgets the failures of `key`. Does not remove it from the queue.
    pub fn forget(&self, key: &K) {
        self.shared.forget(key);
    }

    /// The delayed keys, soonest first: for debugging and tests, not for hot paths. Copies a few keys at a time under the lock. A
    /// key that is added, cancelled or becomes due during the call may be listed or not.
    pub fn delayed(&self) -> Vec<DelayedKey<K>> {
        let (mut keys, mut slot) = (Vec::new(), Some(0));
        while let Some(from) = slot {
            let (copied, next) = self.shared.with_due(|state| state.delayed().copy(from, COPY_AT_ONCE));
            keys.extend(copied);
            slot = next;
        }
        let next_arrival = self.shared.with(|state| state.delayed().next_arrival());
        keys.sort_unstable_by_key(|copied| (copied.due, copied.arrival.wrapping_sub(next_arrival)));
        let describe = |copied: Copied<K>| {
            let Copied { key, due, priority, .. } = copied;
            DelayedKey { key, due: self.shared.instant(due), priority }
        };
        keys.into_iter().map(describe).collect()
    }

    /// Number of delayed keys.
    pub fn delayed_len(&self) -> usize {
        self.shared.with_due(|state| state.delayed().len())
    }

    /// When `key` will be added; `None` if it is not delayed, or for ever.
    pub fn due(&self, key: &K) -> Option<Instant> {
        let hash = self.shared.hash(key);
        let due = self.shared.with_due(|state| state.delayed().due(hash, key))?;
        self.shared.instant(due)
    }

    /// Removes `key` from the delayed keys, and returns whether it was there. A queued or running key is not affected.
    pub fn cancel(&self, key: &K) -> bool {
        let hash = self.shared.hash(key);
        self.shared.with_due(|state| state.cancel(hash, key))
    }

    /// Closes the queue and drops delayed keys. Workers still get the queued keys, then `None`. Ends any drain.
    pub fn shutdown(&self) {
        self.shared.with_due(|state| {
            state.close(false);
            state.abort_drains();
        });
    }

    /// Closes the queue, and waits until workers have finished all keys that are queued and in flight. Delayed keys are
    /// dropped, or run when they are due. From now on a retry is a `done`, so that a key that always fails cannot delay
    /// the shutdown.
    ///
    /// Resolves to `false` if [`shutdown`](WorkQueue::shutdown) ended the drain. Workers must be running: the queue does
    /// not process keys itself. The call closes the queue; the future only waits.
    pub fn shutdown_and_drain(&self, delayed: Delayed) -> Drain<'_, K> {
        Drain::new(self, delayed)
    }

    /// Whether the queue no longer accepts keys.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.with(|state| state.is_closed())
    }

    /// Updates the gauges `workqueue_unfinished_work_seconds` and `workqueue_longest_running_processor_seconds`.
    /// [`run_workers`](WorkQueue::run_workers) does so twice a second; with your own workers, call this before metrics
    /// are read.
    pub fn refresh_metrics(&self) {
        if let Some(metrics) = self.shared.metrics() {
            let now = self.shared.now();
            let (total, longest) = self.shared.with(|state| state.in_flight().ages(now));
            metrics.unfinished(total, longest);
        }
    }

    /// Adds a key, and returns whether it was accepted.
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
            self.shared.with_due(|state| state.add_at(hash, key, due, priority))
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
        let (ready, in_flight, delayed, shutting_down) = self.shared.with(|state| {
            (state.ready_len(), state.in_flight().len(), state.delayed().len(), state.is_closed())
        });
        f.debug_struct("WorkQueue")
            .field("name", &self.name())
            .field("ready", &ready)
            .field("in_flight", &in_flight)
            .field("delayed", &delayed)
            .field("shutting_down", &shutting_down)
            .finish()
    }
}
