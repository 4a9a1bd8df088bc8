//! What can be asked of the cache. Options arrive here parsed and validated; what they mean is decided here.

use std::sync::Arc;
use std::time::Duration;

use kube_informer_wire::{FieldSelector, LabelSelector};

use crate::storage::Stored;

/// The resource a cache serves.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Where its objects are stored, `/pods/`.
    pub prefix: String,
    /// Whether keys have a namespace part.
    pub namespaced: bool,
    /// Whether reads are answered from a cache. Kubernetes has one kind that is not: events.
    pub cached: bool,
}

/// The part of a resource that the URL names.
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
    /// `0`: any state will do.
    Any,
    /// A version.
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

/// A LIST.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// What the URL names.
    pub scope: Scope,
    /// Which version.
    pub revision: RevisionOption,
    /// How the version is meant.
    pub revision_match: Option<RevisionMatch>,
    /// At most this many objects; zero is no limit (a negative `limit` parameter is no limit too).
    pub limit: usize,
    /// The token of the page before.
    pub continue_token: Option<String>,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
}

/// The answer to a LIST.
#[derive(Debug, Clone)]
pub struct ListAnswer {
    /// The objects, in key order.
    pub items: Vec<Arc<Stored>>,
    /// `metadata.resourceVersion` of the list.
    pub revision: u64,
    /// `metadata.continue`, if there may be more.
    pub continue_token: Option<String>,
    /// `metadata.remainingItemCount`, if known.
    pub remaining: Option<u64>,
}

/// A WATCH, after the defaulting of `sendInitialEvents`.
#[derive(Debug, Clone, Default)]
pub struct WatchRequest {
    /// What the URL names.
    pub scope: Scope,
    /// From which version.
    pub revision: RevisionOption,
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these fields.
    pub fields: FieldSelector,
    /// Whether bookmarks may be sent.
    pub allow_bookmarks: bool,
    /// Whether the stream begins with the current state. With [`RevisionOption::At`] that state is at least as new.
    pub initial_events: bool,
    /// Whether a bookmark marks the end of that state (`sendInitialEvents` was set or defaulted, and bookmarks are allowed).
    pub mark_initial_end: bool,
    /// How long the watch lasts; `None` draws between 30 and 60 minutes.
    pub timeout: Option<Duration>,
}
