//! Which state of the collection a request asks for.

use kube_informer_wire::{ListOptions, ResourceVersion, VersionMatch, WatchOptions};

/// The `resourceVersion` of a request that accepts any state.
const ANY: &str = "0";

/// The state of the collection that a list asks for, in the terms of the Kubernetes API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Freshness {
    /// Any state, such as the one that the cache of the server has.
    Any,
    /// This version or a later one.
    NotOlderThan(ResourceVersion),
    MostRecent,
}

impl Freshness {
    fn resource_version(&self) -> Option<String> {
        match self {
            Self::Any => Some(ANY.to_owned()),
            Self::NotOlderThan(version) => Some(version.to_string()),
            Self::MostRecent => None,
        }
    }

    /// The options of the first page of a list, or of a list without pages.
    pub(super) fn list(&self, limit: Option<u32>) -> ListOptions {
        // With a limit, a version without a match means exactly that version. A list would then be as old as the known
        // state, and a watch that has expired there would expire again, for ever.
        let version_match =
            (limit.is_some() && matches!(self, Self::NotOlderThan(_))).then_some(VersionMatch::NotOlderThan);
        let resource_version = self.resource_version();
        ListOptions::new().resource_version(resource_version).version_match(version_match).limit(limit)
    }

    /// The options of a streaming list.
    pub(super) fn streaming_list(&self, watch: WatchOptions) -> WatchOptions {
        let watch = watch.resource_version(self.resource_version());
        watch.version_match(VersionMatch::NotOlderThan).send_initial_events(true)
    }
}

/// The options of a later page. A server rejects a version together with a continue token, which has its own.
pub(super) fn next_page(continue_token: String, limit: Option<u32>) -> ListOptions {
    ListOptions::new().continue_token(continue_token).limit(limit)
}

/// Whether a watch with these options starts after a version, and not with the state of the collection.
pub(in crate::reflector) fn starts_at_version(options: &WatchOptions) -> bool {
    options.resource_version.as_deref().is_some_and(|version| version != ANY)
        && options.send_initial_events.is_none()
}
