//! Adding indexes to an informer.

use super::SharedInformer;
use crate::indexer::{Extract, Index, TypedIndex};
use kube_informer_wire::{DecodeError, FieldPath, FieldPathError, Object, Uid};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

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
    /// The function should be cheap and must always give the same answer for the same object; it reads the
    /// identity, or content through [`Object::view`] (then prefer [`index_view`](Self::index_view), which also
    /// counts objects that cannot be read).
    ///
    /// May be called before and after the start; the index covers everything from the moment this returns.
    pub fn index<V, I>(
        &self,
        values: impl Fn(&Object<T>) -> I + Send + Sync + 'static,
    ) -> Result<Index<V>, IndexError>
    where
        V: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        self.add_index(self.guarded(move |object| Ok(values(&object.cast()).into_iter().collect())))
    }

    /// An index over a few fields, read as `W`. An object that cannot be read as `W` is left out.
    pub fn index_view<W, V, I>(
        &self,
        values: impl Fn(&W) -> I + Send + Sync + 'static,
    ) -> Result<Index<V>, IndexError>
    where
        W: DeserializeOwned,
        V: Ord + Clone + Send + Sync + 'static,
        I: IntoIterator<Item = V>,
    {
        self.add_index(self.guarded(move |object| Ok(values(&object.view::<W>()?).into_iter().collect())))
    }

    /// An index over the text of a field, such as `spec.nodeName`, `spec.containers[*].image` or
    /// `metadata.annotations[example.com/team]`. Objects without it are left out. The fields of all such
    /// indexes are read in one pass over the bytes of an object.
    pub fn index_field(&self, path: &str) -> Result<Index<String>, IndexError> {
        let field: FieldPath = path.parse()?;
        if self.core.transform.drops(&field) {
            return Err(IndexError::Dropped { path: path.to_owned() });
        }
        self.add_index(Extract::Field(field, |found| found.iter().filter_map(text).collect()))
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

    /// How many objects an index cannot read and leaves out.
    ///
    /// # Panics
    /// If the index was made by another informer.
    pub fn unreadable_in<V: Ord + Clone + Send + Sync + 'static>(&self, index: &Index<V>) -> usize {
        let snapshot = self.core.controller.indexer.snapshot();
        let index = snapshot.indexes().iter().find(|candidate| candidate.id() == index.id);
        index.expect("the index belongs to this informer").unreadable()
    }

    /// The function runs between two batches of the controller, which must survive it.
    fn guarded<V>(
        &self,
        values: impl Fn(&Object<Value>) -> Result<Vec<V>, DecodeError> + Send + Sync + 'static,
    ) -> Extract<V> {
        let telemetry = Arc::clone(self.core.tasks.supervision().telemetry());
        Extract::Object(Arc::new(move |object| {
            let values = catch_unwind(AssertUnwindSafe(|| values(object)));
            if values.is_err() {
                telemetry.index_panicked(object.key());
            }
            values.ok()?.ok()
        }))
    }

    fn add_index<V: Ord + Clone + Send + Sync + 'static>(
        &self,
        extract: Extract<V>,
    ) -> Result<Index<V>, IndexError> {
        if self.is_stopped() {
            return Err(IndexError::Stopped);
        }
        let handle = Index::new();
        let _between_batches = self.core.controller.between_batches();
        let mut store = self.core.controller.indexer.begin();
        store.add_index(Box::new(TypedIndex::new(handle, extract)));
        store.publish();
        Ok(handle)
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
