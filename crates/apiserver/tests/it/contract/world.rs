//! The fixture of the contract tests: a store, a reader of one resource, and helpers.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use kube_embedded_apiserver::storage::{Document, MemoryStorage, Storage, StorageError, Stored, TypeHead};
use kube_embedded_apiserver::watch_cache::{
    Bookmark, CacheOptions, FeatureGates, ListRequest, ListResponse, ReadError, Resource, RevisionOption,
    Scope, WatchCache, WatchItem, WatchRequest, WatchStream,
};
use serde_json::json;

/// A way to read a resource. Every contract test runs with all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Directly from the store.
    Stored,
    /// Through the cache, with the gates of 1.36.
    Cached,
    /// Through the cache, with all feature gates disabled.
    NoGates,
}

pub(crate) struct World {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) cache: WatchCache,
    pub(crate) reader: Reader,
}

/// A test object: labels, the field `spec.nodeName`, and a number that identifies its version.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spec {
    pub(crate) labels: Vec<(&'static str, String)>,
    pub(crate) node: &'static str,
    pub(crate) v: u64,
}

pub(crate) fn v(v: u64) -> Spec {
    Spec { v, ..Spec::default() }
}

pub(crate) fn labelled(key: &'static str, value: &str) -> Spec {
    Spec { labels: vec![(key, value.to_owned())], ..Spec::default() }
}

pub(crate) fn on_node(node: &'static str) -> Spec {
    Spec { node, ..Spec::default() }
}

impl Spec {
    pub(crate) fn document(&self, path: &str) -> Document {
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let labels: serde_json::Map<_, _> =
            self.labels.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect();
        let object = json!({
            "metadata": {"namespace": namespace, "name": name, "labels": labels},
            "spec": {"nodeName": self.node, "v": self.v},
        });
        Document::encode(&object, [("spec.nodeName", self.node)]).unwrap()
    }
}

pub(crate) fn head() -> TypeHead {
    TypeHead::new("v1", "Thing")
}

pub(crate) fn number(stored: &Stored) -> u64 {
    stored.to_value(&head()).unwrap()["spec"]["v"].as_u64().unwrap()
}

impl World {
    pub(crate) async fn new(reader: Reader) -> Self {
        Self::on(Arc::new(MemoryStorage::new()), reader, CacheOptions::default()).await
    }

    /// A world whose window holds at most `window_max` changes.
    pub(crate) async fn with_window(reader: Reader, window_max: usize) -> Self {
        let mut options = CacheOptions::default();
        options.window_max = window_max;
        Self::on(Arc::new(MemoryStorage::new()), reader, options).await
    }

    pub(crate) async fn on(storage: Arc<dyn Storage>, reader: Reader, mut options: CacheOptions) -> Self {
        if reader == Reader::NoGates {
            options.gates = FeatureGates::DISABLED;
        }
        let cached = reader != Reader::Stored;
        let resource = Resource { prefix: "/things/".to_owned(), namespaced: true, cached };
        let cache = WatchCache::start(Arc::clone(&storage), resource, options).await.unwrap();
        Self { storage, cache, reader }
    }

    pub(crate) async fn create(&self, path: &str, spec: Spec) -> u64 {
        self.storage.create(&key(path), spec.document(path)).await.unwrap().revision
    }

    pub(crate) async fn update(&self, path: &str, spec: Spec) -> u64 {
        let current = self.storage.get(&key(path)).await.unwrap().unwrap();
        self.storage.update(&key(path), current.revision, spec.document(path)).await.unwrap().revision
    }

    pub(crate) async fn delete(&self, path: &str) -> u64 {
        let current = self.storage.get(&key(path)).await.unwrap().unwrap();
        self.storage.delete(&key(path), current.revision).await.unwrap().revision
    }

    /// Writes to another resource, which only advances the revision.
    pub(crate) async fn write_elsewhere(&self) -> u64 {
        let name = format!("/others/{}", self.current().await);
        self.storage.create(&name, v(0).document("x/x")).await.unwrap().revision
    }

    /// Creates, updates or deletes one of `objects` objects. Concurrent writes may be ahead of this one.
    pub(crate) async fn write_at_random(&self, rng: &mut fastrand::Rng, objects: u64, n: u64) {
        let path = format!("a/{}", rng.u64(..objects));
        let (key, document) = (key(&path), v(n).document(&path));
        let outcome = match self.storage.get(&key).await.unwrap() {
            None => self.storage.create(&key, document).await,
            Some(stored) if rng.u8(..4) == 0 => self.storage.delete(&key, stored.revision).await,
            Some(stored) => self.storage.update(&key, stored.revision, document).await,
        };
        match outcome {
            Ok(_) | Err(StorageError::Conflict(_) | StorageError::Exists(_) | StorageError::NotFound) => {}
            Err(other) => panic!("{other}"),
        }
    }

    pub(crate) async fn create_all(&self, paths: &[&str]) -> u64 {
        let mut last = 0;
        for path in paths {
            last = self.create(path, v(0)).await;
        }
        last
    }

    pub(crate) async fn current(&self) -> u64 {
        self.storage.current_revision().await.unwrap()
    }

    pub(crate) async fn compact(&self) -> u64 {
        let revision = self.current().await;
        self.storage.compact(revision).await.unwrap();
        revision
    }

    pub(crate) async fn list(&self, request: ListRequest) -> ListResponse {
        self.cache.list(&request).await.unwrap()
    }

    pub(crate) async fn list_error(&self, request: ListRequest) -> ReadError {
        self.cache.list(&request).await.unwrap_err()
    }

    pub(crate) async fn get(
        &self,
        path: &str,
        revision: RevisionOption,
    ) -> Result<Option<Arc<Stored>>, ReadError> {
        self.cache.get(&object(path), revision).await
    }

    pub(crate) async fn watch(&self, request: WatchRequest) -> Watch {
        Watch(self.cache.watch(&request).await.unwrap())
    }
}

pub(crate) fn key(path: &str) -> String {
    format!("/things/{path}")
}

pub(crate) fn object(path: &str) -> Scope {
    let (namespace, name) = path.split_once('/').unwrap();
    Scope::Object { namespace: Some(namespace.to_owned()), name: name.to_owned() }
}

pub(crate) fn namespace(namespace: &str) -> Scope {
    Scope::Namespace(namespace.to_owned())
}

pub(crate) fn at(revision: u64) -> RevisionOption {
    RevisionOption::At(revision)
}

/// `ns/name` of each item.
pub(crate) fn paths(response: &ListResponse) -> Vec<String> {
    response.items.iter().map(|stored| stored.key["/things/".len()..].to_owned()).collect()
}

/// A reader of one stream.
pub(crate) struct Watch(pub(crate) WatchStream);

impl Watch {
    /// Waits for the next item.
    pub(crate) async fn next(&mut self) -> Option<WatchItem> {
        self.0.next().await
    }

    /// Waits for the next item and returns it as text: `ADDED a/x @1001 v0`, `BOOKMARK @1001`, `BOOKMARK @1001 end`, `ERROR …`, or `EOF`.
    pub(crate) async fn text(&mut self) -> String {
        match self.next().await {
            None => "EOF".to_owned(),
            Some(item) => text(&item),
        }
    }

    /// Returns the next item if it is ready. Unconstrained, because a test that never yields would exhaust its coop budget.
    pub(crate) fn now(&mut self) -> Option<Option<WatchItem>> {
        tokio::task::unconstrained(self.0.next()).now_or_never()
    }

    /// Returns all items that are ready, as text.
    pub(crate) fn ready(&mut self) -> Vec<String> {
        let mut items = Vec::new();
        while let Some(item) = self.now() {
            items.push(item.as_ref().map_or("EOF".to_owned(), text));
            if item.is_none() {
                break;
            }
        }
        items
    }

    /// Asserts that no item arrives within half a second.
    pub(crate) async fn assert_quiet(&mut self) {
        let next = tokio::time::timeout(Duration::from_millis(500), self.0.next()).await;
        assert!(next.is_err(), "expected no item, got {next:?}");
    }
}

pub(crate) fn text(item: &WatchItem) -> String {
    match item {
        WatchItem::Bookmark(Bookmark { revision, initial_events_end }) => {
            format!("BOOKMARK @{revision}{}", if *initial_events_end { " end" } else { "" })
        }
        WatchItem::Error(error) => format!("ERROR {error}"),
        WatchItem::Event(event) => {
            let (kind, stored) = (event.event_type().as_str(), event.object());
            let path = &stored.key["/things/".len()..];
            format!("{kind} {path} @{} v{}", event.revision(), number(stored))
        }
    }
}

/// The variant of a storage error, for comparison.
pub(crate) fn kind(error: &StorageError) -> &'static str {
    match error {
        StorageError::NotFound => "not found",
        StorageError::Exists(_) => "exists",
        StorageError::Conflict(_) => "conflict",
        StorageError::Compacted { .. } => "compacted",
        StorageError::Future { .. } => "future",
        StorageError::Internal { .. } => "internal",
        _ => "another",
    }
}
