//! Filters for updates.

use crate::{Deleted, EventHandler};
use kube_informer_wire::Object;
use serde::Deserialize;
use std::{collections::BTreeMap, fmt, marker::PhantomData};

/// A handler that receives an update only if a predicate on the old and the new state holds, made by [`updates_when`].
/// Adds and deletes always pass.
#[must_use = "a handler is called only after it is added to an informer"]
pub struct UpdatesWhen<T, P, H> {
    predicate: P,
    handler: H,
    of: PhantomData<fn() -> T>,
}

/// A handler that passes on updates to `handler` only if `predicate(old, new)` holds.
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

impl<T, P, H: fmt::Debug> fmt::Debug for UpdatesWhen<T, P, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpdatesWhen({:?})", self.handler)
    }
}

/// Returns whether the desired state changed: the generation changed, the object has none, or its deletion began.
pub fn generation_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    new.generation().is_none()
        || old.generation() != new.generation()
        || old.is_deleting() != new.is_deleting()
}

/// Returns whether the labels changed.
pub fn labels_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    old.labels() != new.labels()
}

/// Returns whether the annotations changed. Decodes both states; one that cannot be decoded counts as changed.
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

/// Returns whether the resource version changed: false for the updates of a resync.
pub fn version_changed<T>(old: &Object<T>, new: &Object<T>) -> bool {
    old.resource_version() != new.resource_version()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::parse;
    use serde_json::{Value, json};

    fn object(meta: Value) -> Object<Value> {
        let mut object = json!({"metadata": {"name": "a", "resourceVersion": "1"}});
        object["metadata"].as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        parse(&object)
    }

    /// `(old, new)` metadata, and whether a predicate holds for them.
    #[track_caller]
    fn check(predicate: fn(&Object<Value>, &Object<Value>) -> bool, cases: &[(Value, Value, bool)]) {
        for (old, new, holds) in cases {
            assert_eq!(predicate(&object(old.clone()), &object(new.clone())), *holds, "{old} -> {new}");
        }
    }

    #[test]
    fn generations() {
        let deleting =
            |generation| json!({"generation": generation, "deletionTimestamp": "2026-01-01T00:00:00Z"});
        check(
            generation_changed,
            &[
                (json!({"generation": 1}), json!({"generation": 1}), false),
                (json!({"generation": 1}), json!({"generation": 2}), true),
                (json!({}), json!({}), true),
                // kube-apiserver counts the generation up when deletion begins; other servers need not.
                (json!({"generation": 1}), deleting(1), true),
                (deleting(1), deleting(1), false),
            ],
        );
    }

    #[test]
    fn labels_annotations_and_versions() {
        let (a, b) = (json!({"labels": {"x": "1"}}), json!({"labels": {"x": "2"}}));
        check(labels_changed, &[(a.clone(), a.clone(), false), (a, b, true)]);
        let (a, b) = (json!({"annotations": {"x": "1"}}), json!({"annotations": {"x": "2"}}));
        let malformed = json!({"annotations": {"x": 1}});
        check(
            annotations_changed,
            &[(a.clone(), a.clone(), false), (a, b, true), (malformed.clone(), malformed, true)],
        );
        let (a, b) = (json!({"resourceVersion": "1"}), json!({"resourceVersion": "2"}));
        check(version_changed, &[(a.clone(), a.clone(), false), (a, b, true)]);
    }
}
