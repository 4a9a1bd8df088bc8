//! Paths and queries of LIST, WATCH and GET requests.

use crate::{FieldSelector, Kind, LabelSelector, ListOptions, ShardSelector, WatchOptions};
use std::fmt::Write;

/// Maximum timeout of a watch: servers count nanoseconds in a signed 64-bit integer.
const MAX_TIMEOUT_SECONDS: u64 = i64::MAX as u64 / 1_000_000_000;

/// The URL of a collection: path of the resource, and selectors that every request carries.
///
/// Parameters are sorted by name, as in requests of client-go, so that recorded requests compare as text.
///
/// ```
/// use kube_informer_wire::{Collection, Kind, ListOptions};
///
/// let pods = Collection::new(&Kind::namespaced("", "v1", "Pod", "pods"), Some("shop")).labels(&"app=cart".parse()?);
/// let options = ListOptions::new().resource_version("0".to_owned()).limit(500);
/// assert_eq!(
///     pods.list(&options),
///     "/api/v1/namespaces/shop/pods?labelSelector=app%3Dcart&limit=500&resourceVersion=0"
/// );
/// # Ok::<(), kube_informer_wire::SelectorError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    path: String,
    labels: LabelSelector,
    fields: FieldSelector,
    shards: ShardSelector,
}

impl Collection {
    /// All objects of a kind, or those of one namespace, which is ignored for a cluster-scoped kind.
    pub fn new(kind: &Kind, namespace: Option<&str>) -> Self {
        let mut path = match kind.group.as_str() {
            "" => "/api/".to_owned(),
            group => format!("/apis/{}/", escaped(group)),
        };
        path += &escaped(&kind.version);
        if let Some(namespace) = namespace.filter(|namespace| kind.namespaced && !namespace.is_empty()) {
            path += "/namespaces/";
            path += &escaped(namespace);
        }
        path += "/";
        path += &escaped(&kind.plural);
        let (labels, fields) = (LabelSelector::everything(), FieldSelector::everything());
        Self { path, labels, fields, shards: ShardSelector::everything() }
    }

    /// Adds a label selector; all of them must match.
    #[must_use]
    pub fn labels(mut self, selector: &LabelSelector) -> Self {
        self.labels = self.labels.and(selector);
        self
    }

    /// Adds a field selector; all of them must match.
    #[must_use]
    pub fn fields(mut self, selector: &FieldSelector) -> Self {
        self.fields = self.fields.and(selector);
        self
    }

    /// Sets the shard selector of requests that have none.
    #[must_use]
    pub fn shards(mut self, selector: &ShardSelector) -> Self {
        self.shards = selector.clone();
        self
    }

    fn shard_selector(&self, requested: &ShardSelector) -> String {
        if requested.is_everything() { self.shards.to_string() } else { requested.to_string() }
    }

    /// The path without a query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Path of the object with this name.
    pub fn object(&self, name: &str) -> String {
        format!("{}/{}", self.path, escaped(name))
    }

    /// Path and query of a LIST.
    pub fn list(&self, options: &ListOptions) -> String {
        let mut url = Url::new(&self.path);
        url.text("continue", options.continue_token.as_deref());
        url.text("fieldSelector", Some(&self.fields.clone().and(&options.field_selector).to_string()));
        url.text("labelSelector", Some(&self.labels.clone().and(&options.label_selector).to_string()));
        url.number("limit", options.limit.filter(|limit| *limit > 0).map(u64::from));
        url.text("resourceVersion", options.resource_version.as_deref());
        url.text("resourceVersionMatch", options.version_match.map(|version| version.as_str()));
        url.text("shardSelector", Some(&self.shard_selector(&options.shard_selector)));
        url.text
    }

    /// Path and query of a WATCH.
    pub fn watch(&self, options: &WatchOptions) -> String {
        let mut url = Url::new(&self.path);
        url.flag("allowWatchBookmarks", options.allow_bookmarks.then_some(true));
        url.text("fieldSelector", Some(&self.fields.clone().and(&options.field_selector).to_string()));
        url.text("labelSelector", Some(&self.labels.clone().and(&options.label_selector).to_string()));
        url.text("resourceVersion", options.resource_version.as_deref());
        url.text("resourceVersionMatch", options.version_match.map(|version| version.as_str()));
        url.flag("sendInitialEvents", options.send_initial_events);
        url.text("shardSelector", Some(&self.shard_selector(&options.shard_selector)));
        url.number(
            "timeoutSeconds",
            options.timeout.map(|timeout| timeout.as_secs().min(MAX_TIMEOUT_SECONDS)),
        );
        url.flag("watch", Some(true));
        url.text
    }
}

/// A URL to which parameters are added.
struct Url {
    text: String,
    mark: char,
}

impl Url {
    fn new(path: &str) -> Self {
        Self { text: path.to_owned(), mark: '?' }
    }

    /// Adds a parameter if it has a value.
    fn text(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value.filter(|value| !value.is_empty()) else { return };
        self.text.push(self.mark);
        self.mark = '&';
        self.text += name;
        self.text += "=";
        self.text += &escaped(value);
    }

    fn flag(&mut self, name: &str, value: Option<bool>) {
        self.text(name, value.map(|value| if value { "true" } else { "false" }));
    }

    fn number(&mut self, name: &str, value: Option<u64>) {
        self.text(name, value.map(|value| value.to_string()).as_deref());
    }
}

/// Percent-encodes everything but letters, digits and `-_.~`, which is correct in a path and in a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(byte.into()),
            _ => write!(escaped, "%{byte:02X}").unwrap_or_default(),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VersionMatch;
    use std::time::Duration;

    fn pods(namespace: Option<&str>) -> Collection {
        Collection::new(&Kind::namespaced("", "v1", "Pod", "pods"), namespace)
    }

    #[test]
    fn paths() {
        let path = |kind: &Kind, namespace| Collection::new(kind, namespace).path().to_owned();
        let deployments = Kind::namespaced("apps", "v1", "Deployment", "deployments");
        let nodes = Kind::cluster("", "v1", "Node", "nodes");
        assert_eq!(pods(None).path(), "/api/v1/pods");
        assert_eq!(pods(Some("")).path(), "/api/v1/pods");
        assert_eq!(pods(Some("shop")).path(), "/api/v1/namespaces/shop/pods");
        assert_eq!(path(&deployments, None), "/apis/apps/v1/deployments");
        assert_eq!(path(&deployments, Some("shop")), "/apis/apps/v1/namespaces/shop/deployments");
        assert_eq!(path(&nodes, Some("shop")), "/api/v1/nodes");
        assert_eq!(
            pods(Some("../../secrets?x#y")).path(),
            "/api/v1/namespaces/..%2F..%2Fsecrets%3Fx%23y/pods"
        );
    }

    #[test]
    fn first_page_from_any_cache() {
        let options =
            ListOptions { resource_version: Some("0".into()), limit: Some(500), ..ListOptions::default() };
        assert_eq!(pods(None).list(&options), "/api/v1/pods?limit=500&resourceVersion=0");
    }

    #[test]
    fn later_pages_and_exact_versions() {
        let page = ListOptions {
            continue_token: Some("eyJ2IjoibWV0YS5r+/=".into()),
            limit: Some(500),
            ..ListOptions::default()
        };
        assert_eq!(pods(None).list(&page), "/api/v1/pods?continue=eyJ2IjoibWV0YS5r%2B%2F%3D&limit=500");
        let exact = ListOptions {
            resource_version: Some("42".into()),
            version_match: Some(VersionMatch::Exact),
            ..ListOptions::default()
        };
        assert_eq!(pods(None).list(&exact), "/api/v1/pods?resourceVersion=42&resourceVersionMatch=Exact");
    }

    #[test]
    fn unset_and_empty_options_are_left_out() {
        let empty = ListOptions {
            resource_version: Some(String::new()),
            limit: Some(0),
            continue_token: Some(String::new()),
            ..ListOptions::default()
        };
        assert_eq!(pods(None).labels(&"".parse().unwrap()).list(&empty), "/api/v1/pods");
        assert_eq!(pods(None).watch(&WatchOptions::default()), "/api/v1/pods?watch=true");
    }

    #[test]
    fn watches() {
        let live = WatchOptions {
            resource_version: Some("42".into()),
            allow_bookmarks: true,
            timeout: Some(Duration::from_millis(432_900)),
            ..WatchOptions::default()
        };
        assert_eq!(
            pods(None).watch(&live),
            "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=42&timeoutSeconds=432&watch=true"
        );
        let streaming = WatchOptions {
            version_match: Some(VersionMatch::NotOlderThan),
            allow_bookmarks: true,
            send_initial_events: Some(true),
            timeout: Some(Duration::from_secs(300)),
            ..WatchOptions::default()
        };
        assert_eq!(
            pods(None).watch(&streaming),
            "/api/v1/pods?allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true\
             &timeoutSeconds=300&watch=true"
        );
    }

    #[test]
    fn a_timeout_is_at_most_what_a_server_can_represent() {
        for timeout in [Duration::MAX, Duration::from_secs(1 << 40)] {
            let endless = WatchOptions { timeout: Some(timeout), ..WatchOptions::default() };
            assert_eq!(pods(None).watch(&endless), "/api/v1/pods?timeoutSeconds=9223372036&watch=true");
        }
    }

    #[test]
    fn selectors_of_source_and_request_must_both_match() {
        let source = pods(Some("shop"))
            .labels(&"app in (a, b)".parse().unwrap())
            .fields(&"spec.nodeName=n1".parse().unwrap());
        let options = ListOptions {
            label_selector: "!legacy".parse().unwrap(),
            field_selector: "status.phase!=Failed".parse().unwrap(),
            ..ListOptions::default()
        };
        assert_eq!(
            source.list(&options),
            "/api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3Dn1%2Cstatus.phase%21%3DFailed\
             &labelSelector=app%20in%20%28a%2Cb%29%2C%21legacy"
        );
        assert!(source.watch(&WatchOptions::default()).contains("labelSelector=app%20in%20%28a%2Cb%29&"));
    }

    #[test]
    fn requests_carry_the_shards_of_the_source_or_their_own() {
        let [low, high] = [0, 1].map(|index| ShardSelector::from(crate::ShardRange::nth(index, 2).unwrap()));
        let source = pods(None).shards(&low);
        let query = "shardSelector=shardRange%28object.metadata.uid%2C%20%270x0000000000000000%27%2C%20\
                     %270x8000000000000000%27%29";
        assert_eq!(source.list(&ListOptions::new()), format!("/api/v1/pods?{query}"));
        assert_eq!(source.watch(&WatchOptions::new()), format!("/api/v1/pods?{query}&watch=true"));
        let own = ListOptions::new().shard_selector(high);
        assert!(source.list(&own).ends_with("%270x8000000000000000%27%2C%20%270x10000000000000000%27%29"));
    }
}
