//! Changes of objects between the reflector and the store.

use kube_informer_wire::{Object, ObjectKey};
use serde_json::Value;
use std::fmt;

/// An object of any type, with its content not decoded.
pub(crate) type AnyObject = Object<Value>;

/// A deleted object.
pub enum Deleted<T> {
    /// The watch reported the deletion. The object is its final state; its version is that of the deletion.
    Seen(Object<T>),
    /// The deletion was missed: a relist no longer had the object, or had it recreated with a new uid.
    FinalStateUnknown {
        /// The key of the object.
        key: ObjectKey,
        /// The newest known state; the final state may differ.
        last_known: Object<T>,
    },
}

impl<T> Deleted<T> {
    /// The key of the deleted object.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Seen(object) => object.key(),
            Self::FinalStateUnknown { key, .. } => key,
        }
    }

    /// The final state, or the newest known one.
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

    /// The same object, read as another type.
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

/// A change of an object in the queue between reflector and store.
#[derive(Debug, Clone)]
pub(crate) enum Delta {
    /// The watch reported a new object.
    Added(AnyObject),
    /// The watch reported a change.
    Updated(AnyObject),
    /// The watch reported the deletion, or a list no longer has the object.
    Deleted(Deleted<Value>),
    /// A list has the object in another state than the known one.
    Replaced(AnyObject),
    /// A resync of an unchanged object.
    Sync(AnyObject),
}

impl Delta {
    /// The state of the object, final if it is deleted.
    pub(crate) fn object(&self) -> &AnyObject {
        match self {
            Self::Added(object) | Self::Updated(object) | Self::Replaced(object) | Self::Sync(object) => {
                object
            }
            Self::Deleted(deleted) => deleted.object(),
        }
    }
}
