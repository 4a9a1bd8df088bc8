//! Which updates are worth hearing of.

use crate::{Deleted, EventHandler};
use kube_informer_wire::Object;
use serde::Deserialize;
use std::{collections::BTreeMap, marker::PhantomData};

/// A handler that hears of an update only when a predicate over the old and the new state says so. Adds and
/// deletes always pass: a predicate can never swallow an end.
pub struct UpdatesWhen<T, P, H> {
    predicate: P,
    handler: H,
    of: PhantomData<fn() -> T>,
}

/// Passes on updates only when `predicate(old, new)` holds.
///
/// ```
/// use kube_informer::{HandlerFuncs, generation_changed, updates_when};
/// # type Pod = serde_json::Value;
///
/// let handler = updates_when(generation_changed, HandlerFuncs::<Pod>::new().on_update(|_, new| println!("{}", new.key())));
/// ```
pub fn updates_when<T, P, H>(predicate: P, handler: H) -> UpdatesWhen<T, P, H>
where
    P: FnMut(&Object<T>, &Object<T>) -> bool + Send + 'static,
    H: EventHandler<T>,
{
    UpdatesWhen { predicate, handler, of: PhantomData }
}

impl<T, P, H> EventHandler<T> for UpdatesWhen<T, P, H>
where
    T: 'static,
    P: FnMut(&Object<T>, &Object<T>) -> bool + Send + 'static,
    H: EventHandler<T>,
{
    fn on_add(&mut self, object: &Object<T>, initial: bool) {
        self.handler.on_add(object, initial);
    }

    fn on_update(&mut self, old: &Object<T>, new: &Object<T>) {
        if (self.predicate)(old, new) {
            self.handler.on_update(old, new);
        }
    }

    fn on_delete(&mut self, deleted: &Deleted<T>) {
        self.handler.on_delete(deleted);
    }
}

/// The desired state changed, or the kind does not count generations, or deletion was asked for.
pub fn generation_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    new.generation().is_none()
        || old.generation() != new.generation()
        || old.is_deleting() != new.is_deleting()
}

/// A label changed.
pub fn labels_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    old.labels() != new.labels()
}

/// An annotation changed. Reads both states; one that cannot be read counts as changed.
pub fn annotations_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    #[derive(Deserialize, PartialEq)]
    struct View {
        #[serde(default)]
        metadata: Meta,
    }
    #[derive(Deserialize, PartialEq, Default)]
    struct Meta {
        annotations: Option<BTreeMap<String, String>>,
    }
    match (old.view::<View>(), new.view::<View>()) {
        (Ok(old), Ok(new)) => old != new,
        _ => true,
    }
}

/// The version changed: false for the calls of a resync.
pub fn version_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    old.resource_version() != new.resource_version()
}
