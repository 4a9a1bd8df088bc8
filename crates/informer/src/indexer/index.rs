//! Finding objects by something other than their name.

mod fill;

pub(crate) use fill::FillIndex;

use super::{
    fields::{Indexed, Slot},
    keyed::Keyed,
    sorted::SortedSet,
    values::{Shared, ValueId, Values, drop_value},
};
use crate::delta::AnyObject;
use equivalent::{Comparable, Equivalent};
use fill::Fill;
use kube_informer_wire::ObjectKey;
use serde_json::Value;
use std::{
    any::Any,
    borrow::Borrow,
    cmp::Ordering,
    fmt,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

/// A handle on an index with values of type `V`: made by an informer, used with its listers.
pub struct Index<V> {
    pub(crate) id: IndexId,
    values: PhantomData<fn() -> V>,
}

/// Identifies an index in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexId {
    /// The store it belongs to.
    pub(super) store: u64,
    /// Its number among the indexes of that store, in the order in which they were added.
    pub(super) number: u64,
}

/// A state of a cache does not have an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexMissing {
    /// The index is newer than the snapshot.
    #[error("the index was added after the snapshot was taken; take another snapshot")]
    AddedLater,
    /// The index was removed.
    #[error("the index was removed")]
    Removed,
    /// The index was made by another informer.
    #[error("the index belongs to another informer")]
    Foreign,
}

impl<V> Index<V> {
    pub(crate) fn new(id: IndexId) -> Self {
        Self { id, values: PhantomData }
    }
}

impl<V> Clone for Index<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for Index<V> {}

impl<V> fmt::Debug for Index<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({})", self.id.number)
    }
}

/// The values of an object in an index; `None` if it cannot be decoded.
type ValuesOf<V> = dyn Fn(&AnyObject) -> Option<Vec<V>> + Send + Sync;

/// How the values of an object in an index are found.
pub(crate) enum Extract<V> {
    /// By a function of the object.
    Function(Arc<ValuesOf<V>>),
    /// From a field, which is read together with those of all other indexes in one pass.
    Field(Slot, fn(&[Value]) -> Vec<V>),
}

impl<V> Clone for Extract<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Function(function) => Self::Function(Arc::clone(function)),
            Self::Field(slot, values) => Self::Field(*slot, *values),
        }
    }
}

/// Code of the user panicked after these values of an object were found or added.
struct Interrupted<V>(Vec<Shared<V>>);

impl<V: Ord> Extract<V> {
    /// The values of a state, which are added to `known`; `None` if the state cannot be read.
    fn read(&self, new: &Indexed<'_>, known: &mut Values<V>) -> Result<Option<Filed<V>>, Interrupted<V>> {
        let values = match self {
            Self::Function(function) => catch_unwind(AssertUnwindSafe(|| function(new.object)))
                .map_err(|_| Interrupted(Vec::new()))?,
            Self::Field(slot, values) => new.values(*slot).map(values),
        };
        let Some(values) = values else { return Ok(None) };
        let mut filed = Vec::with_capacity(values.len());
        let mut values = values.into_iter();
        while let Some(value) = values.next() {
            let Ok(value) = known.get_or_insert(value) else {
                values.for_each(drop_value);
                return Err(Interrupted(filed));
            };
            filed.push(value);
        }
        Ok(Some(Filed::new(filed)))
    }
}

/// Code of the user panicked on an object, which the index therefore omits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Panicked;

/// An index whose value type is known only to its handle.
pub(crate) trait AnyIndex: Send + Sync {
    /// Follows a change of one object: forgets the old state, files the new one.
    fn update(&mut self, old: Option<&Indexed<'_>>, new: Option<&Indexed<'_>>) -> Result<(), Panicked>;
    /// Number of objects that this index omits because it cannot read them.
    fn omitted(&self) -> usize;
    /// Bytes on the heap, without those that values of types of the user have there.
    fn heap_size(&self) -> usize;
    fn clone_box(&self) -> Box<dyn AnyIndex>;
    /// Begins to file about this many objects at once. The index must not cover any object yet.
    fn begin_fill(&self, objects: usize) -> Box<dyn FillIndex>;
    fn as_any(&self) -> &dyn Any;
}

impl Clone for Box<dyn AnyIndex> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// An object under one of its values, in the order of keys.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    value: ValueId,
    object: Keyed,
}

/// A place that is looked for.
struct At<'a>(ValueId, &'a ObjectKey);

impl Equivalent<Place> for At<'_> {
    fn equivalent(&self, place: &Place) -> bool {
        self.compare(place) == Ordering::Equal
    }
}

impl Comparable<Place> for At<'_> {
    fn compare(&self, place: &Place) -> Ordering {
        self.0.cmp(&place.value).then_with(|| self.1.cmp(place.object.key()))
    }
}

/// The values of one object, each once. Most objects have one.
enum Filed<V> {
    One(Shared<V>),
    Many(Arc<[Shared<V>]>),
}

impl<V> Filed<V> {
    fn new(mut values: Vec<Shared<V>>) -> Self {
        values.sort_unstable_by_key(Shared::id);
        values.dedup_by_key(|value| value.id());
        match values.pop() {
            Some(only) if values.is_empty() => Self::One(only),
            last => Self::Many(values.into_iter().chain(last).collect()),
        }
    }

    fn values(&self) -> &[Shared<V>] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Many(values) => values,
        }
    }

    fn contains(&self, id: ValueId) -> bool {
        self.values().iter().any(|value| value.id() == id)
    }
}

impl<V> Clone for Filed<V> {
    fn clone(&self) -> Self {
        match self {
            Self::One(value) => Self::One(value.clone()),
            Self::Many(values) => Self::Many(Arc::clone(values)),
        }
    }
}

/// A sorted list of values and objects: two trees, whatever the number of values.
///
/// Code of the user decides about the values of an object and their order. A panic in it costs the object its place in
/// this index and nothing else: places are ordered by the id of the value, and an object is removed by the values that it
/// was filed under.
pub(crate) struct TypedIndex<V> {
    extract: Extract<V>,
    values: Values<V>,
    places: SortedSet<Place>,
    /// The values that a function returned for each object, so that it is not called again for the old state. The values of
    /// a field are kept with the object itself.
    returned: SortedSet<Keyed<Filed<V>>>,
    /// Objects that cannot be read.
    omitted: SortedSet<Keyed>,
}

impl<V: Ord + Send + Sync + 'static> TypedIndex<V> {
    pub(crate) fn new(extract: Extract<V>) -> Self {
        Self {
            extract,
            values: Values::new(),
            places: SortedSet::new(),
            returned: SortedSet::new(),
            omitted: SortedSet::new(),
        }
    }

    /// The objects filed under a value, in the server's order.
    pub(crate) fn get<Q: Ord + ?Sized>(&self, value: &Q) -> impl Iterator<Item = &AnyObject>
    where
        V: Borrow<Q>,
    {
        let id = self.values.get(value).map(Shared::id);
        id.into_iter().flat_map(|id| self.objects_of(id))
    }

    /// The distinct values, in order.
    pub(crate) fn values(&self) -> Vec<V>
    where
        V: Clone,
    {
        let used = self.values.iter().filter(|value| self.objects_of(value.id()).next().is_some());
        used.map(|value| value.value().clone()).collect()
    }

    fn objects_of(&self, id: ValueId) -> impl Iterator<Item = &AnyObject> {
        let places = self.places.after(|place| place.value < id);
        places.take_while(move |place| place.value == id).map(|place| place.object.object())
    }

    /// The values of a new state; `None` if it is omitted.
    fn read(&mut self, new: &Indexed<'_>) -> Result<Option<Filed<V>>, Panicked> {
        self.extract.read(new, &mut self.values).map_err(|Interrupted(values)| {
            values.iter().for_each(|value| self.remove_unused(value));
            Panicked
        })
    }

    /// The values that an old state is filed under.
    fn unfile(&mut self, old: &Indexed<'_>) -> Option<Filed<V>> {
        let key = old.object.key();
        if self.omitted.remove(key).is_some() {
            return None;
        }
        match &self.extract {
            Extract::Function(_) => self.returned.remove(key).map(|returned| returned.with),
            Extract::Field(slot, values) => {
                let Some(known) = old.values(*slot) else { return self.find_filed(key) };
                let known = values(known).into_iter();
                Some(Filed::new(known.filter_map(|value| self.values.get(&value).cloned()).collect()))
            }
        }
    }

    /// The values that an object is filed under, found by looking at all places: for content that could be read when it was
    /// filed, and cannot be read from its file any more.
    fn find_filed(&self, key: &ObjectKey) -> Option<Filed<V>> {
        let ids: Vec<_> = self.places.after(|_| false).filter(|place| place.object.key() == key).collect();
        let filed = self.values.iter().filter(|value| ids.iter().any(|place| place.value == value.id()));
        Some(Filed::new(filed.cloned().collect()))
    }

    fn remove_place(&mut self, value: &Shared<V>, key: &ObjectKey) {
        self.places.remove(&At(value.id(), key));
        self.remove_unused(value);
    }

    /// Removes a value that no object has.
    fn remove_unused(&mut self, value: &Shared<V>) {
        if self.objects_of(value.id()).next().is_none() {
            self.values.remove(value);
        }
    }

    /// Files an object in place of `old`, if that is filed under the same value.
    fn file(&mut self, filed: Filed<V>, object: &AnyObject, old: Option<&AnyObject>) {
        for value in filed.values() {
            let id = value.id();
            let is_old = |place: &Place| {
                place.value == id && old.is_some_and(|old| old.is_identical(place.object.object()))
            };
            self.places.replace(Place { value: id, object: Keyed::new(object.clone()) }, is_old);
        }
        if matches!(self.extract, Extract::Function(_)) && !filed.values().is_empty() {
            self.returned.insert(Keyed { object: object.clone(), with: filed });
        }
    }
}

impl<V: Ord + Send + Sync + 'static> AnyIndex for TypedIndex<V> {
    fn update(&mut self, old: Option<&Indexed<'_>>, new: Option<&Indexed<'_>>) -> Result<(), Panicked> {
        let same_values = match (&self.extract, old, new) {
            (Extract::Field(slot, _), Some(old), Some(new)) => old.shares_values(new, *slot),
            _ => false,
        };
        let before = old.filter(|_| !same_values).and_then(|old| self.unfile(old));
        let after = new.map_or(Ok(None), |new| self.read(new));
        let now = after.as_ref().ok().and_then(Option::as_ref);
        if let (Some(before), Some(old)) = (&before, old) {
            let left =
                before.values().iter().filter(|value| !now.is_some_and(|now| now.contains(value.id())));
            left.for_each(|value| self.remove_place(value, old.object.key()));
        }
        let (filed, outcome) = match after {
            Ok(filed) => (filed, Ok(())),
            Err(Panicked) => (None, Err(Panicked)),
        };
        match (filed, new) {
            (Some(filed), Some(new)) => self.file(filed, new.object, old.map(|old| old.object)),
            (None, Some(new)) => _ = self.omitted.insert(Keyed::new(new.object.clone())),
            (_, None) => {}
        }
        outcome
    }

    fn omitted(&self) -> usize {
        self.omitted.len()
    }

    fn heap_size(&self) -> usize {
        let trees = self.places.heap_size() + self.returned.heap_size() + self.omitted.heap_size();
        size_of::<Self>() + trees + self.values.heap_size()
    }

    fn clone_box(&self) -> Box<dyn AnyIndex> {
        Box::new(Self {
            extract: self.extract.clone(),
            values: self.values.clone(),
            places: self.places.clone(),
            returned: self.returned.clone(),
            omitted: self.omitted.clone(),
        })
    }

    fn begin_fill(&self, objects: usize) -> Box<dyn FillIndex> {
        Box::new(Fill::new(self, objects))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
