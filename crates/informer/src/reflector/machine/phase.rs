//! The state of a reflector.

use super::freshness::Freshness;
use kube_informer_wire::ResourceVersion;

/// Whether lists ask for a state that is not older than the known version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LowerBound {
    Position,
    /// The server cannot serve that version: lists ask for the most recent state.
    Unavailable,
}

/// Which lists are paged unless a page size is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// The first one. The server has later ones in its cache, which does not page.
    FirstList,
    /// All of them: the server has paged a list that its cache could have served, so it has no cache.
    EveryList,
}

/// Whether the collection is listed by a streaming list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    Enabled,
    /// Not configured, or it did not work with this server.
    Disabled,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Idle,
    Streaming,
    Listing(Listing),
    Committing {
        version: ResourceVersion,
        then: AfterCommit,
    },
    /// The object that shows the history of the server is requested.
    Verifying,
    Watching,
    Probing,
    Waiting(AfterWait),
}

/// A list that is being received.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Listing {
    pub(super) freshness: Freshness,
    /// Page size; `None` for a list in one piece.
    pub(super) limit: Option<u32>,
    pub(super) page: Page,
    /// The version of the first page. Later pages may show later states, never earlier ones.
    pub(super) version: Option<ResourceVersion>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Page {
    First,
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterCommit {
    /// Read the stream of the streaming list.
    Follow,
    Watch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterWait {
    Relist,
    /// Relist without a streaming list, because that failed.
    List,
    Watch,
    /// Request the object again that shows the history of the server.
    Verify,
}
