//! Finding objects by something other than their name.

use crate::delta::AnyObject;
use imbl::OrdMap;
use kube_informer_wire::{FieldPath, ObjectKey};
use serde_json::Value;
use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
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
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), values: PhantomData }
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

/// The values of an object; `None` if it cannot be read.
pub(crate) type ValuesOf<V> = Arc<dyn Fn(&AnyObject) -> Option<Vec<V>> + Send + Sync>;

/// How the values that an object has in an index are found.
pub(crate) enum Extract<V> {
    /// By a function of the object; `None` if it cannot be read. Must not panic.
    Object(ValuesOf<V>),
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
    pub(crate) fields: Option<Vec<Vec<Value>>>,
}

/// An index whose value type is known only to its handle.
pub(crate) trait AnyIndex: Send + Sync {
    fn id(&self) -> u64;
    /// Follows a change of one object: forgets the old state by its key, takes in the new one.
    fn update(&mut self, old: Option<&ObjectKey>, new: Option<&Indexed<'_>>);
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

/// A sorted list of (value, key) with the object beside it: one tree, whatever the number of values.
#[derive(Clone)]
pub(crate) struct TypedIndex<V: Ord + Clone> {
    id: u64,
    extract: Extract<V>,
    /// Where in [`Indexed::fields`] the values of this index are.
    slot: usize,
    entries: OrdMap<(V, ObjectKey), AnyObject>,
    /// What each object was filed under, so that its old content need not be read again; `None` if unreadable.
    filed: OrdMap<ObjectKey, Option<Arc<[V]>>>,
    unreadable: usize,
}

impl<V: Ord + Clone + Send + Sync + 'static> TypedIndex<V> {
    pub(crate) fn new(handle: Index<V>, extract: Extract<V>) -> Self {
        Self { id: handle.id, extract, slot: 0, entries: OrdMap::new(), filed: OrdMap::new(), unreadable: 0 }
    }

    /// The objects filed under a value, in the server's order.
    pub(crate) fn get<'a>(&'a self, value: &'a V) -> impl Iterator<Item = &'a AnyObject> {
        // The empty key is below every other one.
        let start = (value.clone(), ObjectKey::cluster(""));
        self.entries.range(start..).take_while(move |((v, _), _)| v == value).map(|(_, object)| object)
    }

    /// The distinct values, in order.
    pub(crate) fn values(&self) -> Vec<V> {
        let mut values: Vec<V> = Vec::new();
        for ((value, _), _) in &self.entries {
            if values.last() != Some(value) {
                values.push(value.clone());
            }
        }
        values
    }

    fn unfile(&mut self, key: &ObjectKey) {
        match self.filed.remove(key) {
            Some(Some(values)) => {
                for value in values.iter() {
                    self.entries.remove(&(value.clone(), key.clone()));
                }
            }
            Some(None) => self.unreadable -= 1,
            None => {}
        }
    }

    fn values_of(&self, indexed: &Indexed<'_>) -> Option<Vec<V>> {
        match &self.extract {
            Extract::Object(function) => function(indexed.object),
            Extract::Field(_, values) => Some(values(indexed.fields.as_ref()?.get(self.slot)?)),
        }
    }

    fn file(&mut self, indexed: &Indexed<'_>) {
        let object = indexed.object;
        let key = object.key().clone();
        match self.values_of(indexed) {
            Some(mut values) => {
                values.sort();
                values.dedup();
                for value in &values {
                    self.entries.insert((value.clone(), key.clone()), object.clone());
                }
                if !values.is_empty() {
                    self.filed.insert(key, Some(values.into()));
                }
            }
            None => {
                self.unreadable += 1;
                self.filed.insert(key, None);
            }
        }
    }
}

impl<V: Ord + Clone + Send + Sync + 'static> AnyIndex for TypedIndex<V> {
    fn id(&self) -> u64 {
        self.id
    }

    fn update(&mut self, old: Option<&ObjectKey>, new: Option<&Indexed<'_>>) {
        if let Some(old) = old {
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
