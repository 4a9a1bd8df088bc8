//! A list that is being received.

use crate::delta::AnyObject;
use hashbrown::{HashMap, HashSet};
use kube_informer_wire::ObjectKey;

/// The keys before and after a malformed item; `None` if there is none.
type Gap = (Option<ObjectKey>, Option<ObjectKey>);

/// A list that is being received: its keys, and those of its objects whose state is not known.
///
/// An item without a readable name may be any object that the list seems to lack. If the list is in key order, as
/// servers send it, the item can only be an object between its neighbours. Such an object keeps its last known state,
/// because a delete that did not happen is worse than a stale state.
#[derive(Debug)]
pub(crate) struct Staged {
    present: HashSet<ObjectKey>,
    /// Objects of `present` whose newest item is malformed except for its name. Invariant: a subset of `present`.
    malformed: HashSet<ObjectKey>,
    changed: Changed,
    /// The item before, if its name was readable.
    last: Option<ObjectKey>,
    /// Whether items have come in key order so far.
    ordered: bool,
    /// Where items without a readable name are.
    gaps: Vec<Gap>,
    /// Whether the item after the last gap has yet to come.
    gap_open: bool,
    /// How many views had been added when the list began.
    views: u64,
}

/// Objects in the order of a list, the last one of each key.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// Replaced and removed objects stay, so that the places of the others do not change.
    objects: Vec<AnyObject>,
    /// The place of each object in `objects`.
    at: HashMap<ObjectKey, usize>,
}

impl Changed {
    /// Objects of which no two have the same key.
    pub(super) fn of(objects: Vec<AnyObject>) -> Self {
        let at = objects.iter().enumerate().map(|(at, object)| (object.key().clone(), at)).collect();
        Self { objects, at }
    }

    fn insert(&mut self, object: AnyObject) {
        match self.at.get(object.key()) {
            Some(&at) => self.objects[at] = object,
            None => {
                self.at.insert(object.key().clone(), self.objects.len());
                self.objects.push(object);
            }
        }
    }

    fn remove(&mut self, key: &ObjectKey) {
        self.at.remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.at.len()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&AnyObject> {
        self.at.get(key).map(|&at| &self.objects[at])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &AnyObject> {
        // Most lists show each object once: then their objects are not looked up.
        let all = self.objects.len() == self.at.len();
        let is_current =
            move |(at, object): &(usize, &AnyObject)| all || self.at.get(object.key()) == Some(at);
        self.objects.iter().enumerate().filter(is_current).map(|(_, object)| object)
    }
}

impl Default for Staged {
    fn default() -> Self {
        Self {
            present: HashSet::new(),
            malformed: HashSet::new(),
            changed: Changed::default(),
            last: None,
            ordered: true,
            gaps: Vec::new(),
            gap_open: false,
            views: 0,
        }
    }
}

impl Staged {
    /// A list that begins when this many views have been added.
    pub(crate) fn begin(views: u64) -> Self {
        Self { views, ..Self::default() }
    }

    /// How many views had been added when the list began: its objects may lack later ones.
    pub(super) fn views(&self) -> u64 {
        self.views
    }

    /// How many distinct objects the list has so far.
    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }

    /// Adds an object in the state that is known.
    pub(crate) fn note(&mut self, object: &AnyObject) {
        // The last item of a key counts: an earlier one with another state is discarded.
        self.changed.remove(object.key());
        self.follow(object.key());
        self.malformed.remove(object.key());
        self.present.insert(object.key().clone());
    }

    /// Adds an object in another state than the known one.
    pub(crate) fn insert(&mut self, object: AnyObject) {
        let key = object.key().clone();
        self.follow(&key);
        self.malformed.remove(&key);
        self.present.insert(key);
        self.changed.insert(object);
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
        self.changed.remove(key);
    }

    /// Adds a malformed item, with its key if that is readable.
    pub(crate) fn malformed(&mut self, key: Option<&ObjectKey>) {
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

    /// Whether the list shows that an object does not exist.
    pub(super) fn lacks(&self, key: &ObjectKey) -> bool {
        let could_be = |(after, before): &Gap| {
            after.as_ref().is_none_or(|after| after < key)
                && before.as_ref().is_none_or(|before| key < before)
        };
        let open = !self.gaps.is_empty() && (!self.ordered || self.gaps.iter().any(could_be));
        !open && !self.present.contains(key)
    }

    /// Takes out the objects in another state than the known one.
    pub(super) fn take_changed(&mut self) -> Changed {
        std::mem::take(&mut self.changed)
    }
}
