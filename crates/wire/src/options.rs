//! What a client asks of LIST and WATCH.

use std::time::Duration;

/// How the resource version of a request is to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a later one.
    NotOlderThan,
}

impl VersionMatch {
    /// The word in the query.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "Exact",
            Self::NotOlderThan => "NotOlderThan",
        }
    }
}

/// Options of a LIST. Everything unset is left out of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// `None`: the newest state. `"0"`: whatever a cache has. Otherwise a lower bound.
    pub resource_version: Option<String>,
    /// How the version is meant.
    pub version_match: Option<VersionMatch>,
    /// Page size.
    pub limit: Option<u32>,
    /// Where the page starts.
    pub continue_token: Option<String>,
    /// Label selector, in addition to the source's own.
    pub label_selector: Option<String>,
    /// Field selector, in addition to the source's own.
    pub field_selector: Option<String>,
}

/// Options of a WATCH. Everything unset is left out of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Events after this version; `None` starts with the newest state.
    pub resource_version: Option<String>,
    /// How the version is meant; servers allow it only with `send_initial_events`.
    pub version_match: Option<VersionMatch>,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Streaming list: the state as ADDED events, then a bookmark that says so, then changes.
    pub send_initial_events: Option<bool>,
    /// When the server ends the watch.
    pub timeout: Option<Duration>,
    /// Label selector, in addition to the source's own.
    pub label_selector: Option<String>,
    /// Field selector, in addition to the source's own.
    pub field_selector: Option<String>,
}
