//! What of an object matters to those who look after it.

use serde::{Deserialize, Deserializer};

use crate::storage::Stored;

/// Set on an object whose dependents shall stay.
pub(super) const ORPHAN: &str = "orphan";
/// Set on an object whose dependents go first.
pub(super) const FOREGROUND: &str = "foregroundDeletion";

/// An object as a member of the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Node {
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

/// `null` is as good as nothing.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

#[derive(Deserialize)]
struct Whole {
    metadata: Node,
}

impl Node {
    /// `None` for what is no object.
    pub(super) fn read(stored: &Stored) -> Option<Self> {
        let mut json = Vec::with_capacity(stored.document.encoded_len());
        stored.document.write(None, stored.revision, &mut json);
        serde_json::from_slice::<Whole>(&json).ok().map(|whole| whole.metadata)
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|f| f == finalizer)
    }

    /// It is going and its dependents stay.
    pub(super) fn is_orphaning(&self) -> bool {
        self.is_deleting() && self.has(ORPHAN)
    }

    /// It is going and waits for its dependents.
    pub(super) fn waits_for_dependents(&self) -> bool {
        self.is_deleting() && self.has(FOREGROUND)
    }

    /// It has been given time to stop, and nothing else holds it.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_deleting()
            && self.finalizers.is_empty()
            && self.deletion_grace_period_seconds.is_some_and(|seconds| seconds > 0)
    }

    /// How its own dependents shall fare if it has to go.
    pub(super) fn policy(&self) -> &'static str {
        match (self.has(ORPHAN), self.has(FOREGROUND)) {
            (true, _) => "Orphan",
            (false, true) => "Foreground",
            (false, false) => "Background",
        }
    }
}
