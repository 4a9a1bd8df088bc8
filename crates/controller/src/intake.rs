//! Handlers that turn changes of objects into keys of the queue.
//!
//! Priorities: changes go before the initial list and resyncs, so that a restarted controller reacts to its users at once,
//! however many objects it has to check. The queue serves its oldest key now and then, so nothing starves.

use crate::finalizer;
use kube_informer::{Deleted, EventHandler, Kind, Object, ObjectKey, Priority, WorkQueue};
use std::sync::Arc;

/// Decides from the old and the new state whether an update is of interest.
pub(crate) type Predicate<T> = Arc<dyn Fn(&Object<T>, &Object<T>) -> bool + Send + Sync>;

/// The priority of an object that is new to a handler.
fn of_add(initial: bool) -> Priority {
    if initial { Priority::LOW } else { Priority::NORMAL }
}

/// Enqueues the objects of the controller itself.
pub(crate) struct Primary<T> {
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) predicate: Option<Predicate<T>>,
    /// Whether the controller has a finalizer, whose steps depend on fields that a predicate may ignore.
    pub(crate) has_finalizer: bool,
}

impl<T: 'static> Primary<T> {
    fn accepts(&self, old: &Object<T>, new: &Object<T>) -> bool {
        self.predicate.as_ref().is_none_or(|accepts| accepts(old, new))
            || self.has_finalizer && finalizer::is_affected(old, new)
    }
}

impl<T: 'static> EventHandler<T> for Primary<T> {
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        self.queue.add_with(object.key().clone(), of_add(initial));
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        // A resync repairs what went wrong, so predicates do not apply to it.
        if old.is_same_version(new) {
            self.queue.add_with(new.key().clone(), Priority::LOW);
        } else if self.accepts(old, new) {
            self.queue.add(new.key().clone());
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        self.queue.add(deleted.key().clone());
    }
}

/// Enqueues the controlling owners of objects.
pub(crate) struct Owned<T> {
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) owner: Kind,
    pub(crate) predicate: Option<Predicate<T>>,
}

impl<T> Owned<T> {
    fn owner(&self, object: &Object<T>) -> Option<ObjectKey> {
        let owner = object.controller()?;
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        if *owner.kind != *self.owner.kind || group != self.owner.group {
            return None;
        }
        Some(ObjectKey::new(object.namespace().filter(|_| self.owner.namespaced), &owner.name))
    }

    fn add(&self, object: &Object<T>, priority: Priority) {
        if let Some(owner) = self.owner(object) {
            self.queue.add_with(owner, priority);
        }
    }
}

impl<T: 'static> EventHandler<T> for Owned<T> {
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        self.add(object, of_add(initial));
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        // A resync of the owners covers resyncs of what they own.
        if old.is_same_version(new) || self.predicate.as_ref().is_some_and(|accepts| !accepts(old, new)) {
            return;
        }
        self.add(old, Priority::NORMAL);
        self.add(new, Priority::NORMAL);
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        self.add(deleted.object(), Priority::NORMAL);
    }
}

/// Enqueues the keys that a function returns for an object. An update enqueues the keys of both its states, so that an
/// object which moves from one key to another reconciles both.
pub(crate) struct Mapped<F> {
    pub(crate) queue: WorkQueue<ObjectKey>,
    pub(crate) keys: F,
}

impl<F> Mapped<F> {
    fn add<T, I>(&self, object: &Object<T>, priority: Priority)
    where
        F: Fn(&Object<T>) -> I,
        I: IntoIterator<Item = ObjectKey>,
    {
        for key in (self.keys)(object) {
            self.queue.add_with(key, priority);
        }
    }
}

impl<T, F, I> EventHandler<T> for Mapped<F>
where
    T: 'static,
    F: Fn(&Object<T>) -> I + Send + Sync + 'static,
    I: IntoIterator<Item = ObjectKey>,
{
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        self.add(object, of_add(initial));
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        if !old.is_same_version(new) {
            self.add(old, Priority::NORMAL);
            self.add(new, Priority::NORMAL);
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        self.add(deleted.object(), Priority::NORMAL);
    }
}
