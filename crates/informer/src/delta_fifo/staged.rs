//! A list on its way in.

use crate::delta::AnyObject;
use hashbrown::{HashMap, HashSet};
use kube_informer_wire::ObjectKey;

/// The keys between which an unreadable item stands; `None` is open to that side.
type Gap = (Option<ObjectKey>, Option<ObjectKey>);

/// A list on its way in: what it has, and what of that is news.
///
/// An item that cannot be read, not even its name, may be any object that the list seems to lack. Servers list
/// in key order: then it can only be one between its neighbours. A list that is not in order leaves every
/// absence open. An object whose absence is open keeps its last known state, because a delete that did not
/// happen is worse than a state that is late.
#[derive(Debug)]
pub(crate) struct Staged {
    present: HashSet<ObjectKey>,
    /// Objects of `present` whose newest item is malformed except for its name. Invariant: a subset of `present`.
    malformed: HashSet<ObjectKey>,
    changed: Vec<AnyObject>,
    /// Where in `changed` an object is, so that a later item of the same key replaces an earlier one.
    at: HashMap<ObjectKey, usize>,
    /// The item before, if it could be read.
    last: Option<ObjectKey>,
    /// Whether items have come in key order so far.
    ordered: bool,
    /// Where unreadable items stand.
    gaps: Vec<Gap>,
    /// Whether the last gap waits for the item after it.
    gap_open: bool,
}

impl Default for Staged {
    fn default() -> Self {
        Self {
            present: HashSet::new(),
            malformed: HashSet::new(),
            changed: Vec::new(),
            at: HashMap::new(),
            last: None,
            ordered: true,
            gaps: Vec::new(),
            gap_open: false,
        }
    }
}

impl Staged {
    /// How many distinct objects the list has so far.
    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }

    /// The list has an object in a state that is known.
    pub(crate) fn note(&mut self, object: &AnyObject) {
        // An earlier item of the same key was news; the later one counts, and there is nothing new about it.
        self.at.remove(object.key());
        self.follow(object.key());
        self.malformed.remove(object.key());
        self.present.insert(object.key().clone());
    }

    /// The list has an object in a state that is news.
    pub(crate) fn insert(&mut self, object: AnyObject) {
        let key = object.key().clone();
        self.follow(&key);
        self.malformed.remove(&key);
        self.present.insert(key.clone());
        match self.at.get(&key) {
            Some(&at) => self.changed[at] = object,
            None => {
                self.at.insert(key, self.changed.len());
                self.changed.push(object);
            }
        }
    }

    fn follow(&mut self, key: &ObjectKey) {
        self.ordered &= self.last.as_ref().is_none_or(|last| last < key);
        if std::mem::take(&mut self.gap_open)
            && let Some((_, end)) = self.gaps.last_mut()
        {
            *end = Some(key.clone());
        }
        self.last = Some(key.clone());
    }

    /// The object was deleted while the list was still streaming in.
    pub(crate) fn remove(&mut self, key: &ObjectKey) {
        self.present.remove(key);
        self.malformed.remove(key);
        // Its entry in `changed` stays, so that the other positions hold; without a place in `at` it is skipped.
        self.at.remove(key);
    }

    /// An item that cannot be read stands here; `key` if that much of it can be.
    pub(crate) fn unreadable(&mut self, key: Option<&ObjectKey>) {
        if let Some(key) = key {
            self.follow(key);
            self.present.insert(key.clone());
            self.malformed.insert(key.clone());
        } else if !std::mem::replace(&mut self.gap_open, true) {
            self.gaps.push((self.last.clone(), None));
        }
    }

    /// Whether the list shows the state of an object.
    pub(super) fn shows(&self, key: &ObjectKey) -> bool {
        self.present.contains(key) && !self.malformed.contains(key)
    }

    /// Whether the list shows that an object is gone.
    pub(super) fn lacks(&self, key: &ObjectKey) -> bool {
        let could_be = |(after, before): &Gap| {
            after.as_ref().is_none_or(|after| after < key)
                && before.as_ref().is_none_or(|before| key < before)
        };
        let open = !self.gaps.is_empty() && (!self.ordered || self.gaps.iter().any(could_be));
        !open && !self.present.contains(key)
    }

    /// What is news, in the order of the list.
    pub(super) fn into_changed(self) -> impl Iterator<Item = AnyObject> {
        let Self { changed, at, .. } = self;
        let current = move |(i, object): &(usize, AnyObject)| at.get(object.key()) == Some(i);
        changed.into_iter().enumerate().filter(current).map(|(_, object)| object)
    }
}
