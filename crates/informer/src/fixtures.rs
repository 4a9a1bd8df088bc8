//! Fixtures of the unit tests: objects, and short notations for deltas and events.

use crate::{
    delta::{AnyObject, Deleted, Delta},
    delta_fifo::Known,
    handler::Event,
};
use kube_informer_wire::{Kind, Limits, Object, ObjectKey, Origin};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, LazyLock},
};

static ORIGIN: LazyLock<Arc<Origin>> =
    LazyLock::new(|| Arc::new(Origin::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps"))));

/// Parses an object.
pub(crate) fn parse(value: &Value) -> AnyObject {
    parse_text(&value.to_string())
}

/// Parses an object from text, which may have fields that cannot be decoded.
pub(crate) fn parse_text(json: &str) -> AnyObject {
    Object::parse(&ORIGIN, json.to_owned().into(), &Limits::default()).unwrap()
}

/// `ns/name` with a uid and a version.
pub(crate) fn object_of(key: &str, uid: &str, version: u64) -> AnyObject {
    let key: ObjectKey = key.parse().unwrap();
    let mut meta = json!({"name": key.name(), "uid": uid, "resourceVersion": version.to_string()});
    if let Some(namespace) = key.namespace() {
        meta["namespace"] = namespace.into();
    }
    parse(&json!({ "metadata": meta }))
}

/// `ns/name` at a version; its uid is derived from its key.
pub(crate) fn object(key: &str, version: u64) -> AnyObject {
    object_of(key, &format!("uid-of-{key}"), version)
}

/// `a@5`.
pub(crate) fn short(object: &AnyObject) -> String {
    format!("{}@{}", object.name(), object.resource_version())
}

/// `-a@5`, or `-a@5?` when the final state is unknown.
fn short_deleted(deleted: &Deleted<Value>) -> String {
    let mark = if deleted.is_final_state_unknown() { "?" } else { "" };
    format!("-{}{mark}", short(deleted.object()))
}

/// `+a@5` added, `~a@5` updated, `-a@5` deleted, `=a@5` replaced, `.a@5` resync.
pub(crate) fn short_delta(delta: &Delta) -> String {
    match delta {
        Delta::Added(object) => format!("+{}", short(object)),
        Delta::Updated(object) => format!("~{}", short(object)),
        Delta::Deleted(deleted) => short_deleted(deleted),
        Delta::Replaced(object) => format!("={}", short(object)),
        Delta::Sync(object) => format!(".{}", short(object)),
    }
}

/// `+a@5!` initial, `+a@5`, `~a@5>6`, `-a@7`, `-a@7?`.
pub(crate) fn short_event(event: &Event<Value>) -> String {
    match event {
        Event::Added { object, initial } => format!("+{}{}", short(object), if *initial { "!" } else { "" }),
        Event::Updated { old, new } => format!("~{}>{}", short(old), new.resource_version()),
        Event::Deleted(deleted) => short_deleted(deleted),
    }
}

/// A store for tests.
#[derive(Debug, Default, Clone)]
pub(crate) struct Stored(pub(crate) BTreeMap<ObjectKey, AnyObject>);

impl Stored {
    pub(crate) fn of(objects: impl IntoIterator<Item = AnyObject>) -> Self {
        Self(objects.into_iter().map(|object| (object.key().clone(), object)).collect())
    }

    /// Applies a delta as the controller does.
    pub(crate) fn apply(&mut self, delta: &Delta) {
        match delta {
            Delta::Added(object) | Delta::Updated(object) | Delta::Replaced(object) => {
                self.0.insert(object.key().clone(), object.clone());
            }
            Delta::Deleted(deleted) => {
                self.0.remove(deleted.key());
            }
            Delta::Sync(_) => {}
        }
    }
}

impl Known for Stored {
    fn get(&self, key: &ObjectKey) -> Option<AnyObject> {
        self.0.get(key).cloned()
    }

    fn keys_after(&self, start: Option<&ObjectKey>, max: usize) -> Vec<ObjectKey> {
        let after = (start.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        self.0.range::<ObjectKey, _>(after).take(max).map(|(key, _)| key.clone()).collect()
    }
}
