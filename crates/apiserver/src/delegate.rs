//! The delegation rule: whether a LIST reads from the watch cache or from the store. A pure function of the options and the gates.

use crate::watch_cache::{RevisionMatch, RevisionOption};

/// Feature gates of lists and watches. The defaults are those of Kubernetes 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeatureGates {
    /// `ConsistentListFromCache`: lists of the most recent state read from the cache once it has caught up.
    pub consistent_list_from_cache: bool,
    /// `ListFromCacheSnapshot`: lists at an exact resource version and later pages read from snapshots of the cache.
    pub list_from_cache_snapshot: bool,
    /// `ShardedListAndWatch`: lists and watches of some shards only (`shardSelector`). Without it the parameter is ignored.
    pub sharded_list_and_watch: bool,
}

/// The options of a list that the rule depends on.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ListOptions {
    pub(crate) revision: RevisionOption,
    pub(crate) revision_match: Option<RevisionMatch>,
    pub(crate) limited: bool,
    /// The revision in the continue token; negative means the latest revision.
    pub(crate) continue_at: Option<i64>,
    /// Whether the scope is a single object, so that a key is looked up and nothing scanned.
    pub(crate) single: bool,
}

/// The state that the response must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consistency {
    /// Every write that completed before the request.
    Latest,
    /// Any state.
    Any,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// This revision.
    Exact(u64),
}

/// Where a list is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListSource {
    /// The cache; for an exact revision only if the cache still has that state.
    Cache,
    Storage,
}

impl FeatureGates {
    /// All gates off: the rule before Kubernetes 1.31.
    pub const DISABLED: Self = Self {
        consistent_list_from_cache: false,
        list_from_cache_snapshot: false,
        sharded_list_and_watch: false,
    };
}

impl Default for FeatureGates {
    fn default() -> Self {
        Self { consistent_list_from_cache: true, list_from_cache_snapshot: true, ..Self::DISABLED }
    }
}

impl ListOptions {
    /// Returns the state that the options request, independent of the source.
    pub(crate) fn consistency(&self) -> Consistency {
        match (self.continue_at, self.revision_match, self.revision) {
            (Some(at), ..) => u64::try_from(at).map_or(Consistency::Latest, Consistency::Exact),
            (None, _, RevisionOption::Unset) => Consistency::Latest,
            (None, _, RevisionOption::Any) => Consistency::Any,
            (None, Some(RevisionMatch::Exact), RevisionOption::At(n)) => Consistency::Exact(n),
            // For compatibility, a limit together with a resource version means exactly that version.
            (None, None, RevisionOption::At(n)) if self.limited => Consistency::Exact(n),
            (None, _, RevisionOption::At(n)) => Consistency::NotOlderThan(n),
        }
    }

    /// Returns where the list is read.
    pub(crate) fn source(&self, gates: FeatureGates) -> ListSource {
        let from_cache = match self.consistency() {
            Consistency::Latest => gates.consistent_list_from_cache,
            Consistency::Any => true,
            Consistency::NotOlderThan(_) => gates.list_from_cache_snapshot || !self.limited,
            Consistency::Exact(_) => gates.list_from_cache_snapshot && !self.single,
        };
        if from_cache { ListSource::Cache } else { ListSource::Storage }
    }
}

#[cfg(test)]
mod tests;
