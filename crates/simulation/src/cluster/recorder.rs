//! Records every change of the collection when the store commits it.

use crate::{
    history::Write,
    tag::Tag,
    truth::{Truth, TruthState},
};
use bytes::Bytes;
use kube_embedded_apiserver::storage::{Change, Follower, Stored};
use kube_informer::ObjectKey;
use serde::Deserialize;
use std::{collections::BTreeSet, sync::Arc};

/// Follows a store, so that the history is exact even if the response to a write is wrong or lost.
pub(super) struct Recorder {
    truth: Arc<Truth>,
}

/// The fields of an object that the history has.
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
    /// A string, or a number in an invalid object.
    color: serde_json::Value,
}

impl Recorder {
    pub(super) fn new(truth: &Arc<Truth>) -> Arc<Self> {
        Arc::new(Self { truth: Arc::clone(truth) })
    }

    fn record(&self, truth: &mut TruthState, stored: &Stored, version: u64, deleted: bool) {
        let mut json = Vec::new();
        stored.document.write(None, version, &mut json);
        let Ok(content) = serde_json::from_slice::<Content<'_>>(&json) else {
            return self.truth.log.fail(format_args!("{} has a content that was never written", stored.key));
        };
        let color = match &content.data.color {
            serde_json::Value::String(name) => name.trim_start_matches('c').parse().ok(),
            number => number.as_u64(),
        };
        let key = ObjectKey::namespaced(stored.parent(), stored.name());
        let (uid, stamp) = (content.metadata.uid.into(), content.data.n.parse().unwrap_or(0));
        let (color, invalid) = (color.unwrap_or(0), content.data.color.is_number());
        let json = Bytes::from(json);
        let write = truth.history.append(|n, epoch| Write {
            n,
            epoch,
            version,
            key,
            uid,
            stamp,
            color,
            invalid,
            deleted,
            tag: Tag::Absent,
            json,
        });
        self.truth.log.record_write(&write);
    }
}

impl Follower for Recorder {
    /// Checks that the store is as it was at this revision: empty, or restored.
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>) {
        let truth = self.truth.lock();
        let (epoch, history) = (truth.history.epoch(), &truth.history);
        let expected = history.at(epoch, revision).into_iter().flat_map(|state| state.values());
        let expected: BTreeSet<u64> = expected.map(|write| write.version).collect();
        if expected != items.iter().map(|stored| stored.revision).collect() {
            self.truth.log.fail(format_args!("the store is not what it was @{revision}"));
        }
    }

    fn change(&self, change: &Arc<Change>) {
        let mut truth = self.truth.lock();
        match (&change.current, &change.previous) {
            (Some(stored), _) => self.record(&mut truth, stored, change.revision, false),
            (None, Some(last)) => self.record(&mut truth, last, change.revision, true),
            (None, None) => {}
        }
    }

    fn progress(&self, revision: u64) {
        self.truth.lock().history.advance_to(revision);
    }

    fn compacted(&self, _revision: u64) {}

    fn lost(&self, _cause: &str) {}
}
