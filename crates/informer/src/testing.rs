//! A collection in memory, for tests of code that uses informers.
//!
//! [`FakeSource`] serves lists and watches as an API server does, with versions and history, and fails on demand in the
//! ways a server, a proxy or a network can.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kube_informer::{Kind, testing::FakeSource};
//! use serde_json::json;
//! use std::time::Duration;
//!
//! let source = FakeSource::new(Kind::namespaced("", "v1", "ConfigMap", "configmaps"));
//! source.put(json!({"metadata": {"namespace": "shop", "name": "prices"}}));
//! let informer = source.informer::<serde_json::Value>(|builder| builder);
//! informer.start();
//! informer.synced(Duration::from_secs(5)).await?;
//! assert_eq!(informer.lister().len(), 1);
//!
//! source.expire_history(); // the next watch fails with 410
//! source.cut();
//! source.delete("shop/prices");
//! informer.wait_until(&"shop/prices".parse()?, Duration::from_secs(30), |object| object.is_none()).await?;
//! # Ok(()) }
//! ```

mod faults;
mod responses;

pub use faults::Fault;
pub use faults::Request;

use crate::{InformerBuilder, SharedInformer};
use faults::Faults;
use kube_informer_wire::sync::lock;
use kube_informer_wire::{
    BoxFuture, Kind, Limits, ListOptions, ListStream, ListWatch, ListWatchError, Object, ObjectKey, Origin,
    Status, WatchEvent, WatchOptions, WatchStream,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::sync::mpsc;

/// A collection in memory that can be listed and watched, and made to fail. Cloning gives another handle.
#[derive(Clone)]
pub struct FakeSource {
    origin: Arc<Origin>,
    state: Arc<Mutex<State>>,
}

struct State {
    origin: Arc<Origin>,
    /// The version of the last change. Starts above 1, so that earlier versions exist.
    version: u64,
    /// Current state of each object, with its version and uid.
    objects: BTreeMap<ObjectKey, Value>,
    /// Every change since `floor`, oldest first.
    history: Vec<Change>,
    /// Versions before this one have expired.
    floor: u64,
    /// Lists that are being read in pages, by version.
    paged_lists: BTreeMap<u64, Vec<Value>>,
    watchers: Vec<Watcher>,
    faults: Faults,
    requests: Vec<Request>,
    uids: u64,
}

#[derive(Clone)]
struct Change {
    version: u64,
    kind: ChangeKind,
    object: Value,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    Added,
    Modified,
    Deleted,
}

struct Watcher {
    namespace: Option<String>,
    events: mpsc::UnboundedSender<Result<WatchEvent, ListWatchError>>,
}

impl FakeSource {
    /// Creates an empty collection.
    pub fn new(kind: Kind) -> Self {
        let origin = Arc::new(Origin::new(kind));
        let state = State {
            origin: Arc::clone(&origin),
            version: 100,
            objects: BTreeMap::new(),
            history: Vec::new(),
            floor: 100,
            paged_lists: BTreeMap::new(),
            watchers: Vec::new(),
            faults: Faults::default(),
            requests: Vec::new(),
            uids: 0,
        };
        Self { origin, state: Arc::new(Mutex::new(state)) }
    }

    /// The data that all objects of the collection share.
    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Builds an informer of this collection.
    pub fn informer<T: 'static>(
        &self,
        configure: impl FnOnce(InformerBuilder) -> InformerBuilder,
    ) -> SharedInformer<T> {
        let builder = InformerBuilder::new(Arc::clone(&self.origin)).seed(1);
        configure(builder).build(|namespace| self.source(namespace))
    }

    /// The collection as a source, or the part of it in one namespace.
    pub fn source(&self, namespace: Option<&str>) -> Arc<dyn ListWatch> {
        Arc::new(Scoped { source: self.clone(), namespace: namespace.map(str::to_owned) })
    }

    /// Creates or replaces an object and returns its new version. Only `metadata.name` is required; uid and version are
    /// set by this method.
    pub fn put(&self, object: Value) -> u64 {
        self.lock().put(object, true)
    }

    /// Like [`put`](Self::put), without an event in any watch.
    pub fn put_unnoticed(&self, object: Value) -> u64 {
        self.lock().put(object, false)
    }

    /// Deletes an object by its `namespace/name` and returns the version of the deletion.
    pub fn delete(&self, key: &str) -> Option<u64> {
        self.lock().delete(key, true)
    }

    /// Like [`delete`](Self::delete), without an event in any watch.
    pub fn delete_unnoticed(&self, key: &str) -> Option<u64> {
        self.lock().delete(key, false)
    }

    /// The version of the last change.
    pub fn version(&self) -> u64 {
        self.lock().version
    }

    /// The current objects in key order.
    pub fn objects(&self) -> Vec<Value> {
        self.lock().objects.values().cloned().collect()
    }

    /// Skips versions: the next change gets a version that is higher by `count`.
    pub fn skip_versions(&self, count: u64) {
        self.lock().version += count;
    }

    /// Replaces the collection with other objects at an older version, like a restore from a backup. Watches end.
    pub fn restore(&self, version: u64, objects: Vec<Value>) {
        let mut state = self.lock();
        state.objects = objects.into_iter().map(|object| (key_of(&object), object)).collect();
        (state.version, state.floor) = (version, version);
        state.history.clear();
        state.paged_lists.clear();
        state.watchers.clear();
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// Number of open watches.
    pub fn open_watches(&self) -> usize {
        let mut state = self.lock();
        state.watchers.retain(|watcher| !watcher.events.is_closed());
        state.watchers.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl fmt::Debug for FakeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FakeSource({}, {} objects)", self.origin.kind(), self.lock().objects.len())
    }
}

impl State {
    fn put(&mut self, mut object: Value, notify: bool) -> u64 {
        self.version += 1;
        let key = key_of(&object);
        let known = self.objects.get(&key);
        let kind = if known.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        let uid = match (object.pointer("/metadata/uid"), known) {
            (Some(uid), _) => uid.clone(),
            (None, Some(known)) => known["metadata"]["uid"].clone(),
            (None, None) => {
                self.uids += 1;
                format!("00000000-0000-4000-8000-{:012x}", self.uids).into()
            }
        };
        object["metadata"]["uid"] = uid;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(key, object.clone());
        self.record(kind, object, notify);
        self.version
    }

    fn delete(&mut self, key: &str, notify: bool) -> Option<u64> {
        let mut object = self.objects.remove(key)?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.record(ChangeKind::Deleted, object, notify);
        Some(self.version)
    }

    fn record(&mut self, kind: ChangeKind, object: Value, notify: bool) {
        let change = Change { version: self.version, kind, object };
        if notify {
            self.history.push(change.clone());
            self.announce(&change);
        }
    }
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object.pointer(field).and_then(Value::as_str);
    ObjectKey::new(text("/metadata/namespace"), text("/metadata/name").unwrap_or_default())
}

/// The URL in errors.
const URL: &str = "/fake";

struct Scoped {
    source: FakeSource,
    namespace: Option<String>,
}

impl ListWatch for Scoped {
    fn list(&self, options: ListOptions) -> BoxFuture<'_, Result<ListStream, ListWatchError>> {
        Box::pin(async move {
            let fault = self.source.lock().begin(Request::List(options.clone()));
            self.source.inject(fault).await?;
            self.source.list(&options, self.namespace.as_deref())
        })
    }

    fn watch(&self, options: WatchOptions) -> BoxFuture<'_, Result<WatchStream, ListWatchError>> {
        Box::pin(async move {
            let fault = self.source.lock().begin(Request::Watch(options.clone()));
            self.source.inject(fault).await?;
            self.source.watch(&options, self.namespace.as_deref())
        })
    }

    fn get(&self, key: &ObjectKey) -> BoxFuture<'_, Result<Option<Object<Value>>, ListWatchError>> {
        let key = key.clone();
        Box::pin(async move {
            let fault = self.source.lock().begin(Request::Get(key.clone()));
            self.source.inject(fault).await?;
            let state = self.source.lock();
            Ok(state.objects.get(&key).and_then(|object| encode(&state.origin, object).ok()))
        })
    }

    fn list_url(&self, _: &ListOptions) -> Arc<str> {
        URL.into()
    }

    fn watch_url(&self, _: &WatchOptions) -> Arc<str> {
        URL.into()
    }

    fn supports_streaming_list(&self) -> bool {
        true
    }
}

/// The object as it is sent.
fn encode(origin: &Arc<Origin>, object: &Value) -> Result<Object<Value>, kube_informer_wire::Malformed> {
    Object::parse(origin, object.to_string().into(), &Limits::default())
}

fn status(code: u16, reason: &str, message: &str) -> Status {
    Status::failure(code, reason, message)
}

fn bookmark_object(version: u64, end: bool) -> Value {
    let annotations = if end { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    json!({"metadata": {"resourceVersion": version.to_string(), "annotations": annotations}})
}
