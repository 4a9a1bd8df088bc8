//! What one handler has not been told yet.

use crate::{
    delta::{AnyObject, Deleted},
    handler::Event,
    indexer::Snapshot,
    scope::Partition,
};
use hashbrown::HashMap;
use kube_informer_wire::ObjectKey;
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The events one handler has still to hear, bounded.
///
/// 1. Up to the bound, events are kept as they are, in order.
/// 2. What comes while the bound is exceeded is kept as the **net effect** on each object, against what the
///    handler will have seen by then. So the backlog never holds more than the bound plus one entry for each
///    object that the handler has seen or that exists.
/// 3. The first fill, and what a late handler finds, is a *walk* over a snapshot: nothing is copied.
/// 4. Events about one object are never reordered.
#[derive(Default)]
pub(crate) struct Backlog {
    queue: VecDeque<Item>,
    /// Events in `queue`, walks not counted. Invariant: at most the bound plus one.
    queued: usize,
    /// Invariant: everything in here is later than everything in `queue` about the same object.
    overflow: Overflow,
    bound: usize,
    /// Walks not finished.
    walks: usize,
    coalesced: u64,
}

enum Item {
    Event(Event<Value>),
    Walk(Walk),
}

/// A walk over the objects of a snapshot.
struct Walk {
    snapshot: Arc<Snapshot>,
    /// Only this partition; `None` is everything.
    partition: Option<Partition>,
    last: Option<ObjectKey>,
}

impl Walk {
    fn next(&mut self) -> Option<AnyObject> {
        loop {
            let object = self.snapshot.after(self.last.as_ref())?.clone();
            self.last = Some(object.key().clone());
            let partitions = self.snapshot.partitions();
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

    /// Adds an event, as it is or as a net effect. `seen` is the state before the event, if there was one.
    pub(crate) fn push(&mut self, event: Event<Value>, seen: Option<AnyObject>) {
        if self.overflow.is_empty() && self.queued < self.bound {
            self.queue.push_back(Item::Event(event));
            self.queued += 1;
        } else {
            self.coalesced += self.overflow.merge(event, seen);
        }
    }

    /// Adds everything in a snapshot, or in one partition of it, as initial objects.
    ///
    /// No event about these objects may be waiting: a partition is walked before anything happens in it.
    pub(crate) fn walk(&mut self, snapshot: Arc<Snapshot>, partition: Option<Partition>) {
        self.queue.push_back(Item::Walk(Walk { snapshot, partition, last: None }));
        self.walks += 1;
    }

    /// The next event. Asking for it says that the one before has been dealt with.
    pub(crate) fn next(&mut self) -> Option<Event<Value>> {
        loop {
            match self.queue.front_mut() {
                Some(Item::Walk(walk)) => match walk.next() {
                    Some(object) => return Some(Event::Added { object, initial: true }),
                    None => {
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
                    let (first, second) = self.overflow.pop()?.into_events();
                    if let Some(second) = second {
                        self.queue.push_front(Item::Event(second));
                        self.queued += 1;
                    }
                    if first.is_some() {
                        return first;
                    }
                }
            }
        }
    }

    /// Whether every walk has been dealt with.
    pub(crate) fn is_walked(&self) -> bool {
        self.walks == 0
    }

    /// Entries waiting; a walk counts as one.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.overflow.entries.len()
    }

    /// Events that were absorbed into the net effect of another one.
    pub(crate) fn coalesced(&self) -> u64 {
        self.coalesced
    }

    pub(crate) fn clear(&mut self) {
        *self = Self { bound: self.bound, coalesced: self.coalesced, ..Self::default() };
    }
}

/// Net effects, one for each object, in the order in which the objects were first touched.
#[derive(Default)]
struct Overflow {
    entries: HashMap<ObjectKey, (u64, Net)>,
    order: BTreeMap<u64, ObjectKey>,
    next: u64,
}

/// What happened to one object, all in all. Invariant: something was seen, or there is something now.
struct Net {
    /// What the handler will have seen when it gets here; `None` if nothing.
    seen: Option<AnyObject>,
    /// The end of what was seen, if that has been reported.
    end: Option<Deleted<Value>>,
    now: Option<Now>,
    /// A resync is due: to be told even if nothing has changed in the end.
    resync: bool,
}

struct Now {
    object: AnyObject,
    initial: bool,
}

impl Net {
    fn follow(&mut self, event: Event<Value>) {
        self.resync |= matches!(&event, Event::Updated { old, new } if is_same_state(old, new));
        let unseen_initial = self.seen.is_none() && self.now.as_ref().is_some_and(|now| now.initial);
        self.now = match event {
            Event::Added { object, initial } => Some(Now { object, initial: initial || unseen_initial }),
            Event::Updated { new, .. } => Some(Now { object: new, initial: unseen_initial }),
            Event::Deleted(deleted) => {
                if self.seen.as_ref().is_some_and(|seen| seen.is_same(deleted.object())) {
                    self.end = Some(deleted);
                }
                None
            }
        };
    }

    /// Whether there is nothing to tell: never seen and gone, or back to what was seen, as after the restore of
    /// a backup.
    fn is_void(&self) -> bool {
        match (&self.seen, &self.now) {
            (None, None) => true,
            (Some(old), Some(now)) => !self.resync && is_same_state(old, &now.object),
            _ => false,
        }
    }

    /// How many events it will be.
    fn told(&self) -> u64 {
        match (&self.seen, &self.now) {
            _ if self.is_void() => 0,
            (Some(old), Some(now)) if !old.is_same(&now.object) => 2,
            _ => 1,
        }
    }

    /// One event or two; none if there is nothing to tell.
    fn into_events(self) -> (Option<Event<Value>>, Option<Event<Value>>) {
        let Self { seen, end, now, .. } = self;
        let end = |old| Event::Deleted(end.unwrap_or_else(|| Deleted::unknown(old)));
        match (seen, now) {
            (Some(old), Some(now)) if old.is_same(&now.object) => {
                (Some(Event::Updated { old, new: now.object }), None)
            }
            (seen, now) => {
                let added = now.map(|Now { object, initial }| Event::Added { object, initial });
                match seen {
                    Some(old) => (Some(end(old)), added),
                    None => (added, None),
                }
            }
        }
    }
}

fn is_same_state(old: &AnyObject, new: &AnyObject) -> bool {
    old.is_same_version(new) && old.is_same_content(new)
}

impl Overflow {
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how many events were absorbed by that.
    fn merge(&mut self, event: Event<Value>, seen: Option<AnyObject>) -> u64 {
        let key = event.object().key().clone();
        let Some((_, net)) = self.entries.get_mut(&key) else {
            let mut net = Net { seen, end: None, now: None, resync: false };
            net.follow(event);
            self.order.insert(self.next, key.clone());
            self.entries.insert(key, (self.next, net));
            self.next += 1;
            return 0;
        };
        let before = net.told();
        net.follow(event);
        let after = net.told();
        if after == 0 {
            self.forget(&key);
        }
        // The end of one object and the beginning of another one of its name are both told.
        before + 1 - after
    }

    fn forget(&mut self, key: &ObjectKey) -> Option<Net> {
        let (order, net) = self.entries.remove(key)?;
        self.order.remove(&order);
        Some(net)
    }

    /// The oldest net effect.
    fn pop(&mut self) -> Option<Net> {
        let key = self.order.first_key_value()?.1.clone();
        self.forget(&key)
    }
}

#[cfg(test)]
mod tests;
