//! Requests to a watch cache. Options are already parsed and validated.

use std::sync::Arc;
use std::time::Duration;

use kube_informer_wire::{FieldSelector, LabelSelector};

use super::shards::ShardSelector;
use crate::storage::Stored;

/// The resource a cache serves.
#[derive(Debug, Clone)]
pub struct Resource {
    /// The prefix of its storage keys, such as `/pods/`.
    pub prefix: String,
    /// Whether keys have a namespace part.
    pub namespaced: bool,
    /// Whether reads are served from a cache. In Kubernetes, only `events` are not.
    pub cached: bool,
}

/// The part of a resource that a URL addresses.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Scope {
    /// All objects, of all namespaces.
    #[default]
    All,
    /// One namespace.
    Namespace(String),
    /// One object. The namespace is absent for cluster-scoped resources.
    Object {
        /// Its namespace.
        namespace: Option<String>,
        /// Its name.
        name: String,
    },
}

/// The `resourceVersion` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RevisionOption {
    /// Not given: the most recent state.
    #[default]
    Unset,
    /// `0`: any state.
    Any,
    /// A resource version.
    At(u64),
}

/// The `resourceVersionMatch` parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RevisionMatch {
    /// Exactly this version.
    Exact,
    /// This version or a newer one.
    NotOlderThan,
}

/// A LIST request.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// The scope of the URL.
    pub scope: Scope,
    /// The `resourceVersion` parameter.
    pub revision: RevisionOption,
    /// The `resourceVersionMatch` parameter.
    pub revision_match: Option<RevisionMatch>,
    /// The most objects to return; zero means no limit (as does a negative `limit` parameter).
    pub limit: usize,
    /// The continue token of the previous page.
    pub continue_token: Option<String>,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
    /// Only objects of these shards.
    pub shards: ShardSelector,
}

/// The response to a LIST.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListResponse {
    /// The objects, in key order.
    pub items: Vec<Arc<Stored>>,
    /// `metadata.resourceVersion` of the list.
    pub revision: u64,
    /// `metadata.continue`, if there may be more.
    pub continue_token: Option<String>,
    /// `metadata.remainingItemCount`, if known.
    pub remaining: Option<u64>,
    /// The selector of `metadata.shardInfo`, if the list has some shards only.
    pub shards: Option<ShardSelector>,
}

/// A WATCH request, after the defaulting of `sendInitialEvents`.
#[derive(Debug, Clone, Default)]
pub struct WatchRequest {
    /// The scope of the URL.
    pub scope: Scope,
    /// The resource version to start from.
    pub revision: RevisionOption,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
    /// Only objects of these shards.
    pub shards: ShardSelector,
    /// Whether bookmarks may be sent.
    pub allow_bookmarks: bool,
    /// Whether the stream begins with the current state. With [`RevisionOption::At`], that state is at least as new.
    pub initial_events: bool,
    /// Whether a bookmark marks the end of the initial state (`sendInitialEvents` was set or defaulted, and bookmarks are allowed).
    pub mark_initial_end: bool,
    /// The duration of the watch; `None` draws a duration between 30 and 60 minutes.
    pub timeout: Option<Duration>,
}
