//! Takes down every change of the collection as the store commits it.

use crate::{
    history::Record,
    truth::{Known, Truth},
};
use bytes::Bytes;
use kube_embedded_apiserver::storage::{Change, Follower, Stored};
use kube_informer::ObjectKey;
use serde::Deserialize;
use std::{collections::BTreeSet, sync::Arc};

/// Follows a store. Whatever the server answers, and even if it does not, this is what happened.
pub(super) struct Recorder {
    truth: Arc<Truth>,
}

/// What the model knows of an object.
#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    data: Data,
}

#[derive(Deserialize)]
struct Metadata<'a> {
    uid: &'a str,
}

#[derive(Deserialize)]
struct Data {
    n: String,
    /// A name, or a number in an odd object.
    color: serde_json::Value,
}

impl Recorder {
    pub(super) fn new(truth: &Arc<Truth>) -> Arc<Self> {
        Arc::new(Self { truth: Arc::clone(truth) })
    }

    fn record(&self, known: &mut Known, stored: &Stored, version: u64, gone: bool) {
        let mut json = Vec::new();
        stored.document.write(None, version, &mut json);
        let Ok(content) = serde_json::from_slice::<Content<'_>>(&json) else {
            return self.truth.log.fail(format_args!("{} holds what nobody wrote", stored.key));
        };
        let color = match &content.data.color {
            serde_json::Value::String(name) => name.trim_start_matches('c').parse().ok(),
            number => number.as_u64(),
        };
        let record = Record {
            version,
            key: ObjectKey::namespaced(stored.parent(), stored.name()),
            uid: content.metadata.uid.into(),
            stamp: content.data.n.parse().unwrap_or(0),
            color: color.unwrap_or(0),
            odd: content.data.color.is_number(),
            gone,
            json: Bytes::from(json),
        };
        let write = known.history.record(record);
        self.truth.log.wrote(&write);
    }
}

impl Follower for Recorder {
    /// The store of a cluster begins empty, or as it was at a version that is known.
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>) {
        let known = self.truth.lock();
        let (epoch, history) = (known.history.epoch(), &known.history);
        let was = history.at(epoch, revision).into_iter().flat_map(|state| state.values());
        let was: BTreeSet<u64> = was.map(|write| write.version).collect();
        if was != items.iter().map(|stored| stored.revision).collect() {
            self.truth.log.fail(format_args!("the store is not what it was @{revision}"));
        }
    }

    fn change(&self, change: &Arc<Change>) {
        let mut known = self.truth.lock();
        match (&change.current, &change.previous) {
            (Some(stored), _) => self.record(&mut known, stored, change.revision, false),
            (None, Some(last)) => self.record(&mut known, last, change.revision, true),
            (None, None) => {}
        }
    }

    fn progress(&self, revision: u64) {
        self.truth.lock().history.reach(revision);
    }

    fn compacted(&self, _revision: u64) {}

    fn lost(&self, _cause: &str) {}
}
