//! The events that one handler has not received yet.

use crate::{
    delta::{AnyObject, Deleted},
    handler::Event,
    indexer::Contents,
    scope::Partition,
};
use hashbrown::HashMap;
use kube_informer_wire::ObjectKey;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The pending events of one handler, bounded.
///
/// 1. Up to the bound, events are kept as they are, in order.
/// 2. Events beyond the bound are coalesced into the **net effect** on each object, relative to the state that the
///    handler will have seen by then. So the backlog never holds more than the bound plus one entry for each object
///    that the handler has seen or that exists. A net effect keeps a state for each controlling owner that the object had
///    in between, because handlers that reconcile owners must be called for all of them.
/// 3. The initial list, and the replay for a handler that is added later, is a *walk* over a snapshot: nothing is copied.
/// 4. Events about one object are never reordered.
#[derive(Default)]
pub(crate) struct Backlog {
    queue: VecDeque<Item>,
    /// Events in `queue`, walks not counted. Invariant: at most the bound, plus those of one net effect.
    queued: usize,
    /// Invariant: later than any event of the same object in `queue`.
    overflow: Overflow,
    bound: usize,
    /// Walks in `queue`.
    walks: usize,
    coalesced: u64,
    discarded: Discarded,
}

/// Values that a backlog no longer needs, to be dropped without a lock: with an object its decoded value may be dropped, which is code
/// of the user.
#[derive(Default)]
pub(crate) struct Discarded {
    objects: Vec<AnyObject>,
    walked: Vec<Arc<Contents>>,
}

enum Item {
    Event(Event<Value>),
    Walk(Walk),
}

/// A walk over the objects of a snapshot.
struct Walk {
    objects: Arc<Contents>,
    /// Only this partition; `None` for all.
    partition: Option<Partition>,
    last: Option<ObjectKey>,
}

impl Walk {
    fn next(&mut self) -> Option<AnyObject> {
        loop {
            let object = self.objects.after(self.last.as_ref())?.clone();
            self.last = Some(object.key().clone());
            let partitions = self.objects.partitions();
            if self.partition.is_none_or(|partition| partitions.contains(partition, object.key())) {
                return Some(object);
            }
        }
    }
}

impl Backlog {
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound: bound.max(1), ..Self::default() }
    }

    /// Adds an event, which is coalesced beyond the bound. `seen` is the state before the event, if there was one.
    pub(crate) fn push(&mut self, event: Event<Value>, seen: Option<AnyObject>) {
        if self.overflow.is_empty() && self.queued < self.bound {
            self.queue.push_back(Item::Event(event));
            self.queued += 1;
        } else {
            self.coalesced += self.overflow.merge(event, seen, &mut self.discarded.objects);
        }
    }

    /// Adds all objects of a snapshot, or of one partition of it, as initial objects.
    ///
    /// No event of these objects may be pending: a partition is walked before its first change.
    pub(crate) fn walk(&mut self, objects: Arc<Contents>, partition: Option<Partition>) {
        self.queue.push_back(Item::Walk(Walk { objects, partition, last: None }));
        self.walks += 1;
    }

    /// The next event. The one before counts as delivered.
    pub(crate) fn next(&mut self) -> Option<Event<Value>> {
        loop {
            match self.queue.front_mut() {
                Some(Item::Walk(walk)) => match walk.next() {
                    Some(object) => return Some(Event::Added { object, initial: true }),
                    None => {
                        self.discarded.walked.push(Arc::clone(&walk.objects));
                        self.queue.pop_front();
                        self.walks -= 1;
                    }
                },
                Some(Item::Event(_)) => {
                    let Some(Item::Event(event)) = self.queue.pop_front() else { return None };
                    self.queued -= 1;
                    return Some(event);
                }
                None => {
                    let net = self.overflow.pop()?;
                    self.discarded.objects.extend(net.objects().cloned());
                    let mut events = net.into_events().into_iter();
                    let first = events.next();
                    for later in events.rev() {
                        self.queue.push_front(Item::Event(later));
                        self.queued += 1;
                    }
                    if first.is_some() {
                        return first;
                    }
                }
            }
        }
    }

    /// Whether every walk has been delivered.
    pub(crate) fn is_walked(&self) -> bool {
        self.walks == 0
    }

    /// Pending entries; a walk counts as one.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.overflow.entries.len()
    }

    /// Events that were coalesced with another one.
    pub(crate) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    /// Takes what is to be dropped without a lock.
    pub(crate) fn take_discarded(&mut self) -> Discarded {
        std::mem::take(&mut self.discarded)
    }

    /// Removes everything, and returns it to be dropped without a lock.
    pub(crate) fn clear(&mut self) -> Self {
        let empty = Self { bound: self.bound, coalesced: self.coalesced, ..Self::default() };
        std::mem::replace(self, empty)
    }
}

/// Net effects, one for each object, in the order of the first event of each.
#[derive(Default)]
struct Overflow {
    entries: HashMap<ObjectKey, (u64, Net)>,
    order: BTreeMap<u64, ObjectKey>,
    next: u64,
}

/// The net effect of the events of one object. Invariant: `seen` or `now` is set.
struct Net {
    /// The state that the handler will have seen before; `None` if there was no object.
    seen: Option<AnyObject>,
    /// A state under each controlling owner that the object had since then and has no longer: these owners must be
    /// reconciled too. At most [`MAX_OWNERS`].
    between: Vec<AnyObject>,
    /// The delete of the object in `seen`, if there was one.
    delete: Option<Deleted<Value>>,
    /// The newest state; `None` if the object is deleted.
    now: Option<AnyObject>,
    /// A resync is due, which the handler receives even if the state does not change.
    resync: bool,
}

/// Controlling owners of one object between two calls of a handler that are remembered.
const MAX_OWNERS: usize = 16;

impl Net {
    fn new(seen: Option<AnyObject>) -> Self {
        Self { seen, between: Vec::new(), delete: None, now: None, resync: false }
    }

    /// Keeps the present state if it has a controlling owner that no other state with an event of its own has. `next` is
    /// the state that replaces it; `None` if it is deleted.
    fn keep_owner(&mut self, next: Option<&AnyObject>) {
        let Some(object) = &self.now else { return };
        let Some(owner) = object.controller() else { return };
        let has_owner = |other: &AnyObject| {
            other.is_same(object) && other.controller().is_some_and(|other| other.uid == owner.uid)
        };
        let known = next.is_some_and(has_owner) || self.seen.iter().chain(&self.between).any(has_owner);
        if !known && self.between.len() < MAX_OWNERS {
            self.between.push(object.clone());
        }
    }

    fn add(&mut self, event: Event<Value>) {
        self.keep_owner((!matches!(event, Event::Deleted(_))).then(|| event.object()));
        self.resync |= matches!(&event, Event::Updated { old, new } if is_same_state(old, new));
        self.now = match event {
            // Initial objects are walked and never coalesced.
            Event::Added { object, .. } => Some(object),
            Event::Updated { new, .. } => Some(new),
            Event::Deleted(deleted) => {
                if self.seen.as_ref().is_some_and(|seen| seen.is_same(deleted.object())) {
                    self.delete = Some(deleted);
                }
                None
            }
        };
    }

    /// Whether the events cancel out: the object was never seen and is deleted, or is back in the state that was seen, as
    /// after a restore from a backup.
    fn is_void(&self) -> bool {
        match (&self.seen, &self.now) {
            (None, None) => true,
            (Some(old), Some(now)) => !self.resync && self.between.is_empty() && is_same_state(old, now),
            _ => false,
        }
    }

    /// The objects that it holds.
    fn objects(&self) -> impl Iterator<Item = &AnyObject> {
        let delete = self.delete.iter().map(Deleted::object);
        self.seen.iter().chain(&self.between).chain(delete).chain(&self.now)
    }

    /// Number of events that the handler will receive.
    fn events(&self) -> u64 {
        if self.is_void() {
            return 0;
        }
        let (mut events, mut last) = (0, self.seen.as_ref());
        for state in self.between.iter().chain(&self.now) {
            events += if last.is_some_and(|last| !last.is_same(state)) { 2 } else { 1 };
            last = Some(state);
        }
        events + u64::from(self.now.is_none() && last.is_some())
    }

    /// The events that bring a handler from the state it saw to the newest one; none if the events cancel out.
    fn into_events(self) -> Vec<Event<Value>> {
        let Self { seen, between, delete, now, .. } = self;
        let deleted = |old: AnyObject| {
            let delete = delete.clone().filter(|delete| delete.object().is_same(&old));
            Event::Deleted(delete.unwrap_or_else(|| Deleted::unknown(old)))
        };
        let (exists, mut events, mut last) = (now.is_some(), Vec::new(), seen);
        for state in between.into_iter().chain(now) {
            match last.take() {
                Some(old) if old.is_same(&state) => events.push(Event::Updated { old, new: state.clone() }),
                old => {
                    events.extend(old.map(deleted));
                    events.push(Event::Added { object: state.clone(), initial: false });
                }
            }
            last = Some(state);
        }
        events.extend(last.filter(|_| !exists).map(deleted));
        events
    }
}

fn is_same_state(old: &AnyObject, new: &AnyObject) -> bool {
    old.is_same_version(new) && old.is_same_content(new)
}

impl Overflow {
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Coalesces an event. Returns by how many the events to deliver decrease. Objects that are no longer needed go to
    /// `discarded`; those of the event are held by the caller too.
    fn merge(&mut self, event: Event<Value>, seen: Option<AnyObject>, discarded: &mut Vec<AnyObject>) -> u64 {
        let key = event.object().key().clone();
        let Some((_, net)) = self.entries.get_mut(&key) else {
            let mut net = Net::new(seen);
            net.add(event);
            self.order.insert(self.next, key.clone());
            self.entries.insert(key, (self.next, net));
            self.next += 1;
            return 0;
        };
        discarded.extend(net.objects().cloned());
        let before = net.events();
        net.add(event);
        let after = net.events();
        if after == 0 {
            self.remove(&key);
        }
        // An object that was recreated with a new uid is two events.
        (before + 1).saturating_sub(after)
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Net> {
        let (order, net) = self.entries.remove(key)?;
        self.order.remove(&order);
        Some(net)
    }

    /// The oldest net effect.
    fn pop(&mut self) -> Option<Net> {
        let key = self.order.first_key_value()?.1.clone();
        self.remove(&key)
    }
}

#[cfg(test)]
mod tests;
