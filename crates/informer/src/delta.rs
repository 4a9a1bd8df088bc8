//! What can happen to an object on its way into the cache.

use kube_informer_wire::{Object, ObjectKey};
use serde_json::Value;
use std::fmt;

/// An object whose content nobody has asked for yet.
pub(crate) type AnyObject = Object<Value>;

/// The end of an object, as far as it is known.
pub enum Deleted<T> {
    /// The deletion was seen. The object is its final state; its version is that of the deletion.
    Seen(Object<T>),
    /// The deletion was missed: the object was gone when the collection was listed again, or another object of
    /// the same name had taken its place.
    FinalStateUnknown {
        /// The key of the object.
        key: ObjectKey,
        /// The newest state that had been seen; its true final state may differ.
        last_known: Object<T>,
    },
}

impl<T> Deleted<T> {
    /// The key of the object that is gone.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Seen(object) => object.key(),
            Self::FinalStateUnknown { key, .. } => key,
        }
    }

    /// The final state, or the newest one that was seen.
    pub fn object(&self) -> &Object<T> {
        match self {
            Self::Seen(object) => object,
            Self::FinalStateUnknown { last_known, .. } => last_known,
        }
    }

    /// Whether [`object`](Self::object) may not be the final state.
    pub fn is_final_state_unknown(&self) -> bool {
        matches!(self, Self::FinalStateUnknown { .. })
    }

    /// The same, read as another type.
    pub fn cast<U>(&self) -> Deleted<U> {
        match self {
            Self::Seen(object) => Deleted::Seen(object.cast()),
            Self::FinalStateUnknown { key, last_known } => {
                Deleted::FinalStateUnknown { key: key.clone(), last_known: last_known.cast() }
            }
        }
    }

    pub(crate) fn unknown(last_known: Object<T>) -> Self {
        Self::FinalStateUnknown { key: last_known.key().clone(), last_known }
    }
}

impl<T> Clone for Deleted<T> {
    fn clone(&self) -> Self {
        self.cast()
    }
}

impl<T> fmt::Debug for Deleted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seen(object) => write!(f, "Seen({object:?})"),
            Self::FinalStateUnknown { last_known, .. } => write!(f, "FinalStateUnknown({last_known:?})"),
        }
    }
}

/// One step in the life of an object, as the queue between reflector and store holds it.
#[derive(Debug, Clone)]
pub(crate) enum Delta {
    /// The watch reported a new object.
    Added(AnyObject),
    /// The watch reported a change.
    Updated(AnyObject),
    /// The watch reported the end, or a list no longer has the object.
    Deleted(Deleted<Value>),
    /// A list shows the object in a state not known before.
    Replaced(AnyObject),
    /// Nothing happened; a resync is due.
    Sync(AnyObject),
}

impl Delta {
    /// The newest state this step carries, whether the object is gone or not.
    pub(crate) fn object(&self) -> &AnyObject {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => {
                object
            }
            Self::Deleted(deleted) => deleted.object(),
        }
    }
}
