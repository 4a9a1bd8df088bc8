//! The queue itself, without locks, tasks or clocks: every operation is a plain function of the state.

use std::hash::Hash;
use std::task::Waker;

use crate::delayed::{DelayedKeys, Due};
use crate::in_flight::{Added, Finished, InFlight};
use crate::priority::Priority;
use crate::ready::{Hasher, Ready, Ticket};
use crate::waiters::{WaiterId, Waiters, Wakes};

/// All that is under the lock.
///
/// A key is *ready* (queued), *in flight* (a worker holds it), or neither; never both. A key in flight may
/// be *dirty*: it will be ready when its worker is done. Independently of all that it may be *delayed*: it
/// will be added at a time.
///
/// Invariants, true whenever the lock is free ([`State::settle`] restores them):
/// 1. There are at least as many called waiters as ready keys, or no waiter is idle.
/// 2. If a key is delayed and a waiter waits, then the timekeeper's timer stands at the first due time or
///    before, or some waiter is called.
/// 3. If the queue is [exhausted](State::exhausted), no waiter is idle.
/// 4. If the queue is [at rest](State::at_rest), nobody waits for that.
///
/// A called waiter looks at the state again before it waits again, hence 1 to 3 mean that no wake-up is lost.
/// Times are nanoseconds of the queue's life.
pub(crate) struct State<K> {
    ready: Ready<K>,
    in_flight: InFlight<K>,
    delayed: DelayedKeys<K>,
    waiters: Waiters,
    drainers: Vec<(u64, Waker)>,
    phase: Phase,
    /// How often `shutdown` was called: each call ends the waiting of earlier drains.
    shutdowns: u64,
    wakes: Wakes,
    counts: Counts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing new is accepted; what is there is still handed out.
    Closed,
}

/// How many keys changed their place in an operation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Keys that came to need processing.
    pub(crate) added: usize,
    /// Keys that became ready.
    pub(crate) queued: usize,
}

/// What became of an attempt to take a key.
pub(crate) enum Polled<K> {
    Taken(Ticket<K>),
    /// Shut down, and nothing will come any more.
    Exhausted,
    /// Nothing yet. If a time is given, the caller keeps time and must look again then.
    Pending(Option<u64>),
}

impl<K: Clone + Eq + Hash> State<K> {
    pub(crate) fn new(hasher: Hasher, oldest_every: u32, keep_times: bool) -> Self {
        Self {
            ready: Ready::new(hasher, oldest_every, keep_times),
            in_flight: InFlight::new(),
            delayed: DelayedKeys::new(),
            waiters: Waiters::default(),
            drainers: Vec::new(),
            phase: Phase::Open,
            shutdowns: 0,
            wakes: Wakes::default(),
            counts: Counts::default(),
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

    /// The key needs processing as soon as possible. Says whether it was accepted.
    pub(crate) fn add(&mut self, ticket: Ticket<K>) -> bool {
        let open = !self.is_closed();
        if open {
            self.queue(ticket);
            self.settle();
        }
        open
    }

    /// The key needs processing at `due`. Says whether it was accepted.
    pub(crate) fn add_at(&mut self, hash: u32, key: K, due: u64, priority: Priority) -> bool {
        let open = !self.is_closed();
        if open {
            self.delayed.insert(hash, key, due, priority);
            self.settle();
        }
        open
    }

    /// Moves the keys that are due at `now` to the ready ones, in order of their due time.
    pub(crate) fn promote(&mut self, now: u64) {
        let mut any = false;
        while let Some(Due { key, hash, priority, at }) = self.delayed.pop_due(now) {
            self.queue(Ticket { key, hash, priority, since: at });
            any = true;
        }
        if any {
            self.settle();
        }
    }

    /// Takes a ready key for a worker, who must [`finish`](State::finish) it.
    pub(crate) fn take(&mut self, started: u64) -> Option<Ticket<K>> {
        let ticket = self.ready.pop()?;
        self.in_flight.start(ticket.hash, ticket.key.clone(), started);
        Some(ticket)
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

    /// A waiter gives up; what it was called for passes to another.
    pub(crate) fn leave(&mut self, id: WaiterId) {
        self.waiters.leave(id, &mut self.wakes);
        self.settle();
    }

    /// A worker is done with a key, which is ready again if it was added meanwhile. Says when it was taken.
    pub(crate) fn finish(&mut self, hash: u32, key: &K) -> u64 {
        let Finished { started, again } = self.in_flight.finish(hash, key);
        if let Some(ticket) = again {
            self.counts.queued += usize::from(self.ready.push(ticket));
        }
        self.settle();
        started
    }

    /// Forgets a delayed key; says whether there was one.
    pub(crate) fn cancel(&mut self, hash: u32, key: &K) -> bool {
        let cancelled = self.delayed.cancel(hash, key);
        self.settle();
        cancelled
    }

    /// Accepts nothing more. Delayed keys stay if they are to run.
    pub(crate) fn close(&mut self, run_delayed: bool) {
        self.phase = Phase::Closed;
        if !run_delayed {
            self.delayed.clear();
        }
        self.settle();
    }

    /// Ends the waiting of all drains so far.
    pub(crate) fn abort_drains(&mut self) {
        self.shutdowns += 1;
        for (_, waker) in std::mem::take(&mut self.drainers) {
            self.wakes.wake(waker);
        }
    }

    pub(crate) fn shutdowns(&self) -> u64 {
        self.shutdowns
    }

    /// Nothing is queued, delayed or in flight.
    pub(crate) fn at_rest(&self) -> bool {
        self.ready.len() == 0 && self.in_flight.is_empty() && self.delayed.is_empty()
    }

    /// Wakes `waker` when the queue is at rest or drains are aborted. `id` tells one drain from another.
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

    /// Whom to wake once the lock is free. Mostly nobody, so this is kept cheap.
    pub(crate) fn take_wakes(&mut self) -> Option<Wakes> {
        (!self.wakes.is_empty()).then(|| std::mem::take(&mut self.wakes))
    }

    /// What was counted since the last time.
    pub(crate) fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Shut down, and no key can become ready any more.
    fn exhausted(&self) -> bool {
        self.is_closed() && self.ready.len() == 0 && self.in_flight.dirty() == 0 && self.delayed.is_empty()
    }

    fn queue(&mut self, ticket: Ticket<K>) {
        match self.in_flight.mark(&ticket) {
            Added::Already => {}
            Added::Marked => self.counts.added += 1,
            Added::NotInFlight => {
                let new = usize::from(self.ready.push(ticket));
                self.counts.added += new;
                self.counts.queued += new;
            }
        }
    }

    /// Restores the invariants of the type, whatever was done before.
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
        let wakes = &mut self.wakes;
        while self.waiters.called() < self.ready.len() && self.waiters.call_one(wakes) {}
        match (self.delayed.first_due(), self.waiters.timer()) {
            (Some(due), Some(timer)) if due < timer => {
                self.waiters.call_timekeeper(wakes);
            }
            (Some(_), None) if self.waiters.called() == 0 => {
                self.waiters.call_one(wakes);
            }
            _ => {}
        }
    }

    fn settle_closed(&mut self) {
        if self.exhausted() {
            while self.waiters.call_one(&mut self.wakes) {}
        }
        if self.at_rest() {
            self.drainers.drain(..).for_each(|(_, waker)| self.wakes.wake(waker));
        }
    }
}
