//! Who answers a LIST: the watch cache or the store. One pure function of the options and the gates.

use crate::watch_cache::{RevisionMatch, RevisionOption};

/// Feature gates that move lists from the store to the cache. The default is Kubernetes 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// `ConsistentListFromCache`: the most recent state comes from the cache once it has caught up.
    pub consistent_list_from_cache: bool,
    /// `ListFromCacheSnapshot`: exact versions and later pages come from snapshots of the cache.
    pub list_from_cache_snapshot: bool,
}

/// What the rule looks at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ListOptions {
    pub(crate) revision: RevisionOption,
    pub(crate) revision_match: Option<RevisionMatch>,
    pub(crate) limited: bool,
    /// The revision in the continue token: negative goes on at the latest state.
    pub(crate) continue_at: Option<i64>,
    /// Whether one name in a known namespace is asked for, so that a key is looked up and nothing scanned.
    pub(crate) single: bool,
}

/// What the answer must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consistency {
    /// Everything written before the request.
    Latest,
    /// Whatever is at hand.
    Any,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// This revision.
    Exact(u64),
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    /// The cache; for an exact revision only if it still has a snapshot.
    Cache,
    Storage,
}

impl Gates {
    /// Both gates off: the rule before Kubernetes 1.31.
    pub const CLASSIC: Self = Self { consistent_list_from_cache: false, list_from_cache_snapshot: false };
}

impl Default for Gates {
    fn default() -> Self {
        Self { consistent_list_from_cache: true, list_from_cache_snapshot: true }
    }
}

impl ListOptions {
    /// What the options ask for, whoever answers.
    pub(crate) fn consistency(&self) -> Consistency {
        match (self.continue_at, self.revision_match, self.revision) {
            (Some(at), ..) => u64::try_from(at).map_or(Consistency::Latest, Consistency::Exact),
            (None, _, RevisionOption::Unset) => Consistency::Latest,
            (None, _, RevisionOption::Any) => Consistency::Any,
            (None, Some(RevisionMatch::Exact), RevisionOption::At(n)) => Consistency::Exact(n),
            // A limit together with a version has always meant that version, exactly.
            (None, None, RevisionOption::At(n)) if self.limited => Consistency::Exact(n),
            (None, _, RevisionOption::At(n)) => Consistency::NotOlderThan(n),
        }
    }

    /// Who answers.
    pub(crate) fn answerer(&self, gates: Gates) -> Answerer {
        let from_cache = match self.consistency() {
            Consistency::Latest => gates.consistent_list_from_cache,
            Consistency::Any => true,
            Consistency::NotOlderThan(_) => gates.list_from_cache_snapshot || !self.limited,
            Consistency::Exact(_) => gates.list_from_cache_snapshot && !self.single,
        };
        if from_cache { Answerer::Cache } else { Answerer::Storage }
    }
}

#[cfg(test)]
mod tests;
