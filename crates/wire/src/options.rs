//! Options of LIST and WATCH requests.

use crate::{FieldSelector, LabelSelector, ShardSelector};
use std::time::Duration;

/// The parameter `resourceVersionMatch`: how a server interprets the resource version of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VersionMatch {
    /// Exactly that version.
    Exact,
    /// That version or a later one.
    NotOlderThan,
}

impl VersionMatch {
    /// The value of the query parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "Exact",
            Self::NotOlderThan => "NotOlderThan",
        }
    }
}

/// Options of a LIST. Options that are not set are left out of the query.
///
/// ```
/// use kube_informer_wire::ListOptions;
///
/// let options = ListOptions::new().resource_version("0".to_owned()).limit(500).label_selector("app=cart".parse()?);
/// assert_eq!(options.limit, Some(500));
/// # Ok::<(), kube_informer_wire::SelectorError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// `None`: the newest state. `"0"`: any state that the server has cached. Otherwise a lower bound, unless
    /// `version_match` is set.
    pub resource_version: Option<String>,
    /// How the server interprets the resource version.
    pub version_match: Option<VersionMatch>,
    /// Page size.
    pub limit: Option<u32>,
    /// Token of the page, from the metadata of the page before it.
    pub continue_token: Option<String>,
    /// Label selector, in addition to the source's own.
    pub label_selector: LabelSelector,
    /// Field selector, in addition to the source's own.
    pub field_selector: FieldSelector,
    /// Shard selector; that of the source if it selects everything.
    pub shard_selector: ShardSelector,
}

impl ListOptions {
    /// Options of which none is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the resource version.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<Option<String>>) -> Self {
        self.resource_version = version.into();
        self
    }

    /// Sets how the server interprets the resource version.
    #[must_use]
    pub fn version_match(mut self, version_match: impl Into<Option<VersionMatch>>) -> Self {
        self.version_match = version_match.into();
        self
    }

    /// Sets the page size.
    #[must_use]
    pub fn limit(mut self, limit: impl Into<Option<u32>>) -> Self {
        self.limit = limit.into();
        self
    }

    /// Sets the token of the page.
    #[must_use]
    pub fn continue_token(mut self, token: impl Into<Option<String>>) -> Self {
        self.continue_token = token.into();
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

    /// Sets the shard selector.
    #[must_use]
    pub fn shard_selector(mut self, selector: ShardSelector) -> Self {
        self.shard_selector = selector;
        self
    }
}

/// Options of a WATCH. Options that are not set are left out of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchOptions {
    /// Events after this version; `None` starts with the newest state.
    pub resource_version: Option<String>,
    /// How the server interprets the resource version; servers allow it only with `send_initial_events`.
    pub version_match: Option<VersionMatch>,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Streaming list: the state as ADDED events, a bookmark that marks their end, then changes.
    pub send_initial_events: Option<bool>,
    /// Time after which the server ends the watch.
    pub timeout: Option<Duration>,
    /// Label selector, in addition to the source's own.
    pub label_selector: LabelSelector,
    /// Field selector, in addition to the source's own.
    pub field_selector: FieldSelector,
    /// Shard selector; that of the source if it selects everything.
    pub shard_selector: ShardSelector,
}

impl WatchOptions {
    /// Options of which none is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the resource version.
    #[must_use]
    pub fn resource_version(mut self, version: impl Into<Option<String>>) -> Self {
        self.resource_version = version.into();
        self
    }

    /// Sets how the server interprets the resource version.
    #[must_use]
    pub fn version_match(mut self, version_match: impl Into<Option<VersionMatch>>) -> Self {
        self.version_match = version_match.into();
        self
    }

    /// Sets whether the server may send bookmarks.
    #[must_use]
    pub fn allow_bookmarks(mut self, allow: bool) -> Self {
        self.allow_bookmarks = allow;
        self
    }

    /// Sets whether the watch starts with the state as ADDED events.
    #[must_use]
    pub fn send_initial_events(mut self, send: impl Into<Option<bool>>) -> Self {
        self.send_initial_events = send.into();
        self
    }

    /// Sets the time after which the server ends the watch.
    #[must_use]
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
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

    /// Sets the shard selector.
    #[must_use]
    pub fn shard_selector(mut self, selector: ShardSelector) -> Self {
        self.shard_selector = selector;
        self
    }
}
