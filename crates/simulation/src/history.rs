//! The history of a collection: every state that it ever had.

use crate::{
    selection::{Part, Selection},
    subject::TransformKind,
    tag::Tag,
};
use bytes::Bytes;
use imbl::OrdMap;
use kube_informer::{Limits, Malformed, Object, ObjectKey, Origin, Uid};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// One write: a new state of an object, or its deletion.
#[derive(Debug)]
pub(crate) struct Write {
    /// The number of the write in its world. Unlike versions, it never repeats.
    pub(crate) n: u64,
    pub(crate) epoch: u32,
    pub(crate) version: u64,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    /// The number in the content of the object. A deletion has the content of the state before it.
    pub(crate) stamp: u64,
    pub(crate) color: u64,
    /// The labels are a string and the color is a number, which no server accepts.
    pub(crate) invalid: bool,
    pub(crate) deleted: bool,
    pub(crate) tag: Tag,
    /// The object in a list: without kind and apiVersion.
    pub(crate) json: Bytes,
}

impl Write {
    /// The object as an item of a list.
    pub(crate) fn as_listed(&self, origin: &Arc<Origin>) -> Result<Object<Value>, Malformed> {
        Object::parse(origin, self.json.clone(), &Limits::default())
    }

    /// The object in a watch event: with kind and apiVersion.
    pub(crate) fn as_watched(&self, origin: &Arc<Origin>) -> Result<Object<Value>, Malformed> {
        parse_watched(origin, &self.json)
    }

    /// The object in the event of a write that moved it out of a selector: this state, with the version of that write.
    pub(crate) fn as_deselected(
        &self,
        origin: &Arc<Origin>,
        version: u64,
    ) -> Result<Object<Value>, Malformed> {
        let json = String::from_utf8_lossy(&self.json);
        let version_of = |version: u64| format!("\"resourceVersion\":\"{version}\"");
        parse_watched(origin, json.replacen(&version_of(self.version), &version_of(version), 1).as_bytes())
    }
}

/// Adds kind and apiVersion to an item of a list.
fn parse_watched(origin: &Arc<Origin>, item: &[u8]) -> Result<Object<Value>, Malformed> {
    let kind = origin.kind();
    let head = format!(r#"{{"kind":"{}","apiVersion":"{}","#, kind.kind, kind.api_version());
    let mut json = head.into_bytes();
    json.extend_from_slice(&item[1..]);
    Object::parse(origin, json.into(), &Limits::default())
}

/// What an informer makes of the collection: its selectors and its transform.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) selection: Selection,
    pub(crate) transform: TransformKind,
}

/// An epoch and a resource version, which together identify a state of the collection.
pub(crate) type EpochVersion = (u32, u64);

/// A state of the collection.
pub(crate) type Collection = OrdMap<ObjectKey, Arc<Write>>;

/// The number in the content. Valid objects have it in their labels, too.
#[derive(Deserialize)]
struct Content {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    n: String,
}

/// Every state that a collection ever had, and which of them the server still has.
///
/// 1. A *version* is a point in an *epoch*. Restoring an older state begins a new epoch, which shares the history
///    up to that point; the versions after it repeat with other content.
/// 2. The collection at a version is the result of exactly the writes up to it.
pub(crate) struct History {
    writes: Vec<Arc<Write>>,
    /// Numbers of the writes with a uid and a version: more than one only in different epochs.
    by_identity: HashMap<(Uid, u64), Vec<u64>>,
    /// For each write, the first epoch that does not have it.
    undone_in: Vec<Option<u32>>,
    states: BTreeMap<EpochVersion, Collection>,
    changes: BTreeMap<EpochVersion, Arc<Write>>,
    /// First and last version of each epoch. The last version of the current epoch is not valid.
    spans: Vec<(u64, u64)>,
    pub(crate) version: u64,
    /// The server has compacted the changes up to this version.
    pub(crate) compacted: u64,
    uids: u64,
}

impl History {
    /// An empty collection at a version.
    pub(crate) fn new(version: u64) -> Self {
        Self {
            writes: Vec::new(),
            by_identity: HashMap::new(),
            undone_in: Vec::new(),
            states: BTreeMap::from([((0, version), Collection::new())]),
            changes: BTreeMap::new(),
            spans: vec![(version, version)],
            version,
            compacted: version,
            uids: 0,
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.spans.len() as u32 - 1
    }

    /// The newest state.
    pub(crate) fn current(&self) -> &Collection {
        self.states.last_key_value().map(|(_, state)| state).expect("there is an initial state")
    }

    /// The collection at a version, if the epoch has that version.
    pub(crate) fn at(&self, epoch: u32, version: u64) -> Option<&Collection> {
        let &(first, last) = self.spans.get(epoch as usize)?;
        let last = if epoch == self.epoch() { self.version } else { last };
        if version < first || version > last {
            return None;
        }
        self.states.range((epoch, 0)..=(epoch, version)).next_back().map(|(_, state)| state)
    }

    /// A write by its number.
    pub(crate) fn write(&self, n: u64) -> Option<&Arc<Write>> {
        self.writes.get(usize::try_from(n).ok()?.checked_sub(1)?)
    }

    /// The newest write of a key.
    pub(crate) fn last_write_of(&self, key: &ObjectKey) -> Option<&Arc<Write>> {
        self.writes.iter().rev().find(|write| write.key == *key)
    }

    /// The newest write with a uid and a version.
    pub(crate) fn find_write(&self, uid: Uid, version: u64) -> Option<&Arc<Write>> {
        self.by_identity.get(&(uid, version))?.last().and_then(|&n| self.write(n))
    }

    /// Whether another write has the uid and version of this one, in another epoch.
    pub(crate) fn is_repeated(&self, write: &Write) -> bool {
        self.by_identity.get(&(write.uid, write.version)).is_some_and(|numbers| numbers.len() > 1)
    }

    /// The writes that an object of an informer may show, oldest first. There are several only if two epochs have the
    /// same uid and version, and the transform removed the content in which they differ. A write that moved the object
    /// out of the selector of the informer is shown by the state before it.
    pub(crate) fn candidates<'a>(
        &'a self,
        object: &'a Object<Value>,
        view: View,
    ) -> impl Iterator<Item = &'a Arc<Write>> {
        let key = (object.uid(), object.resource_version().number().unwrap_or(0));
        let numbers = self.by_identity.get(&key).map_or(&[][..], Vec::as_slice);
        let by_label = object.labels().get("n").and_then(|n| n.parse().ok());
        let by_content = || object.view::<Content>().ok().and_then(|content| content.data.n.parse().ok());
        let stamp: Option<u64> = if numbers.len() > 1 { by_label.or_else(by_content) } else { by_label };
        let is_lost = object.is_content_lost();
        let fits = move |shown: &Write| match stamp {
            Some(stamp) => stamp == shown.stamp,
            None => numbers.len() == 1 || is_lost || view.transform.hides(shown),
        };
        let writes = numbers.iter().filter_map(|&n| self.write(n));
        writes.filter(move |write| {
            let before = if view.selection.selects(write) { None } else { self.before(write) };
            write.key == *object.key() && fits(before.unwrap_or(write))
        })
    }

    /// The newest write that an object may show.
    pub(crate) fn find<'a>(&'a self, object: &'a Object<Value>, view: View) -> Option<&'a Arc<Write>> {
        self.candidates(object, view).last()
    }

    /// Creates or updates an object.
    pub(crate) fn put(&mut self, key: &ObjectKey, color: u64, invalid: bool) -> Arc<Write> {
        let uid = match self.current().get(key) {
            Some(known) => known.uid.to_string(),
            None => {
                self.uids += 1;
                format!("00000000-0000-4000-8000-{:012x}", self.uids)
            }
        };
        self.write_next(key, &uid, color, invalid, false)
    }

    /// Deletes an object.
    pub(crate) fn delete(&mut self, key: &ObjectKey) -> Option<Arc<Write>> {
        let last = Arc::clone(self.current().get(key)?);
        Some(self.write_next(key, &last.uid.to_string(), last.color, last.invalid, true))
    }

    fn write_next(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        color: u64,
        invalid: bool,
        deleted: bool,
    ) -> Arc<Write> {
        let (stamp, version) = (self.writes.len() as u64 + 1, self.version + 1);
        let json = encode(stamp, version, key, uid, color, invalid);
        let (key, uid) = (key.clone(), uid.into());
        self.append(|n, epoch| Write {
            n,
            epoch,
            version,
            key,
            uid,
            stamp,
            color,
            invalid,
            deleted,
            tag: Tag::of(stamp),
            json,
        })
    }

    /// Appends a write, which is given its number and epoch.
    pub(crate) fn append(&mut self, write: impl FnOnce(u64, u32) -> Write) -> Arc<Write> {
        let (n, epoch) = (self.writes.len() as u64 + 1, self.epoch());
        let write = Arc::new(write(n, epoch));
        let mut state = self.current().clone();
        match write.deleted {
            true => drop(state.remove(&write.key)),
            false => drop(state.insert(write.key.clone(), Arc::clone(&write))),
        }
        let version = write.version;
        self.version = version;
        self.states.insert((epoch, version), state);
        self.changes.insert((epoch, version), Arc::clone(&write));
        self.by_identity.entry((write.uid, version)).or_default().push(n);
        self.writes.push(Arc::clone(&write));
        self.undone_in.push(None);
        write
    }

    /// Advances the version without a change of this collection: another resource was written.
    pub(crate) fn advance_to(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// Compacts all changes so far.
    pub(crate) fn compact(&mut self) {
        self.compacted = self.version;
    }

    /// Restores the state of a version, without its history. Returns false if the epoch does not have it.
    pub(crate) fn restore(&mut self, version: u64) -> bool {
        let (epoch, current) = (self.epoch(), self.version);
        let Some(state) = self.at(epoch, version).cloned() else { return false };
        self.spans[epoch as usize].1 = current;
        for (write, undone_in) in self.writes.iter().zip(&mut self.undone_in) {
            if write.version > version && undone_in.is_none() {
                *undone_in = Some(epoch + 1);
            }
        }
        self.spans.push((version, version));
        self.states.insert((epoch + 1, version), state);
        (self.version, self.compacted) = (version, version);
        true
    }

    /// The last version of an epoch so far.
    pub(crate) fn last_version(&self, epoch: u32) -> u64 {
        if epoch == self.epoch() { self.version } else { self.spans[epoch as usize].1 }
    }

    /// The version that an epoch began with.
    pub(crate) fn first_version(&self, epoch: u32) -> u64 {
        self.spans[epoch as usize].0
    }

    /// The state of an object before a write.
    pub(crate) fn before(&self, write: &Write) -> Option<&Arc<Write>> {
        self.at(write.epoch, write.version - 1)?.get(&write.key)
    }

    /// Whether a write changes a part of the collection: the part has the object before or after it.
    fn changes_part(&self, write: &Write, part: &Part) -> bool {
        part.includes(write) || self.before(write).is_some_and(|before| part.includes(before))
    }

    /// The first change of a part of the collection after a version.
    pub(crate) fn next_change(&self, after: u64, part: &Part) -> Option<&Arc<Write>> {
        let epoch = self.epoch();
        let later = self.changes.range((epoch, after + 1)..=(epoch, u64::MAX));
        later.map(|(_, write)| write).find(|write| self.changes_part(write, part))
    }

    /// The version from which a watch repeats the last `count` changes up to `from`.
    pub(crate) fn rewind(&self, from: u64, count: usize, part: &Part) -> u64 {
        let epoch = self.epoch();
        if from <= self.compacted {
            return from;
        }
        let earlier = self.changes.range((epoch, self.compacted + 1)..=(epoch, from)).rev();
        let repeated = earlier.filter(|(_, write)| self.changes_part(write, part)).take(count).last();
        repeated.map_or(from, |(&(_, version), _)| version - 1)
    }

    /// Whether an object was deleted, or left a selection, after a write.
    pub(crate) fn was_removed_after(&self, key: &ObjectKey, n: u64, selection: Selection) -> bool {
        let mut later = self.writes.iter().skip(n as usize);
        later.any(|write| write.key == *key && (write.deleted || !selection.selects(write)))
    }

    /// Whether a client that received write `seen` of an object, and knows epoch `floor` or a later one, may receive
    /// write `next`. Returns the epoch that it knows then.
    pub(crate) fn may_follow(&self, seen: u64, next: u64, floor: u32) -> Option<u32> {
        let undone_in = |n: u64| self.undone_in[n as usize - 1];
        let mut epoch = floor.max(self.write(next)?.epoch);
        if next < seen {
            // Only an epoch without `seen` goes back.
            epoch = epoch.max(undone_in(seen)?);
        }
        undone_in(next).is_none_or(|end| epoch < end).then_some(epoch)
    }
}

/// Whether an object has the key, uid and version of a write.
pub(crate) fn has_identity_of(object: &Object<Value>, write: &Write) -> bool {
    object.key() == &write.key
        && object.uid() == write.uid
        && object.resource_version().number() == Some(write.version)
}

/// Whether a key belongs to a namespace; `None` is all of them.
pub(crate) fn is_in(key: &ObjectKey, namespace: Option<&str>) -> bool {
    namespace.is_none() || key.namespace() == namespace
}

fn encode(stamp: u64, version: u64, key: &ObjectKey, uid: &str, color: u64, invalid: bool) -> Bytes {
    let labels =
        if invalid { json!("none") } else { json!({"n": stamp.to_string(), "color": color_name(color)}) };
    let object = json!({
        "metadata": {
            "name": key.name(), "namespace": key.namespace(), "uid": uid, "resourceVersion": version.to_string(),
            "labels": labels, "managedFields": [{"manager": "simulation", "n": stamp}],
        },
        "spec": spec(color),
        "data": data(stamp, color, invalid),
    });
    let mut json = object.to_string();
    if let Some(tag) = Tag::of(stamp).json() {
        // Some tags are no JSON that serde can represent.
        json.insert_str(json.len() - 1, &format!(",\"tag\":{tag}"));
    }
    json.into()
}

/// The content of an object: strings as in a config map, unless it is invalid.
pub(crate) fn data(stamp: u64, color: u64, invalid: bool) -> Value {
    let shade = if invalid { json!(color) } else { json!(color_name(color)) };
    json!({"n": stamp.to_string(), "color": shade, "bulk": "x".repeat((stamp % 50) as usize)})
}

/// The selectable field of the custom resource.
pub(crate) fn spec(color: u64) -> Value {
    json!({"shade": color_name(color)})
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

    fn in_namespace(namespace: &str) -> Part {
        Part::new(Some(namespace), Selection::Everything)
    }

    #[test]
    fn every_state_is_kept() {
        let mut history = History::new(100);
        let first = history.put(&key(), 1, false);
        history.advance_to(104);
        let deleted = history.delete(&key()).unwrap();
        assert_eq!((first.version, deleted.version), (101, 105));
        assert_eq!(history.at(0, 100).unwrap().len(), 0);
        assert_eq!(history.at(0, 104).unwrap().len(), 1);
        assert_eq!(history.at(0, 105).unwrap().len(), 0);
        assert!(history.at(0, 106).is_none() && history.at(0, 99).is_none());
        assert_eq!(history.next_change(101, &in_namespace("a")).unwrap().n, deleted.n);
        assert!(history.next_change(101, &in_namespace("b")).is_none());
    }

    #[test]
    fn only_another_epoch_goes_back() {
        let mut history = History::new(100);
        let [a, b, c] = [0; 3].map(|_| history.put(&key(), 1, false).n);
        assert_eq!(history.may_follow(a, c, 0), Some(0));
        assert_eq!(history.may_follow(b, a, 0), None);
        assert!(history.restore(101));
        assert_eq!(history.version, 101);
        assert_eq!(history.may_follow(c, a, 0), Some(1), "the restored state");
        assert_eq!(history.may_follow(a, c, 1), None, "the new epoch does not have it");
        let d = history.put(&key(), 1, false);
        assert_eq!((d.version, history.may_follow(c, d.n, 0)), (102, Some(1)));
        assert_eq!(history.at(0, 102).unwrap().get(&key()).unwrap().n, b);
        assert_eq!(history.at(1, 102).unwrap().get(&key()).unwrap().n, d.n);
    }

    #[test]
    fn an_object_without_content_shows_a_write_whose_content_was_removed() {
        let mut history = History::new(100);
        let kept = history.put(&key(), 1, false);
        let [plain, invalid] = [false, true].map(|invalid| {
            if invalid {
                assert!(history.restore(101));
            }
            history.put(&key(), 1, invalid)
        });
        assert_eq!((plain.uid, plain.version), (invalid.uid, invalid.version));
        assert!(history.is_repeated(&plain) && history.is_repeated(&invalid) && !history.is_repeated(&kept));
        let origin = Arc::new(Origin::new(kube_informer::Kind::namespaced("", "v1", "Thing", "things")));
        let object = |json: Bytes| Object::parse(&origin, json, &Limits::default()).unwrap();
        let found = |object: &Object<Value>, transform| {
            let view = View { selection: Selection::Everything, transform };
            history.candidates(object, view).map(|write| write.n).collect::<Vec<_>>()
        };
        let identity = json!({"metadata": {
            "name": "x", "namespace": "a", "uid": invalid.uid.to_string(), "resourceVersion": invalid.version.to_string(),
        }});
        let bare = object(identity.to_string().into());
        assert_eq!(found(&bare, TransformKind::DropData), [invalid.n]);
        assert_eq!(found(&bare, TransformKind::None), [0; 0], "no transform removes the content");
        assert_eq!(found(&object(invalid.json.clone()), TransformKind::DropData), [invalid.n]);
        assert_eq!(found(&object(plain.json.clone()), TransformKind::DropData), [plain.n]);
    }

    #[test]
    fn a_write_that_moves_an_object_out_of_a_selector_is_shown_by_the_state_before_it() {
        let mut history = History::new(100);
        let [selected, moved_out, outside] = [1, 2, 0].map(|color| history.put(&key(), color, false));
        let part = Part { namespace: None, selection: Selection::Color(1) };
        let next = |after| history.next_change(after, &part).map(|write| write.n);
        assert_eq!((next(100), next(101), next(102)), (Some(selected.n), Some(moved_out.n), None));
        let origin = Arc::new(Origin::new(kube_informer::Kind::namespaced("", "v1", "Thing", "things")));
        let event = selected.as_deselected(&origin, moved_out.version).unwrap();
        let found = |selection| {
            let view = View { selection, transform: TransformKind::None };
            history.find(&event, view).map(|write| write.n)
        };
        assert_eq!(found(part.selection), Some(moved_out.n));
        assert_eq!(found(Selection::Everything), None);
        assert!(history.was_removed_after(&key(), selected.n, part.selection));
        assert!(!history.was_removed_after(&key(), outside.n, part.selection));
    }

    #[test]
    fn the_last_changes_can_be_repeated() {
        let mut history = History::new(100);
        for _ in 0..5 {
            history.put(&key(), 1, false);
        }
        assert_eq!(history.rewind(105, 2, &Part::default()), 103);
        assert_eq!(history.rewind(105, 2, &in_namespace("b")), 105);
        history.compact();
        assert_eq!(history.rewind(105, 2, &Part::default()), 105);
    }
}
