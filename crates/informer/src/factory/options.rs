//! Options by which a factory distinguishes informers.

use crate::{Scope, Transform};
use kube_informer_wire::{FieldSelector, LabelSelector, ShardSelector, Storage};

/// The objects an informer covers, and how they are stored. Requests with equal options share an informer.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InformerOptions {
    /// The namespaces.
    pub scope: Scope,
    /// A label selector, such as `app=cart`.
    pub label_selector: LabelSelector,
    /// A field selector, such as `spec.nodeName=node-1`.
    pub field_selector: FieldSelector,
    /// Shards of the uids.
    pub shard_selector: ShardSelector,
    /// Only the metadata of the objects.
    pub metadata_only: bool,
    /// JSON also for kinds that have a protobuf encoding.
    pub json_only: bool,
    /// The transform of every object before it is stored.
    pub transform: Transform,
    /// Where the content of the objects is kept.
    pub storage: Storage,
}

impl InformerOptions {
    /// Options for all objects of a kind, whole and unchanged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the namespaces.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the label selector.
    #[must_use]
    pub fn label_selector(mut self, selector: LabelSelector) -> Self {
        self.label_selector = selector;
        self
    }

    /// Sets the field selector.
    #[must_use]
    pub fn field_selector(mut self, selector: FieldSelector) -> Self {
        self.field_selector = selector;
        self
    }

    /// Sets the shards to cover. Objects of other shards are never cached, also if the server does not support the selector and
    /// sends them.
    #[must_use]
    pub fn shard_selector(mut self, selector: ShardSelector) -> Self {
        self.shard_selector = selector;
        self
    }

    /// Sets whether only the metadata of the objects is cached.
    #[must_use]
    pub fn metadata_only(mut self, metadata_only: bool) -> Self {
        self.metadata_only = metadata_only;
        self
    }

    /// Sets whether objects are requested in JSON, also those that have a protobuf encoding.
    #[must_use]
    pub fn json_only(mut self, json_only: bool) -> Self {
        self.json_only = json_only;
        self
    }

    /// Sets the transform.
    #[must_use]
    pub fn transform(mut self, transform: Transform) -> Self {
        self.transform = transform;
        self
    }

    /// Sets where the content of the objects is kept.
    #[must_use]
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// Whether requests with these options share an informer.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.scope == other.scope
            && self.label_selector == other.label_selector
            && self.field_selector == other.field_selector
            && self.shard_selector == other.shard_selector
            && self.metadata_only == other.metadata_only
            && self.json_only == other.json_only
            && self.transform.is_same(&other.transform)
            && self.storage == other.storage
    }
}
