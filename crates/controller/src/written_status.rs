//! The statuses that the server made of those that were written.

use kube_informer::Uid;
use kube_informer_wire::sync::lock;
use serde_json::Value;
use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Mutex,
};

/// Number of objects that are remembered. Beyond it all are forgotten, which costs each of them one write without effect.
const MAX_OBJECTS: usize = 100_000;

/// The statuses that were written, and what the server made of them.
///
/// A server adds defaults, so the status it returns may differ from the one that was sent for ever. Without this table such a
/// status would be written again in every reconcile.
#[derive(Debug, Default)]
pub(crate) struct WrittenStatuses(Mutex<HashMap<Uid, (u64, u64)>>);

impl WrittenStatuses {
    /// Whether the server made `shown` of `sent` when it was written last.
    pub(crate) fn is_result(&self, of: Uid, sent: &Value, shown: &Value) -> bool {
        lock(&self.0).get(&of) == Some(&(digest(sent), digest(shown)))
    }

    /// The server made `shown` of `sent`.
    pub(crate) fn remember(&self, of: Uid, sent: &Value, shown: &Value) {
        let mut known = lock(&self.0);
        if known.len() >= MAX_OBJECTS && !known.contains_key(&of) {
            known.clear();
        }
        known.insert(of, (digest(sent), digest(shown)));
    }
}

fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}
