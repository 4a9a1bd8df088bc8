//! From events to keys on a work queue.

use crate::{Deleted, Event, EventHandler};
use kube_informer_wire::{Object, ObjectKey};
use kube_workqueue::WorkQueue;
use std::{fmt, hash::Hash};

/// A handler that puts the key of every object it hears of on a queue.
#[derive(Clone)]
pub struct Enqueue(WorkQueue<ObjectKey>);

/// Puts the key of every added, changed or deleted object on a queue.
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

/// A handler that puts the key of the controlling owner of every object it hears of on a queue.
#[derive(Clone)]
pub struct EnqueueOwner {
    queue: WorkQueue<ObjectKey>,
    group: String,
    kind: String,
    namespaced: bool,
}

/// Puts the key of the controlling owner on a queue, for objects that an `O` controls. If the owner changes,
/// the old one is put on the queue too.
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

/// Puts whatever keys `keys` makes of an event on a queue.
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

/// A handler that is one closure for all three kinds of event.
pub fn on_event<T: 'static>(f: impl FnMut(&Event<T>) + Send + 'static) -> impl EventHandler<T> {
    struct OnEvent<F>(F);
    impl<T: 'static, F: FnMut(&Event<T>) + Send + 'static> EventHandler<T> for OnEvent<F> {
        fn on_add(&mut self, object: &Object<T>, initial: bool) {
            (self.0)(&Event::Added { object: object.clone(), initial });
        }

        fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
            (self.0)(&Event::Updated { old: old.clone(), new: new.clone() });
        }

        fn on_delete(&mut self, deleted: &Deleted<T>) {
            (self.0)(&Event::Deleted(deleted.clone()));
        }
    }
    OnEvent(f)
}
