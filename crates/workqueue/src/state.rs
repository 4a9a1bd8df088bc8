//! The state of a queue, without locks, tasks or clocks.

use std::hash::Hash;
use std::task::Waker;

use crate::crowd::Order;
use crate::delayed::{DelayedKeys, Due};
use crate::discarded::Discarded;
use crate::in_flight::{Added, Finished, FlightId, InFlight};
use crate::panics;
use crate::priority::Priority;
use crate::ready::{Hasher, Push, Ready, Ticket};
use crate::waiters::{WaiterId, Waiters, Wakes};

/// Number of due keys that are moved while the lock is held; then others get a chance to take it.
const PROMOTE_AT_ONCE: usize = 1_000;

/// The state under the lock.
///
/// A key is *ready* (queued), *in flight* (a worker holds it), or neither; never both. A key in flight may be *dirty*: it
/// becomes ready when its worker is done. Independently, a key may be *delayed*: it is added at a later time.
///
/// Exception: if keys have no order and more than [`MAX_KEYS_PER_HASH`](crate::MAX_KEYS_PER_HASH) of them share a hash, a key
/// may be ready twice, or ready and in flight. [`State::take`] makes up for it.
///
/// Invariants, true whenever the lock is free ([`State::settle`] restores them). The first two hold for the waiters of each
/// runtime, so that a runtime whose thread is blocked does not delay keys for workers of another one:
/// 1. There are at least as many called waiters as ready keys, or no waiter is idle.
/// 2. If a key is delayed and there are waiters, then the timekeeper's timer is set to the first due time or earlier, or
///    a waiter is called.
/// 3. If the queue is [exhausted](State::exhausted), no waiter is idle.
/// 4. If the queue is [at rest](State::at_rest), no drain is waiting.
///
/// A called waiter looks at the state before it waits again, so 1 to 3 mean that no wake-up is lost. Times are
/// nanoseconds since the queue was built.
pub(crate) struct State<K> {
    ready: Ready<K>,
    in_flight: InFlight<K>,
    delayed: DelayedKeys<K>,
    waiters: Waiters,
    drainers: Vec<(u64, Waker)>,
    phase: Phase,
    /// How often `shutdown` was called: each call ends earlier drains.
    shutdowns: u64,
    /// Whether a key may be ready twice, or ready and in flight.
    may_repeat: bool,
    wakes: Wakes,
    counts: Counts,
    discarded: Discarded<K>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// No key is accepted any more; queued keys are still handed out.
    Closed,
}

/// Changes of an operation, for the metrics.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Keys that were added and not coalesced.
    pub(crate) added: usize,
    /// Keys that became ready, less those that turned out to be in flight.
    pub(crate) queued: isize,
}

/// A key that a worker took.
pub(crate) struct Taken<K> {
    pub(crate) ticket: Ticket<K>,
    pub(crate) flight: FlightId,
}

/// Result of [`State::poll_take`].
pub(crate) enum Polled<K> {
    Taken(Taken<K>),
    /// The queue is shut down and no key can become ready any more.
    Exhausted,
    /// No key is ready. If a time is given, the caller is the timekeeper and must poll again then.
    Pending(Option<u64>),
}

impl<K: Clone + Eq + Hash> State<K> {
    pub(crate) fn new(hasher: Hasher, order: Option<Order<K>>, oldest_every: u32, keep_times: bool) -> Self {
        Self {
            ready: Ready::new(hasher, order, oldest_every, keep_times),
            in_flight: InFlight::new(),
            delayed: DelayedKeys::new(order),
            waiters: Waiters::default(),
            drainers: Vec::new(),
            phase: Phase::Open,
            shutdowns: 0,
            may_repeat: false,
            wakes: Wakes::default(),
            counts: Counts::default(),
            discarded: Discarded::default(),
        }
    }

    pub(crate) fn ready_len(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn in_flight(&self) -> &InFlight<K> {
        &self.in_flight
    }

    pub(crate) fn delayed(&self) -> &DelayedKeys<K> {
        &self.delayed
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Queues a key, and returns whether it was accepted.
    pub(crate) fn add(&mut self, ticket: Ticket<K>) -> bool {
        let open = !self.is_closed();
        if open {
            self.queue(ticket);
            self.settle();
        } else {
            self.discarded.push(ticket.key);
        }
        open
    }

    /// Delays a key until `due`, and returns whether it was accepted.
    pub(crate) fn add_at(&mut self, hash: u32, key: K, due: u64, priority: Priority) -> bool {
        let open = !self.is_closed();
        if open {
            self.delayed.insert(hash, key, due, priority, &mut self.discarded);
            self.settle();
        } else {
            self.discarded.push(key);
        }
        open
    }

    /// Moves keys that are due at `now` to the ready ones, in order of their due time. Returns whether all were moved;
    /// if not, the caller releases the lock and calls again.
    pub(crate) fn promote(&mut self, now: u64) -> bool {
        let mut moved = 0;
        while moved < PROMOTE_AT_ONCE
            && let Some(Due { key, hash, priority, at }) = self.delayed.pop_due(now)
        {
            self.queue(Ticket { key, hash, priority, since: at });
            moved += 1;
        }
        if moved > 0 {
            self.settle();
        }
        moved < PROMOTE_AT_ONCE
    }

    /// Takes a ready key for a worker, which must [`finish`](State::finish) it. A key whose `Hash` or `Clone` panics is dropped.
    pub(crate) fn take(&mut self, started: u64) -> Option<Taken<K>> {
        loop {
            let before = self.ready.len();
            let ticket = self.ready.pop(&mut self.discarded);
            let lost = before - self.ready.len() - usize::from(ticket.is_some());
            if lost > 0 {
                self.counts.queued -= lost as isize;
                self.settle();
            }
            let ticket = ticket?;
            if self.may_repeat && self.is_in_flight(&ticket) {
                self.discarded.push(ticket.key);
                continue;
            }
            let Ok(copy) = panics::catch(|| ticket.key.clone()) else {
                self.counts.queued -= 1;
                self.discarded.push(ticket.key);
                self.settle();
                continue;
            };
            self.may_repeat &= self.ready.len() > 0;
            let flight = self.in_flight.start(ticket.hash, copy, started);
            return Some(Taken { ticket, flight });
        }
    }

    /// Whether a ready key is in flight too. If so, it counts as added while in flight.
    fn is_in_flight(&mut self, ticket: &Ticket<K>) -> bool {
        let in_flight = !matches!(self.in_flight.mark(ticket), Added::NotInFlight);
        self.counts.queued -= isize::from(in_flight);
        in_flight
    }

    /// Takes a ready key, or registers the caller as waiter `id`.
    pub(crate) fn poll_take(&mut self, id: &mut Option<WaiterId>, waker: &Waker, started: u64) -> Polled<K> {
        let taken = self.take(started);
        if taken.is_some() || self.exhausted() {
            if let Some(id) = id.take() {
                self.waiters.leave(id, &mut self.wakes);
            }
            self.settle();
            return taken.map_or(Polled::Exhausted, Polled::Taken);
        }
        let me = self.waiters.wait(*id, waker, &mut self.wakes);
        *id = Some(me);
        let Some(due) = self.delayed.first_due() else {
            self.waiters.stop_keeping_time(me);
            return Polled::Pending(None);
        };
        Polled::Pending(self.waiters.keep_time(me, due).then_some(due))
    }

    /// Removes a waiter; the key it was called for passes to another one.
    pub(crate) fn leave(&mut self, id: WaiterId) {
        self.waiters.leave(id, &mut self.wakes);
        self.settle();
    }

    /// Ends the work on a key, which is ready again if it was added meanwhile. Returns when it was taken.
    pub(crate) fn finish(&mut self, hash: u32, flight: FlightId) -> u64 {
        let Finished { started, again } = self.in_flight.finish(hash, flight, &mut self.discarded);
        if let Some(ticket) = again {
            self.push(ticket);
        }
        self.settle();
        started
    }

    /// Removes a delayed key, and returns whether there was one.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> bool {
        let cancelled = self.delayed.cancel(hash, key, &mut self.discarded);
        self.settle();
        cancelled
    }

    /// Closes the queue. Delayed keys are dropped unless they are to run.
    pub(crate) fn close(&mut self, run_delayed: bool) {
        self.phase = Phase::Closed;
        if !run_delayed {
            let delayed = self.delayed.take_all();
            self.discarded.set_delayed(delayed);
        }
        self.settle();
    }

    /// Ends all drains so far.
    pub(crate) fn abort_drains(&mut self) {
        self.shutdowns += 1;
        for (_, waker) in std::mem::take(&mut self.drainers) {
            self.wakes.wake(waker);
        }
    }

    pub(crate) fn shutdowns(&self) -> u64 {
        self.shutdowns
    }

    /// Whether no key is queued, delayed or in flight.
    pub(crate) fn at_rest(&self) -> bool {
        self.ready.len() == 0 && self.in_flight.is_empty() && self.delayed.is_empty()
    }

    /// Wakes `waker` when the queue is at rest or drains are aborted. `id` identifies the drain.
    pub(crate) fn wait_for_rest(&mut self, id: u64, waker: &Waker) {
        self.stop_waiting_for_rest(id);
        self.drainers.push((id, waker.clone()));
    }

    pub(crate) fn stop_waiting_for_rest(&mut self, id: u64) {
        if let Some(at) = self.drainers.iter().position(|(other, _)| *other == id) {
            let (_, waker) = self.drainers.swap_remove(at);
            self.wakes.discard(waker);
        }
    }

    /// Wakers to wake after the lock is released. `None` is the common case.
    pub(crate) fn take_wakes(&mut self) -> Option<Wakes> {
        (!self.wakes.is_empty()).then(|| std::mem::take(&mut self.wakes))
    }

    /// Keys to drop after the lock is released.
    pub(crate) fn take_discarded(&mut self) -> Option<Discarded<K>> {
        (!self.discarded.is_empty()).then(|| std::mem::take(&mut self.discarded))
    }

    /// Changes since the last call.
    pub(crate) fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Whether the queue is shut down and no key can become ready any more.
    fn exhausted(&self) -> bool {
        self.is_closed() && self.ready.len() == 0 && self.in_flight.dirty() == 0 && self.delayed.is_empty()
    }

    fn queue(&mut self, ticket: Ticket<K>) {
        match self.in_flight.mark(&ticket) {
            Added::Already => self.discarded.push(ticket.key),
            Added::Marked => {
                self.counts.added += 1;
                self.discarded.push(ticket.key);
            }
            Added::NotInFlight => self.counts.added += usize::from(self.push(ticket)),
        }
    }

    /// Makes a key ready, and returns whether it was not yet.
    fn push(&mut self, ticket: Ticket<K>) -> bool {
        let push = self.ready.push(ticket, &mut self.discarded);
        self.may_repeat |= matches!(push, Push::Crowded);
        let new = !matches!(push, Push::Duplicate);
        self.counts.queued += isize::from(new);
        new
    }

    /// Restores the invariants of the type.
    fn settle(&mut self) {
        if self.waiters.is_empty() && !self.is_closed() {
            return;
        }
        self.call_waiters();
        if self.is_closed() {
            self.settle_closed();
        }
    }

    fn call_waiters(&mut self) {
        let (wakes, due) = (&mut self.wakes, self.delayed.first_due());
        for group in self.waiters.groups() {
            while group.called() < self.ready.len() && group.call_one(wakes) {}
            match (due, group.timer()) {
                (Some(due), Some(timer)) if due < timer => _ = group.call_timekeeper(wakes),
                (Some(_), None) if group.called() == 0 => _ = group.call_one(wakes),
                _ => {}
            }
        }
    }

    fn settle_closed(&mut self) {
        if self.exhausted() {
            for group in self.waiters.groups() {
                while group.call_one(&mut self.wakes) {}
            }
        }
        if self.at_rest() {
            self.drainers.drain(..).for_each(|(_, waker)| self.wakes.wake(waker));
        }
    }
}
