//! Filing many objects in an index at once.

use super::{AnyIndex, Extract, Filed, Interrupted, Panicked, Place, TypedIndex};
use crate::indexer::{
    fields::Indexed,
    keyed::Keyed,
    sorted::SetBuilder,
    values::{Shared, ValueId},
};
use hashbrown::{HashMap, HashSet};
use std::vec::IntoIter;

/// Maximum number of shared values whose places a [`Fill`] remembers.
const SHARED: usize = 16_384;

/// An index in which many objects are filed at once, with the same result as if they were filed one by one.
pub(crate) trait FillIndex: Send {
    /// Reads the values of an object, which must have another key than those before it. If it shares the values of its field
    /// with one of them, they are not read again.
    fn add(&mut self, new: &Indexed<'_>) -> Result<(), Panicked>;
    /// Sorts the objects that were added by their values, once. The time that this takes depends on their number.
    /// `ascending` says whether they were added in the order of keys.
    fn sort(&mut self, ascending: bool);
    /// Files up to `max` objects under their values, and returns whether some are left.
    fn file(&mut self, max: usize) -> bool;
    /// Returns the index, once no object is left to be filed.
    fn finish(self: Box<Self>) -> Box<dyn AnyIndex>;
}

pub(super) struct Fill<V> {
    /// Its trees are empty until all objects are filed.
    index: TypedIndex<V>,
    /// In the order in which the objects were added, until they are sorted.
    places: Vec<Place>,
    /// The places by value that are not in `filed` yet.
    sorted: IntoIter<Place>,
    filed: SetBuilder<Place>,
    /// The values that objects are filed under, by the address of the values of the field that these objects share. Invariant:
    /// an object in `places` keeps the latter alive.
    shared: HashMap<usize, Filed<V>>,
    returned: SetBuilder<Keyed<Filed<V>>>,
    omitted: SetBuilder<Keyed>,
    /// The values of the first `counted` places: looked at only after a panic.
    used: HashSet<ValueId>,
    counted: usize,
    /// Whether `sorted` is in the order of places.
    ascending: bool,
}

impl<V: Ord + Send + Sync + 'static> Fill<V> {
    pub(super) fn new(index: &TypedIndex<V>, objects: usize) -> Self {
        let values = index.values.clone();
        Self {
            index: TypedIndex { values, ..TypedIndex::new(index.extract.clone()) },
            places: Vec::with_capacity(objects),
            sorted: Vec::new().into_iter(),
            filed: SetBuilder::new(),
            shared: HashMap::new(),
            returned: SetBuilder::new(),
            omitted: SetBuilder::new(),
            used: HashSet::new(),
            counted: 0,
            ascending: false,
        }
    }

    /// The values of an object; `None` if it cannot be read.
    fn read(&mut self, new: &Indexed<'_>) -> Result<Option<Filed<V>>, Panicked> {
        let shared = match self.index.extract {
            Extract::Field(slot, _) => new.shared_address(slot),
            Extract::Function(_) => None,
        };
        if let Some(filed) = shared.and_then(|address| self.shared.get(&address)) {
            return Ok(Some(filed.clone()));
        }
        let read = self.index.extract.read(new, &mut self.index.values);
        let filed = read.map_err(|Interrupted(values)| {
            self.remove_unused(&values);
            Panicked
        })?;
        if let (Some(address), Some(filed)) = (shared, &filed)
            && !filed.values().is_empty()
            && self.shared.len() < SHARED
        {
            self.shared.insert(address, filed.clone());
        }
        Ok(filed)
    }

    /// Removes the values that no object has.
    fn remove_unused(&mut self, values: &[Shared<V>]) {
        self.used.extend(self.places[self.counted..].iter().map(|place| place.value));
        self.counted = self.places.len();
        let unused = values.iter().filter(|value| !self.used.contains(&value.id()));
        unused.for_each(|value| self.index.values.remove(value));
    }
}

impl<V: Ord + Send + Sync + 'static> FillIndex for Fill<V> {
    fn add(&mut self, new: &Indexed<'_>) -> Result<(), Panicked> {
        let read = self.read(new);
        let outcome = read.as_ref().map(|_| ()).map_err(|panicked| *panicked);
        let Ok(Some(filed)) = read else {
            self.omitted.push(Keyed::new(new.object.clone()));
            return outcome;
        };
        for value in filed.values() {
            self.places.push(Place { value: value.id(), object: Keyed::new(new.object.clone()) });
        }
        if matches!(self.index.extract, Extract::Function(_)) && !filed.values().is_empty() {
            self.returned.push(Keyed { object: new.object.clone(), with: filed });
        }
        outcome
    }

    fn sort(&mut self, ascending: bool) {
        let mut places = std::mem::take(&mut self.places);
        // Stable: the objects of a value stay in the order in which they were added.
        places.sort_by_key(|place| place.value);
        self.sorted = places.into_iter();
        self.ascending = ascending;
    }

    fn file(&mut self, max: usize) -> bool {
        for place in self.sorted.by_ref().take(max) {
            match self.ascending {
                true => self.filed.push_greater(place),
                false => self.filed.push(place),
            }
        }
        self.sorted.len() > 0
    }

    fn finish(self: Box<Self>) -> Box<dyn AnyIndex> {
        let Self { mut index, filed, returned, omitted, .. } = *self;
        (index.places, index.returned, index.omitted) = (filed.finish(), returned.finish(), omitted.finish());
        Box::new(index)
    }
}
