//! The `get` futures that wait for a key.

use std::collections::VecDeque;
use std::task::Waker;

/// Wakers to be woken, or only dropped, after the lock is released: both may run other code, and dropping a waker may
/// drop the last handle of a task that holds an item of this queue.
#[derive(Default)]
pub(crate) struct Wakes {
    /// The usual case, one waker to wake, without an allocation.
    first: Option<Waker>,
    more: Vec<Waker>,
    discarded: Vec<Waker>,
}

impl Wakes {
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_empty() && self.discarded.is_empty()
    }

    pub(crate) fn wake(&mut self, waker: Waker) {
        match &self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    pub(crate) fn discard(&mut self, waker: Waker) {
        self.discarded.push(waker);
    }

    /// Wakes and drops the wakers. Must be called without the lock.
    pub(crate) fn run(self) {
        self.first.into_iter().chain(self.more).for_each(Waker::wake);
    }
}

/// Identifies a waiting `get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaiterId(usize);

/// All waiting `get` futures.
///
/// A waiter is *idle*, *called* (woken, but not polled yet), or the *timekeeper*: the one waiter whose timer is set to the
/// earliest due time, on behalf of all. One timer for any number of waiters avoids a thundering herd, and the queue needs
/// no task that could outlive it.
#[derive(Default)]
pub(crate) struct Waiters {
    slots: Vec<Option<Waiter>>,
    free: Vec<WaiterId>,
    /// Idle waiters, oldest first, without called ones and the timekeeper.
    idle: VecDeque<WaiterId>,
    /// Number of called waiters.
    called: usize,
    timekeeper: Option<Timekeeper>,
}

struct Waiter {
    waker: Waker,
    called: bool,
}

struct Timekeeper {
    id: WaiterId,
    /// The time its timer is set to.
    until: u64,
}

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// Number of waiters that were woken and will look for a key.
    pub(crate) fn called(&self) -> usize {
        self.called
    }

    /// The time at which the timekeeper's timer fires.
    pub(crate) fn timer(&self) -> Option<u64> {
        self.timekeeper.as_ref().map(|timekeeper| timekeeper.until)
    }

    /// Registers a `get` that found no key, or renews its registration: it is idle now.
    pub(crate) fn wait(&mut self, id: Option<WaiterId>, waker: &Waker, wakes: &mut Wakes) -> WaiterId {
        let Some(id) = id else { return self.register(waker.clone()) };
        if let Some(waiter) = &mut self.slots[id.0] {
            if !waiter.waker.will_wake(waker) {
                wakes.discard(std::mem::replace(&mut waiter.waker, waker.clone()));
            }
            if std::mem::take(&mut waiter.called) {
                self.called -= 1;
                if self.timekeeper.as_ref().is_none_or(|timekeeper| timekeeper.id != id) {
                    self.idle.push_back(id);
                }
            }
        }
        id
    }

    /// Makes `id` the timekeeper until `until`, unless another waiter is. Returns whether `id` is the timekeeper.
    pub(crate) fn keep_time(&mut self, id: WaiterId, until: u64) -> bool {
        match &mut self.timekeeper {
            Some(timekeeper) if timekeeper.id != id => return false,
            Some(timekeeper) => timekeeper.until = until,
            None => {
                self.timekeeper = Some(Timekeeper { id, until });
                self.idle.retain(|idle| *idle != id);
            }
        }
        true
    }

    /// Makes the timekeeper `id` an idle waiter, because no key is delayed any more.
    pub(crate) fn stop_keeping_time(&mut self, id: WaiterId) {
        if self.timekeeper.take_if(|timekeeper| timekeeper.id == id).is_some() {
            self.idle.push_back(id);
        }
    }

    /// Removes a `get` that took a key or was dropped.
    pub(crate) fn leave(&mut self, id: WaiterId, wakes: &mut Wakes) {
        let Some(waiter) = self.slots[id.0].take() else { return };
        self.free.push(id);
        self.timekeeper.take_if(|timekeeper| timekeeper.id == id);
        if waiter.called {
            self.called -= 1;
        } else {
            self.idle.retain(|idle| *idle != id);
        }
        wakes.discard(waiter.waker);
    }

    /// Calls one idle waiter, or the timekeeper if there is none. Returns whether a waiter was called.
    pub(crate) fn call_one(&mut self, wakes: &mut Wakes) -> bool {
        match self.idle.pop_front() {
            Some(id) => self.call(id, wakes),
            None => self.call_timekeeper(wakes),
        }
    }

    /// Calls the timekeeper, so that it resets its timer. Returns whether it was called.
    pub(crate) fn call_timekeeper(&mut self, wakes: &mut Wakes) -> bool {
        match self.timekeeper.as_ref().map(|timekeeper| timekeeper.id) {
            Some(id) => self.call(id, wakes),
            None => false,
        }
    }

    fn register(&mut self, waker: Waker) -> WaiterId {
        let waiter = Some(Waiter { waker, called: false });
        let id = match self.free.pop() {
            Some(id) => {
                self.slots[id.0] = waiter;
                id
            }
            None => {
                self.slots.push(waiter);
                WaiterId(self.slots.len() - 1)
            }
        };
        self.idle.push_back(id);
        id
    }

    fn call(&mut self, id: WaiterId, wakes: &mut Wakes) -> bool {
        let Some(waiter) = self.slots[id.0].as_mut().filter(|waiter| !waiter.called) else { return false };
        waiter.called = true;
        self.called += 1;
        wakes.wake(waiter.waker.clone());
        true
    }
}
