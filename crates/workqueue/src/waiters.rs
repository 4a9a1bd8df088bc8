//! The `get` futures that wait for a key.

use std::collections::VecDeque;
use std::task::Waker;

use crate::panics;
use crate::time::{self, RuntimeId};

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

    /// Wakes and drops the wakers. Must be called without the lock. A waker that panics costs no other waiter its wake-up,
    /// nor does it reach the caller, who may be about to take a key.
    pub(crate) fn run(self) {
        let wake = self.first.into_iter().chain(self.more).map(|waker| (waker, true));
        for (waker, wake) in wake.chain(self.discarded.into_iter().map(|waker| (waker, false))) {
            let run = || if wake { waker.wake() } else { drop(waker) };
            if let Err(panic) = panics::catch(run) {
                tracing::error!(panic, "a waker panicked");
            }
        }
    }
}

/// Identifies a waiting `get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaiterId {
    /// Its group.
    group: usize,
    /// Its slot in the group.
    slot: usize,
}

/// All waiting `get` futures, in a group for each runtime. A group whose last waiter has left serves the next new runtime.
#[derive(Default)]
pub(crate) struct Waiters {
    groups: Vec<Group>,
}

/// The waiting `get` futures of one runtime.
///
/// A waiter is *idle*, *called* (woken, but not polled yet), or the *timekeeper*: the one waiter whose timer is set to the
/// earliest due time, on behalf of all of its runtime. One timer for any number of waiters avoids a thundering herd, and the
/// queue needs no task that could outlive it.
pub(crate) struct Group {
    runtime: RuntimeId,
    slots: Vec<Option<Waiter>>,
    free: Vec<usize>,
    /// Idle waiters, oldest first, without called ones and the timekeeper.
    idle: VecDeque<usize>,
    /// Number of called waiters.
    called: usize,
    timekeeper: Option<Timekeeper>,
}

struct Waiter {
    waker: Waker,
    called: bool,
}

struct Timekeeper {
    slot: usize,
    /// The time its timer is set to.
    until: u64,
}

impl Waiters {
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.iter().all(Group::is_empty)
    }

    pub(crate) fn groups(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.iter_mut()
    }

    /// Registers a `get` that found no key, or renews its registration: it is idle now.
    pub(crate) fn wait(&mut self, id: Option<WaiterId>, waker: &Waker, wakes: &mut Wakes) -> WaiterId {
        match id {
            Some(id) => {
                self.groups[id.group].wait(id.slot, waker, wakes);
                id
            }
            None => {
                let group = self.group_of(time::runtime());
                WaiterId { group, slot: self.groups[group].register(waker.clone()) }
            }
        }
    }

    /// Makes `id` the timekeeper of its runtime until `until`, unless another waiter is. Returns whether `id` is.
    pub(crate) fn keep_time(&mut self, id: WaiterId, until: u64) -> bool {
        self.groups[id.group].keep_time(id.slot, until)
    }

    /// Makes the timekeeper `id` an idle waiter, because no key is delayed any more.
    pub(crate) fn stop_keeping_time(&mut self, id: WaiterId) {
        self.groups[id.group].stop_keeping_time(id.slot);
    }

    /// Removes a `get` that took a key or was dropped.
    pub(crate) fn leave(&mut self, id: WaiterId, wakes: &mut Wakes) {
        self.groups[id.group].leave(id.slot, wakes);
    }

    fn group_of(&mut self, runtime: RuntimeId) -> usize {
        let known = self.groups.iter().position(|group| group.runtime == runtime);
        let unused = || self.groups.iter().position(Group::is_empty);
        match known.or_else(unused) {
            Some(at) => {
                self.groups[at].runtime = runtime;
                at
            }
            None => {
                self.groups.push(Group::new(runtime));
                self.groups.len() - 1
            }
        }
    }
}

impl Group {
    fn new(runtime: RuntimeId) -> Self {
        let (slots, free, idle) = (Vec::new(), Vec::new(), VecDeque::new());
        Self { runtime, slots, free, idle, called: 0, timekeeper: None }
    }

    fn is_empty(&self) -> bool {
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

    fn wait(&mut self, slot: usize, waker: &Waker, wakes: &mut Wakes) {
        let Some(waiter) = &mut self.slots[slot] else { return };
        if !waiter.waker.will_wake(waker) {
            wakes.discard(std::mem::replace(&mut waiter.waker, waker.clone()));
        }
        if std::mem::take(&mut waiter.called) {
            self.called -= 1;
            if self.timekeeper.as_ref().is_none_or(|timekeeper| timekeeper.slot != slot) {
                self.idle.push_back(slot);
            }
        }
    }

    fn keep_time(&mut self, slot: usize, until: u64) -> bool {
        match &mut self.timekeeper {
            Some(timekeeper) if timekeeper.slot != slot => return false,
            Some(timekeeper) => timekeeper.until = until,
            None => {
                self.timekeeper = Some(Timekeeper { slot, until });
                self.idle.retain(|idle| *idle != slot);
            }
        }
        true
    }

    fn stop_keeping_time(&mut self, slot: usize) {
        if self.timekeeper.take_if(|timekeeper| timekeeper.slot == slot).is_some() {
            self.idle.push_back(slot);
        }
    }

    fn leave(&mut self, slot: usize, wakes: &mut Wakes) {
        let Some(waiter) = self.slots[slot].take() else { return };
        self.free.push(slot);
        self.timekeeper.take_if(|timekeeper| timekeeper.slot == slot);
        if waiter.called {
            self.called -= 1;
        } else {
            self.idle.retain(|idle| *idle != slot);
        }
        wakes.discard(waiter.waker);
    }

    /// Calls one idle waiter, or the timekeeper if there is none. Returns whether a waiter was called.
    pub(crate) fn call_one(&mut self, wakes: &mut Wakes) -> bool {
        match self.idle.pop_front() {
            Some(slot) => self.call(slot, wakes),
            None => self.call_timekeeper(wakes),
        }
    }

    /// Calls the timekeeper, so that it resets its timer. Returns whether it was called.
    pub(crate) fn call_timekeeper(&mut self, wakes: &mut Wakes) -> bool {
        match self.timekeeper.as_ref().map(|timekeeper| timekeeper.slot) {
            Some(slot) => self.call(slot, wakes),
            None => false,
        }
    }

    fn register(&mut self, waker: Waker) -> usize {
        let waiter = Some(Waiter { waker, called: false });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = waiter;
                slot
            }
            None => {
                self.slots.push(waiter);
                self.slots.len() - 1
            }
        };
        self.idle.push_back(slot);
        slot
    }

    fn call(&mut self, slot: usize, wakes: &mut Wakes) -> bool {
        let Some(waiter) = self.slots[slot].as_mut().filter(|waiter| !waiter.called) else { return false };
        waiter.called = true;
        self.called += 1;
        wakes.wake(waiter.waker.clone());
        true
    }
}
