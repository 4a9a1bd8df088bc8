//! The metadata of objects that controllers look at.

use std::cell::OnceCell;
use std::sync::Arc;

use serde::{Deserialize, Deserializer};

use crate::storage::{Change, Stored};
use crate::verbs::delete::PropagationPolicy;

/// The finalizer of an object whose dependents stay.
pub(super) const ORPHAN: &str = "orphan";
/// The finalizer of an object whose dependents are deleted first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// The metadata of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub(super) uid: String,
    pub(super) namespace: String,
    pub(super) name: String,
    #[serde(rename = "ownerReferences", deserialize_with = "or_empty")]
    pub(super) owners: Vec<Owner>,
    #[serde(deserialize_with = "or_empty")]
    pub(super) finalizers: Vec<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
}

/// A reference to an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    pub(super) uid: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Whether the owner waits for this dependent when it is deleted in the foreground.
    block_owner_deletion: Option<bool>,
}

impl Owner {
    pub(super) fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

/// `null` is an empty list.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct Whole {
    metadata: Metadata,
}

impl Metadata {
    /// `None` if the document is not an object.
    pub(super) fn read(stored: &Stored) -> Option<Self> {
        let mut json = Vec::with_capacity(stored.document.encoded_len());
        stored.document.write(None, stored.revision, &mut json);
        serde_json::from_slice::<Whole>(&json).ok().map(|whole| whole.metadata)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub(super) fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| f == finalizer)
    }

    /// Whether it is being deleted and its dependents stay.
    pub(super) fn is_orphaning(&self) -> bool {
        self.is_deleting() && self.has(ORPHAN)
    }

    /// Whether it is being deleted and waits for its dependents.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_deleting() && self.has(FOREGROUND)
    }

    /// Whether a grace period, and nothing else, holds its deletion.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_deleting()
            && self.finalizers.is_empty()
            && self.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
    }

    /// The propagation policy that its finalizers request.
    pub(super) fn policy(&self) -> PropagationPolicy {
        match (self.has(ORPHAN), self.has(FOREGROUND)) {
            (true, _) => PropagationPolicy::Orphan,
            (false, true) => PropagationPolicy::Foreground,
            (false, false) => PropagationPolicy::Background,
        }
    }
}

/// A change of the store, with metadata that is decoded on first use.
pub(super) struct Observation<'c> {
    change: &'c Change,
    metadata: OnceCell<Option<Metadata>>,
}

impl<'c> Observation<'c> {
    pub(super) fn new(change: &'c Change) -> Self {
        Self { change, metadata: OnceCell::new() }
    }

    pub(super) fn key(&self) -> &'c Arc<str> {
        self.change.key()
    }

    /// The object as it is now; `None` if it was removed.
    pub(super) fn current(&self) -> Option<&'c Arc<Stored>> {
        self.change.current.as_ref()
    }

    pub(super) fn is_removal(&self) -> bool {
        self.change.current.is_none()
    }

    /// The metadata of the object as it is now; `None` if it was removed.
    pub(super) fn metadata(&self) -> Option<&Metadata> {
        let read = || self.change.current.as_deref().and_then(Metadata::read);
        self.metadata.get_or_init(read).as_ref()
    }
}
