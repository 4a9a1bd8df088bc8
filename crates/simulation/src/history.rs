//! The model: every state a collection ever had.

use crate::subject::TransformKind;
use bytes::Bytes;
use imbl::OrdMap;
use kube_informer::{Limits, Object, ObjectKey, Origin, Uid, Unreadable};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// One write: a state of an object, or its end.
#[derive(Debug)]
pub(crate) struct Written {
    /// Numbers all writes of a world; never repeats, unlike versions.
    pub(crate) n: u64,
    pub(crate) epoch: u32,
    pub(crate) version: u64,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    /// The number that the content says it has. A deletion shows the content of the state before it.
    pub(crate) stamp: u64,
    pub(crate) color: u64,
    /// Labels that are a text, and a color that is a number.
    pub(crate) odd: bool,
    /// Whether the object is gone with this.
    pub(crate) gone: bool,
    /// As a list shows it: without kind and apiVersion.
    pub(crate) json: Bytes,
}

impl Written {
    /// The object as a list shows it.
    pub(crate) fn as_listed(&self, origin: &Arc<Origin>) -> Result<Object<Value>, Unreadable> {
        Object::parse(origin, self.json.clone(), &Limits::default())
    }

    /// The object as a watch shows it: with kind and apiVersion.
    pub(crate) fn as_watched(&self, origin: &Arc<Origin>) -> Result<Object<Value>, Unreadable> {
        let kind = origin.kind();
        let head = format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version());
        let mut json = head.into_bytes();
        json.extend_from_slice(&self.json[1..]);
        Object::parse(origin, json.into(), &Limits::default())
    }
}

/// A change, before it has its place in a history.
pub(crate) struct Record {
    pub(crate) version: u64,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) stamp: u64,
    pub(crate) color: u64,
    pub(crate) odd: bool,
    pub(crate) gone: bool,
    pub(crate) json: Bytes,
}

/// A state of the collection.
pub(crate) type Collection = OrdMap<ObjectKey, Arc<Written>>;

/// What the content says about itself; odd objects have no labels that could.
#[derive(Deserialize)]
struct Content {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    n: String,
}

/// Every state a collection ever had, and what the server still remembers of it.
///
/// 1. A *version* is a point in the history of an *epoch*. Restoring an older state begins a new epoch, which
///    shares the past up to that point; versions after it repeat with another meaning.
/// 2. The collection at a version is what all writes up to it made of it, exactly.
pub(crate) struct History {
    writes: Vec<Arc<Written>>,
    /// Which writes an object may show, by its uid and version: more than one only in different epochs.
    shown_by: HashMap<(Uid, u64), Vec<u64>>,
    /// For each write, the first epoch that does not know it.
    dies: Vec<Option<u32>>,
    states: BTreeMap<(u32, u64), Collection>,
    changes: BTreeMap<(u32, u64), Arc<Written>>,
    /// First and last version of each finished epoch; of the current one, only the first counts.
    spans: Vec<(u64, u64)>,
    pub(crate) version: u64,
    /// Changes up to here are forgotten by the server (not by the model).
    pub(crate) floor: u64,
    uids: u64,
}

impl History {
    /// An empty collection at a version.
    pub(crate) fn new(version: u64) -> Self {
        Self {
            writes: Vec::new(),
            shown_by: HashMap::new(),
            dies: Vec::new(),
            states: BTreeMap::from([((0, version), Collection::new())]),
            changes: BTreeMap::new(),
            spans: vec![(version, version)],
            version,
            floor: version,
            uids: 0,
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.spans.len() as u32 - 1
    }

    /// The collection as it is.
    pub(crate) fn current(&self) -> &Collection {
        self.states.last_key_value().map(|(_, state)| state).expect("there is always a state")
    }

    /// The collection at a version, if the epoch had it.
    pub(crate) fn at(&self, epoch: u32, version: u64) -> Option<&Collection> {
        let &(first, last) = self.spans.get(epoch as usize)?;
        let last = if epoch == self.epoch() { self.version } else { last };
        if version < first || version > last {
            return None;
        }
        self.states.range((epoch, 0)..=(epoch, version)).next_back().map(|(_, state)| state)
    }

    /// A write by its number.
    pub(crate) fn write(&self, n: u64) -> Option<&Arc<Written>> {
        self.writes.get(usize::try_from(n).ok()?.checked_sub(1)?)
    }

    /// The newest write of an object.
    pub(crate) fn last_of(&self, key: &ObjectKey) -> Option<&Arc<Written>> {
        self.writes.iter().rev().find(|write| write.key == *key)
    }

    /// The newest write with a uid and a version.
    pub(crate) fn written(&self, uid: Uid, version: u64) -> Option<&Arc<Written>> {
        self.shown_by.get(&(uid, version))?.last().and_then(|&n| self.write(n))
    }

    /// The writes that an object of an informer with this transform may show, oldest first: one, unless two epochs
    /// have the same uid and version and nothing in the content tells them apart.
    pub(crate) fn candidates<'a>(
        &'a self,
        object: &'a Object<Value>,
        transform: TransformKind,
    ) -> impl Iterator<Item = &'a Arc<Written>> {
        let key = (object.uid(), object.resource_version().number().unwrap_or(0));
        let numbers = self.shown_by.get(&key).map_or(&[][..], Vec::as_slice);
        let by_label = object.labels().get("n").and_then(|n| n.parse().ok());
        let by_content = || object.view::<Content>().ok().and_then(|content| content.data.n.parse().ok());
        let stamp: Option<u64> = if numbers.len() > 1 { by_label.or_else(by_content) } else { by_label };
        let fits = move |write: &Arc<Written>| match stamp {
            Some(stamp) => stamp == write.stamp,
            None => numbers.len() == 1 || transform.hides(write),
        };
        let writes = numbers.iter().filter_map(|&n| self.write(n));
        writes.filter(move |write| write.key == *object.key() && fits(write))
    }

    /// The write that an object shows; the newest if there are several.
    pub(crate) fn find<'a>(
        &'a self,
        object: &'a Object<Value>,
        transform: TransformKind,
    ) -> Option<&'a Arc<Written>> {
        self.candidates(object, transform).last()
    }

    /// Writes a new state of an object, which is created if it does not exist.
    pub(crate) fn put(&mut self, key: &ObjectKey, color: u64, odd: bool) -> Arc<Written> {
        let uid = match self.current().get(key) {
            Some(known) => known.uid.to_string(),
            None => {
                self.uids += 1;
                format!("00000000-0000-4000-8000-{:012x}", self.uids)
            }
        };
        self.make(key, &uid, color, odd, false)
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, key: &ObjectKey) -> Option<Arc<Written>> {
        let last = Arc::clone(self.current().get(key)?);
        Some(self.make(key, &last.uid.to_string(), last.color, last.odd, true))
    }

    fn make(&mut self, key: &ObjectKey, uid: &str, color: u64, odd: bool, gone: bool) -> Arc<Written> {
        let (stamp, version) = (self.writes.len() as u64 + 1, self.version + 1);
        let json = encode(stamp, version, key, uid, color, odd);
        self.record(Record { version, key: key.clone(), uid: uid.into(), stamp, color, odd, gone, json })
    }

    /// Takes in a change of the collection.
    pub(crate) fn record(&mut self, record: Record) -> Arc<Written> {
        let Record { version, key, uid, stamp, color, odd, gone, json } = record;
        let (n, epoch) = (self.writes.len() as u64 + 1, self.epoch());
        let write = Arc::new(Written { n, epoch, version, key, uid, stamp, color, odd, gone, json });
        let mut state = self.current().clone();
        match gone {
            true => drop(state.remove(&write.key)),
            false => drop(state.insert(write.key.clone(), Arc::clone(&write))),
        }
        self.version = version;
        self.states.insert((epoch, version), state);
        self.changes.insert((epoch, version), Arc::clone(&write));
        self.shown_by.entry((uid, version)).or_default().push(n);
        self.writes.push(Arc::clone(&write));
        self.dies.push(None);
        write
    }

    /// The version moves on without a change here: something else was written.
    pub(crate) fn reach(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// The server forgets how it came to be what it is.
    pub(crate) fn compact(&mut self) {
        self.floor = self.version;
    }

    /// Takes the collection back to a version, without its history. False if there is no such past.
    pub(crate) fn restore(&mut self, version: u64) -> bool {
        let (epoch, current) = (self.epoch(), self.version);
        let Some(state) = self.at(epoch, version).cloned() else { return false };
        self.spans[epoch as usize].1 = current;
        for (write, dies) in self.writes.iter().zip(&mut self.dies) {
            if write.version > version && dies.is_none() {
                *dies = Some(epoch + 1);
            }
        }
        self.spans.push((version, version));
        self.states.insert((epoch + 1, version), state);
        (self.version, self.floor) = (version, version);
        true
    }

    /// Where the epoch began.
    pub(crate) fn beginning(&self, epoch: u32) -> u64 {
        self.spans[epoch as usize].0
    }

    /// The first change after a version that a namespace sees.
    pub(crate) fn next_change(&self, after: u64, namespace: Option<&str>) -> Option<&Arc<Written>> {
        let epoch = self.epoch();
        let later = self.changes.range((epoch, after + 1)..=(epoch, u64::MAX));
        later.map(|(_, write)| write).find(|write| is_in(&write.key, namespace))
    }

    /// A version from which the last `count` changes up to `from` come once more.
    pub(crate) fn rewind(&self, from: u64, count: usize, namespace: Option<&str>) -> u64 {
        let epoch = self.epoch();
        if from <= self.floor {
            return from;
        }
        let earlier = self.changes.range((epoch, self.floor + 1)..=(epoch, from)).rev();
        let repeated = earlier.filter(|(_, write)| is_in(&write.key, namespace)).take(count).last();
        repeated.map_or(from, |(&(_, version), _)| version - 1)
    }

    /// Whether an object was deleted after a write.
    pub(crate) fn was_deleted_after(&self, key: &ObjectKey, n: u64) -> bool {
        self.writes.iter().skip(n as usize).any(|write| write.gone && write.key == *key)
    }

    /// Whether somebody who saw write `seen` of an object may see write `next` after it, knowing epoch `floor`
    /// at least; gives the epoch that is known then.
    pub(crate) fn may_follow(&self, seen: u64, next: u64, floor: u32) -> Option<u32> {
        let dies = |n: u64| self.dies[n as usize - 1];
        let mut epoch = floor.max(self.write(next)?.epoch);
        if next < seen {
            // Only a history in which `seen` never happened goes back.
            epoch = epoch.max(dies(seen)?);
        }
        dies(next).is_none_or(|end| epoch < end).then_some(epoch)
    }
}

/// Whether the identity of an object is that of a write.
pub(crate) fn shows(object: &Object<Value>, write: &Written) -> bool {
    object.key() == &write.key
        && object.uid() == write.uid
        && object.resource_version().number() == Some(write.version)
}

/// Whether a key belongs to a namespace; `None` is all of them.
pub(crate) fn is_in(key: &ObjectKey, namespace: Option<&str>) -> bool {
    namespace.is_none() || key.namespace() == namespace
}

fn encode(stamp: u64, version: u64, key: &ObjectKey, uid: &str, color: u64, odd: bool) -> Bytes {
    let labels =
        if odd { json!("none") } else { json!({"n": stamp.to_string(), "color": color_name(color)}) };
    let object = json!({
        "metadata": {
            "name": key.name(), "namespace": key.namespace(), "uid": uid, "resourceVersion": version.to_string(),
            "labels": labels, "managedFields": [{"manager": "simulation", "n": stamp}],
        },
        "data": data(stamp, color, odd),
    });
    object.to_string().into()
}

/// What an object holds: texts, as a config map would, unless it is odd.
pub(crate) fn data(stamp: u64, color: u64, odd: bool) -> Value {
    let shade = if odd { json!(color) } else { json!(color_name(color)) };
    json!({"n": stamp.to_string(), "color": shade, "bulk": "x".repeat((stamp % 50) as usize)})
}

pub(crate) fn color_name(color: u64) -> String {
    format!("c{color}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey::namespaced("a", "x")
    }

    #[test]
    fn every_state_is_remembered() {
        let mut history = History::new(100);
        let first = history.put(&key(), 1, false);
        history.reach(104);
        let gone = history.delete(&key()).unwrap();
        assert_eq!((first.version, gone.version), (101, 105));
        assert_eq!(history.at(0, 100).unwrap().len(), 0);
        assert_eq!(history.at(0, 104).unwrap().len(), 1);
        assert_eq!(history.at(0, 105).unwrap().len(), 0);
        assert!(history.at(0, 106).is_none() && history.at(0, 99).is_none());
        assert_eq!(history.next_change(101, Some("a")).unwrap().n, gone.n);
        assert!(history.next_change(101, Some("b")).is_none());
    }

    #[test]
    fn only_another_history_goes_back() {
        let mut history = History::new(100);
        let [a, b, c] = [0; 3].map(|_| history.put(&key(), 1, false).n);
        assert_eq!(history.may_follow(a, c, 0), Some(0));
        assert_eq!(history.may_follow(b, a, 0), None);
        assert!(history.restore(101));
        assert_eq!(history.version, 101);
        assert_eq!(history.may_follow(c, a, 0), Some(1), "the restored state");
        assert_eq!(history.may_follow(a, c, 1), None, "what the new epoch does not know");
        let d = history.put(&key(), 1, false);
        assert_eq!((d.version, history.may_follow(c, d.n, 0)), (102, Some(1)));
        assert_eq!(history.at(0, 102).unwrap().get(&key()).unwrap().n, b);
        assert_eq!(history.at(1, 102).unwrap().get(&key()).unwrap().n, d.n);
    }

    #[test]
    fn an_object_without_content_is_a_write_that_lost_it() {
        let mut history = History::new(100);
        history.put(&key(), 1, false);
        let [plain, odd] = [false, true].map(|odd| {
            if odd {
                assert!(history.restore(101));
            }
            history.put(&key(), 1, odd)
        });
        assert_eq!((plain.uid, plain.version), (odd.uid, odd.version));
        let origin = Arc::new(Origin::new(kube_informer::Kind::namespaced("", "v1", "Thing", "things")));
        let object = |json: Bytes| Object::parse(&origin, json, &Limits::default()).unwrap();
        let found = |object: &Object<Value>, transform| {
            history.candidates(object, transform).map(|write| write.n).collect::<Vec<_>>()
        };
        let identity = json!({"metadata": {
            "name": "x", "namespace": "a", "uid": odd.uid.to_string(), "resourceVersion": odd.version.to_string(),
        }});
        let bare = object(identity.to_string().into());
        assert_eq!(found(&bare, TransformKind::DropData), [odd.n]);
        assert_eq!(found(&bare, TransformKind::None), [0; 0], "nothing takes the content away");
        assert_eq!(found(&object(odd.json.clone()), TransformKind::DropData), [odd.n]);
        assert_eq!(found(&object(plain.json.clone()), TransformKind::DropData), [plain.n]);
    }

    #[test]
    fn the_last_changes_can_be_repeated() {
        let mut history = History::new(100);
        for _ in 0..5 {
            history.put(&key(), 1, false);
        }
        assert_eq!(history.rewind(105, 2, None), 103);
        assert_eq!(history.rewind(105, 2, Some("b")), 105);
        history.compact();
        assert_eq!(history.rewind(105, 2, None), 105);
    }
}
