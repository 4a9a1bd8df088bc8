//! Finding objects by something other than their name.

use crate::delta::AnyObject;
use equivalent::{Comparable, Equivalent};
use imbl::OrdMap;
use kube_informer_wire::{FieldPath, ObjectKey};
use serde_json::Value;
use std::{
    any::Any,
    borrow::Cow,
    cmp::Ordering,
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A handle on an index with values of type `V`: made by an informer, used with its listers.
pub struct Index<V> {
    pub(crate) id: u64,
    values: PhantomData<fn() -> V>,
}

impl<V> Index<V> {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Relaxed), values: PhantomData }
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
        write!(f, "Index({})", self.id)
    }
}

/// The values an object has in an index; `None` if it cannot be read. Must not panic.
type ValuesOf<V> = dyn Fn(&AnyObject) -> Option<Vec<V>> + Send + Sync;

/// How the values that an object has in an index are found.
pub(crate) enum Extract<V> {
    /// By a function of the object.
    Object(Arc<ValuesOf<V>>),
    /// From a field, which is read together with those of all other indexes in one pass.
    Field(FieldPath, fn(&[Value]) -> Vec<V>),
}

impl<V> Clone for Extract<V> {
    fn clone(&self) -> Self {
        match self {
            Self::Object(function) => Self::Object(Arc::clone(function)),
            Self::Field(path, values) => Self::Field(path.clone(), *values),
        }
    }
}

/// An object with the fields that indexes want of it.
pub(crate) struct Indexed<'a> {
    pub(crate) object: &'a AnyObject,
    /// In the order in which the indexes over fields were added; `None` if the object cannot be read.
    pub(crate) fields: Option<Cow<'a, [Vec<Value>]>>,
}

impl Indexed<'_> {
    /// Whether both are one object with the very same fields, so that each index has it in the same places.
    fn has_fields_of(&self, other: &Self) -> bool {
        let same = match (&self.fields, &other.fields) {
            (Some(Cow::Borrowed(own)), Some(Cow::Borrowed(others))) => std::ptr::eq(*own, *others),
            _ => false,
        };
        same && self.object.key() == other.object.key()
    }
}

/// An index whose value type is known only to its handle.
pub(crate) trait AnyIndex: Send + Sync {
    fn id(&self) -> u64;
    /// Follows a change of one object: forgets the old state, takes in the new one.
    fn update(&mut self, old: Option<&Indexed<'_>>, new: Option<&Indexed<'_>>);
    /// The field this index is over, and `slot`, its number among such indexes, is set.
    fn take_slot(&mut self, slot: usize) -> Option<FieldPath>;
    /// Objects that this index cannot read and so leaves out.
    fn unreadable(&self) -> usize;
    fn clone_box(&self) -> Box<dyn AnyIndex>;
    fn as_any(&self) -> &dyn Any;
}

impl Clone for Box<dyn AnyIndex> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// Where an object is found: under one of its values, in the order of keys.
///
/// Does not hold the object itself: inner nodes of a tree keep copies of keys, also of those that are gone.
#[derive(Clone, PartialEq, Eq)]
struct Place<V> {
    /// One copy for all objects that have the value.
    value: Arc<V>,
    key: ObjectKey,
}

/// Where the objects of a value begin: below every place of that value.
struct First<'a, V>(&'a V);

impl<V: Ord> Equivalent<Place<V>> for First<'_, V> {
    fn equivalent(&self, _: &Place<V>) -> bool {
        false
    }
}

impl<V: Ord> Comparable<Place<V>> for First<'_, V> {
    fn compare(&self, place: &Place<V>) -> Ordering {
        self.0.cmp(&place.value).then(Ordering::Less)
    }
}

impl<V: Ord> Ord for Place<V> {
    fn cmp(&self, other: &Self) -> Ordering {
        let same = Arc::ptr_eq(&self.value, &other.value);
        let values = if same { Ordering::Equal } else { self.value.cmp(&other.value) };
        values.then_with(|| self.key.cmp(&other.key))
    }
}

impl<V: Ord> PartialOrd for Place<V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A sorted list of values and objects: one tree, whatever the number of values.
#[derive(Clone)]
pub(crate) struct TypedIndex<V: Ord + Clone> {
    id: u64,
    extract: Extract<V>,
    /// Where in [`Indexed::fields`] the values of this index are.
    slot: usize,
    entries: OrdMap<Place<V>, AnyObject>,
    /// What a function filed each object under, so that it need not be called again for the old state; `None` if
    /// unreadable. Fields are kept with the objects themselves.
    filed: OrdMap<ObjectKey, Option<Arc<[Arc<V>]>>>,
    unreadable: usize,
}

impl<V: Ord + Clone + Send + Sync + 'static> TypedIndex<V> {
    pub(crate) fn new(handle: Index<V>, extract: Extract<V>) -> Self {
        Self { id: handle.id, extract, slot: 0, entries: OrdMap::new(), filed: OrdMap::new(), unreadable: 0 }
    }

    /// The objects filed under a value, in the server's order.
    pub(crate) fn get<'a>(&'a self, value: &'a V) -> impl Iterator<Item = &'a AnyObject> {
        let mut entries = self.entries.range(First(value)..).peekable();
        // All objects of a value share it: it need be compared only once.
        let first = entries.peek().map(|(place, _)| &place.value).filter(|first| ***first == *value);
        let same = move |place: &Place<V>| first.is_some_and(|first| Arc::ptr_eq(first, &place.value));
        entries.take_while(move |(place, _)| same(place)).map(|(_, object)| object)
    }

    /// The distinct values, in order.
    pub(crate) fn values(&self) -> Vec<V> {
        let mut values: Vec<V> = Vec::new();
        for place in self.entries.keys() {
            if values.last() != Some(&*place.value) {
                values.push(V::clone(&place.value));
            }
        }
        values
    }

    fn unfile(&mut self, old: &Indexed<'_>) {
        let values = match &self.extract {
            Extract::Object(_) => match self.filed.remove(old.object.key()) {
                Some(values) => values,
                None => return,
            },
            Extract::Field(..) => {
                self.values_of(old).map(|values| values.into_iter().map(Arc::new).collect())
            }
        };
        match values {
            Some(values) => {
                for value in values.iter() {
                    let key = old.object.key().clone();
                    self.entries.remove(&Place { value: Arc::clone(value), key });
                }
            }
            None => self.unreadable -= 1,
        }
    }

    /// The values of an object, each once; `None` if it cannot be read.
    fn values_of(&self, indexed: &Indexed<'_>) -> Option<Vec<V>> {
        let mut values = match &self.extract {
            Extract::Object(function) => function(indexed.object)?,
            Extract::Field(_, values) => values(indexed.fields.as_ref()?.get(self.slot)?),
        };
        values.sort();
        values.dedup();
        Some(values)
    }

    /// The copy of a value that the objects filed under it share.
    fn shared(&self, value: V) -> Arc<V> {
        match self.entries.get_next(&First(&value)) {
            Some((next, _)) if *next.value == value => Arc::clone(&next.value),
            _ => Arc::new(value),
        }
    }

    fn file(&mut self, new: &Indexed<'_>) {
        let values = self
            .values_of(new)
            .map(|values| values.into_iter().map(|value| self.shared(value)).collect::<Arc<[Arc<V>]>>());
        for value in values.iter().flat_map(|values| values.iter()) {
            let place = Place { value: Arc::clone(value), key: new.object.key().clone() };
            self.entries.insert(place, new.object.clone());
        }
        self.unreadable += usize::from(values.is_none());
        let by_function = matches!(self.extract, Extract::Object(_));
        if by_function && values.as_ref().is_none_or(|values| !values.is_empty()) {
            self.filed.insert(new.object.key().clone(), values);
        }
    }
}

impl<V: Ord + Clone + Send + Sync + 'static> AnyIndex for TypedIndex<V> {
    fn id(&self) -> u64 {
        self.id
    }

    fn update(&mut self, old: Option<&Indexed<'_>>, new: Option<&Indexed<'_>>) {
        let by_field = matches!(self.extract, Extract::Field(..));
        let in_place = by_field && old.zip(new).is_some_and(|(old, new)| old.has_fields_of(new));
        if let Some(old) = old.filter(|_| !in_place) {
            self.unfile(old);
        }
        if let Some(new) = new {
            self.file(new);
        }
    }

    fn take_slot(&mut self, slot: usize) -> Option<FieldPath> {
        self.slot = slot;
        match &self.extract {
            Extract::Object(_) => None,
            Extract::Field(path, _) => Some(path.clone()),
        }
    }

    fn unreadable(&self) -> usize {
        self.unreadable
    }

    fn clone_box(&self) -> Box<dyn AnyIndex> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
