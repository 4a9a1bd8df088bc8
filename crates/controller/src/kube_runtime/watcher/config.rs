//! Which objects are listed and watched, and how.

use kube::{
    api::{ListParams, VersionMatch, WatchParams},
    core::Selector,
};

/// Number of objects in a page of a list, as in client-go.
const PAGE: u32 = 500;

/// Which state a list returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListSemantic {
    /// The newest.
    #[default]
    MostRecent,
    /// Any that the server has in memory. Cheaper for the server.
    Any,
}

/// How the initial objects are fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialListStrategy {
    /// A list in pages, then a watch.
    #[default]
    ListWatch,
    /// A watch that starts with all objects.
    StreamingList,
}

/// Which objects are listed and watched, and how.
///
/// ```
/// use kube_informer_controller::kube_runtime::watcher;
///
/// let spot_nodes = watcher::Config::default().timeout(60).labels("kubernetes.io/lifecycle=spot");
/// assert_eq!(spot_nodes.timeout, Some(60));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Label selector.
    pub label_selector: Option<String>,
    /// Field selector.
    pub field_selector: Option<String>,
    /// Seconds after which the server ends a watch; 290 if not set. It is continued.
    pub timeout: Option<u32>,
    /// Which state a list returns.
    pub list_semantic: ListSemantic,
    /// How the initial objects are fetched.
    pub initial_list_strategy: InitialListStrategy,
    /// Number of objects in a page of a list; all of them in one if `None`.
    pub page_size: Option<u32>,
    /// Whether the server sends bookmarks, which make it cheaper to continue a watch.
    pub bookmarks: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            label_selector: None,
            field_selector: None,
            timeout: None,
            list_semantic: ListSemantic::default(),
            initial_list_strategy: InitialListStrategy::default(),
            page_size: Some(PAGE),
            bookmarks: true,
        }
    }
}

impl Config {
    /// Sets the seconds after which the server ends a watch.
    #[must_use]
    pub fn timeout(mut self, seconds: u32) -> Self {
        self.timeout = Some(seconds);
        self
    }

    /// Sets the field selector.
    #[must_use]
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = Some(selector.to_owned());
        self
    }

    /// Sets the label selector.
    #[must_use]
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = Some(selector.to_owned());
        self
    }

    /// Sets the label selector.
    #[must_use]
    pub fn labels_from(mut self, selector: &Selector) -> Self {
        self.label_selector = Some(selector.to_string());
        self
    }

    /// Sets which state a list returns.
    #[must_use]
    pub fn list_semantic(mut self, semantic: ListSemantic) -> Self {
        self.list_semantic = semantic;
        self
    }

    /// Lists may return any state that the server has in memory.
    #[must_use]
    pub fn any_semantic(self) -> Self {
        self.list_semantic(ListSemantic::Any)
    }

    /// Asks the server not to send bookmarks.
    #[must_use]
    pub fn disable_bookmarks(mut self) -> Self {
        self.bookmarks = false;
        self
    }

    /// Sets the number of objects in a page of a list.
    #[must_use]
    pub fn page_size(mut self, objects: u32) -> Self {
        self.page_size = Some(objects);
        self
    }

    /// Fetches the initial objects with a watch.
    #[must_use]
    pub fn streaming_lists(mut self) -> Self {
        self.initial_list_strategy = InitialListStrategy::StreamingList;
        self
    }

    pub(super) fn list_params(&self, continue_token: Option<String>) -> ListParams {
        // A continue token contains the version.
        let any = self.list_semantic == ListSemantic::Any && continue_token.is_none();
        ListParams {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            limit: self.page_size,
            resource_version: any.then(|| "0".to_owned()),
            version_match: any.then_some(VersionMatch::NotOlderThan),
            continue_token,
            ..ListParams::default()
        }
    }

    pub(super) fn watch_params(&self, send_initial_events: bool) -> WatchParams {
        WatchParams {
            label_selector: self.label_selector.clone(),
            field_selector: self.field_selector.clone(),
            timeout: self.timeout,
            bookmarks: self.bookmarks,
            send_initial_events,
        }
    }
}
