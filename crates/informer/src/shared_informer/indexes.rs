//! Adding indexes to an informer, and removing them.

use super::SharedInformer;
use crate::indexer::{Extract, Index, IndexMissing, NewIndex};
use kube_informer_wire::{DecodeError, FieldPath, FieldPathError, Object, Uid};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

/// An index that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The field never reaches the cache.
    #[error("the informer's transform drops {path}; index another field, or keep this one")]
    Dropped {
        /// The field.
        path: String,
    },
    /// The path cannot be read.
    #[error(transparent)]
    Path(#[from] FieldPathError),
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
}

impl<T: 'static> SharedInformer<T> {
    /// An index over anything that can be computed from an object: `Some`, a `Vec` or an array of values.
    ///
    /// The function should be cheap and must always return the same values for the same object; it reads the
    /// identity, or content through [`Object::view`] (then prefer [`index_view`](Self::index_view), which also
    /// counts objects that cannot be decoded).
    ///
    /// May be called before and after the start; the index covers everything from the moment this returns. The function,
    /// and `Ord` of the values, are called without a lock and may use the informer. If they panic, the index omits the
    /// object, which is reported as [`InformerError::Index`](crate::InformerError::Index). A function that uses its own
    /// informer holds a [`WeakInformer`](crate::WeakInformer): the informer owns the function.
    pub fn index<V, I>(
        &self,
        values: impl Fn(&Object<T>) -> I + Send + Sync + 'static,
    ) -> Result<Index<V>, IndexError>
    where
        V: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        self.add_function(move |object| Ok(values(&object.cast()).into_iter().collect()))
    }

    /// An index over a few fields, decoded as `W`. It omits objects that cannot be decoded as `W`.
    pub fn index_view<W, V, I>(
        &self,
        values: impl Fn(&W) -> I + Send + Sync + 'static,
    ) -> Result<Index<V>, IndexError>
    where
        W: DeserializeOwned,
        V: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        self.add_function(move |object| Ok(values(&object.view::<W>()?).into_iter().collect()))
    }

    /// An index over the text of a field, such as `spec.nodeName`, `spec.containers[*].image` or
    /// `metadata.annotations[example.com/team]`. Objects without it are left out. The fields of all such
    /// indexes are read in one pass over the bytes of an object. A field that cannot be decoded hides the object from
    /// the index over that field only.
    ///
    /// Equal paths share one index: the second call returns the handle of the first.
    pub fn index_field(&self, path: &str) -> Result<Index<String>, IndexError> {
        let field: FieldPath = path.parse()?;
        if self.core.transform.drops(&field) {
            return Err(IndexError::Dropped { path: path.to_owned() });
        }
        self.add_index(&NewIndex::Field(field, |found| found.iter().filter_map(text).collect()))
    }

    /// An index over the value of a label. Objects without it are left out.
    pub fn index_label(&self, label: &str) -> Result<Index<String>, IndexError> {
        let label = label.to_owned();
        self.index(move |object: &Object<T>| object.labels().get(&label).map(str::to_owned))
    }

    /// An index over the uid of the controlling owner.
    pub fn index_controller(&self) -> Result<Index<Uid>, IndexError> {
        self.index(|object: &Object<T>| object.controller().map(|owner| owner.uid))
    }

    /// Removes an index. One that was added several times, as equal [`index_field`](Self::index_field)s are, stays until it
    /// is removed as often. Snapshots that were taken before keep it.
    pub fn remove_index<V>(&self, index: Index<V>) -> Result<(), IndexMissing> {
        let controller = &self.core.controller;
        controller.indexer.remove_index(index.id, || controller.between_batches())
    }

    /// Number of objects that an index omits because it cannot read them: see
    /// [`CacheSnapshot::omitted_by`](crate::CacheSnapshot::omitted_by).
    pub fn omitted_by<V>(&self, index: &Index<V>) -> Result<usize, IndexMissing> {
        self.lister().snapshot().omitted_by(index)
    }

    fn add_function<V: Ord + Clone + Send + Sync + 'static>(
        &self,
        values: impl Fn(&Object<Value>) -> Result<Vec<V>, DecodeError> + Send + Sync + 'static,
    ) -> Result<Index<V>, IndexError> {
        self.add_index(&NewIndex::Function(Extract::Function(Arc::new(move |object| values(object).ok()))))
    }

    fn add_index<V: Ord + Clone + Send + Sync + 'static>(
        &self,
        new: &NewIndex<V>,
    ) -> Result<Index<V>, IndexError> {
        if self.is_stopped() {
            return Err(IndexError::Stopped);
        }
        let controller = &self.core.controller;
        let (id, panicked) = controller.indexer.add_index(new, || controller.between_batches());
        let telemetry = self.core.tasks.supervision().telemetry();
        panicked.iter().for_each(|key| telemetry.index_panicked(key));
        Ok(Index::new(id))
    }
}

/// A value as an index files it: a text as it is, anything else as JSON, nothing for null.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
