//! Handlers that add keys to a work queue.

use crate::{Deleted, Event, EventHandler, on_event};
use kube_informer_wire::{Object, ObjectKey};
use kube_workqueue::WorkQueue;
use std::{fmt, hash::Hash};

/// A handler that adds the key of each object to a queue, made by [`enqueue`].
#[derive(Clone)]
#[must_use = "a handler is called only after it is added to an informer"]
pub struct Enqueue(WorkQueue<ObjectKey>);

/// A handler that adds the key of each added, changed or deleted object to a queue.
pub fn enqueue(queue: &WorkQueue<ObjectKey>) -> Enqueue {
    Enqueue(queue.clone())
}

impl<T: 'static> EventHandler<T> for Enqueue {
    fn on_add(&mut self, object: &Object<T>, _: bool) {
        self.0.add(object.key().clone());
    }

    fn on_update(&mut self, _: &Object<T>, new: &Object<T>) {
        self.0.add(new.key().clone());
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        self.0.add(deleted.key().clone());
    }
}

impl fmt::Debug for Enqueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Enqueue({})", self.0.name())
    }
}

/// A handler that adds the key of the controlling owner of each object to a queue, made by [`enqueue_owner`].
#[derive(Clone)]
#[must_use = "a handler is called only after it is added to an informer"]
pub struct EnqueueOwner {
    queue: WorkQueue<ObjectKey>,
    group: String,
    kind: String,
    namespaced: bool,
}

/// A handler that adds the key of the controlling owner to a queue, for objects that an `O` controls. If the owner
/// changes, both the old and the new one are added.
pub fn enqueue_owner<O>(queue: &WorkQueue<ObjectKey>) -> EnqueueOwner
where
    O: kube::Resource<DynamicType = ()>,
    O::Scope: 'static,
{
    let kind = crate::kind::kind_of::<O>();
    EnqueueOwner { queue: queue.clone(), group: kind.group, kind: kind.kind, namespaced: kind.namespaced }
}

impl EnqueueOwner {
    fn owner<T>(&self, object: &Object<T>) -> Option<ObjectKey> {
        let owner = object.controller()?;
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        if *owner.kind != *self.kind || group != self.group {
            return None;
        }
        let namespace = object.namespace().filter(|_| self.namespaced);
        Some(ObjectKey::new(namespace, &owner.name))
    }

    fn add<T>(&self, object: &Object<T>) {
        if let Some(owner) = self.owner(object) {
            self.queue.add(owner);
        }
    }
}

impl<T: 'static> EventHandler<T> for EnqueueOwner {
    fn on_add(&mut self, object: &Object<T>, _: bool) {
        self.add(object);
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        if self.owner(old) != self.owner(new) {
            self.add(old);
        }
        self.add(new);
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        self.add(deleted.object());
    }
}

impl fmt::Debug for EnqueueOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EnqueueOwner({} of {})", self.queue.name(), self.kind)
    }
}

/// A handler that adds the keys that `keys` returns for an event to a queue.
#[must_use = "a handler is called only after it is added to an informer"]
pub fn enqueue_with<T, K, I>(
    queue: &WorkQueue<K>,
    mut keys: impl FnMut(&Event<T>) -> I + Send + 'static,
) -> impl EventHandler<T>
where
    T: 'static,
    K: Clone + Eq + Hash + Send + Sync + 'static,
    I: IntoIterator<Item = K>,
{
    let queue = queue.clone();
    on_event(move |event| keys(event).into_iter().for_each(|key| queue.add(key)))
}
