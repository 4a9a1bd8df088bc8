//! A cache of packed objects, with the methods of `kube_runtime`'s.

use super::{ObjectRef, ReflectHandle, subscription::Subscriptions};
use crate::kube_runtime::watcher;
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use kube_informer::{Kind, Limits, Object, ObjectKey, Origin, Packing, SharedInformer};
use kube_informer_wire::{Packer, sync::lock};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::watch;

/// A cache of objects, which are packed and decoded when they are read. Cloning is a reference count.
///
/// - [`get`](Self::get) decodes one object, and [`find`](Self::find) one at a time.
/// - [`state`](Self::state) decodes **all** objects. Prefer the others, and [`len`](Self::len).
/// - Objects that cannot be decoded are left out, and logged.
///
/// ```
/// use futures_util::StreamExt;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::Api;
/// use kube_informer_controller::kube_runtime::{
///     WatchStreamExt,
///     reflector::{self, ObjectRef},
///     watcher,
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// # let mut config = ConfigMap::default();
/// # config.metadata.name = Some("a".to_owned());
/// let configs = Api::<ConfigMap>::default_namespaced(client);
/// # configs.create(&Default::default(), &config).await?;
/// let (store, writer) = reflector::store();
/// let changes = watcher(configs, watcher::Config::default()).reflect(writer).applied_objects();
/// tokio::spawn(changes.for_each(async |change| drop(change))); // the stream fills the store
/// store.wait_until_ready().await?;
/// assert!(store.get(&ObjectRef::new("a").within("default")).is_some());
/// assert_eq!((store.len(), store.find(|config| config.data.is_some())), (1, None));
/// # Ok(()) }
/// ```
pub struct Store<K> {
    cache: Cache<K>,
}

enum Cache<K> {
    /// Filled by a [`Writer`].
    Written(Arc<Written<K>>),
    /// The cache of a controller.
    Informer(SharedInformer<K>),
}

/// The store was not filled: the [`Writer`] was dropped, or the controller stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store was not filled, because {0}")]
pub struct WriterDropped(String);

impl<K: 'static> Store<K> {
    pub(crate) fn of_informer(informer: SharedInformer<K>) -> Self {
        Self { cache: Cache::Informer(informer) }
    }

    /// Resolves when the first list is complete. The stream that fills the store has to be polled meanwhile.
    pub async fn wait_until_ready(&self) -> Result<(), WriterDropped> {
        match &self.cache {
            Cache::Written(written) => {
                let mut ready = written.ready.clone();
                let ready = ready.wait_for(|ready| *ready).await;
                ready.map(drop).map_err(|_| WriterDropped("its writer was dropped".to_owned()))
            }
            Cache::Informer(informer) => {
                informer.synced(Duration::MAX).await.map_err(|error| WriterDropped(error.to_string()))
            }
        }
    }

    /// Whether it is the cache of a controller, which starts with it.
    pub(crate) fn is_informer(&self) -> bool {
        matches!(self.cache, Cache::Informer(_))
    }

    /// Number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.cache {
            Cache::Written(written) => lock(&written.objects).len(),
            Cache::Informer(informer) => informer.lister().len(),
        }
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All keys.
    pub(crate) fn keys(&self) -> Vec<ObjectKey> {
        match &self.cache {
            Cache::Written(written) => lock(&written.objects).keys().cloned().collect(),
            Cache::Informer(informer) => {
                informer.lister().snapshot().iter().map(|object| object.key().clone()).collect()
            }
        }
    }
}

impl<K: Resource + DeserializeOwned + Send + Sync + 'static> Store<K> {
    /// The object that a reference names. The namespace of the reference is ignored for cluster-scoped objects.
    #[must_use]
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        self.get_key(&reference.key())
    }

    pub(crate) fn get_key(&self, key: &ObjectKey) -> Option<Arc<K>> {
        let entry = self.entry(key).or_else(|| self.entry(&ObjectKey::new(None, key.name())))?;
        entry.decode()
    }

    fn entry(&self, key: &ObjectKey) -> Option<Entry<K>> {
        match &self.cache {
            Cache::Written(written) => lock(&written.objects).get(key).cloned(),
            Cache::Informer(informer) => informer.lister().get(key).map(Entry::Packed),
        }
    }

    /// All objects, decoded. Takes the time and the memory of all of them: prefer [`get`](Self::get),
    /// [`find`](Self::find) and [`len`](Self::len).
    #[must_use]
    pub fn state(&self) -> Vec<Arc<K>> {
        self.decoded().collect()
    }

    /// An object for which `predicate` is true. Decodes one object at a time.
    #[must_use]
    pub fn find(&self, predicate: impl Fn(&K) -> bool) -> Option<Arc<K>> {
        self.decoded().find(|object| predicate(object))
    }

    /// The objects for which `predicate` is true. Decodes one object at a time.
    #[must_use]
    pub fn state_filter(&self, predicate: impl Fn(&K) -> bool) -> Vec<Arc<K>> {
        self.decoded().filter(|object| predicate(object)).collect()
    }

    /// The objects whose labels match a selector.
    #[must_use]
    pub fn state_filter_selector(&self, selector: &Selector) -> Vec<Arc<K>> {
        self.state_filter(|object| selector.matches(object.labels()))
    }

    fn decoded(&self) -> impl Iterator<Item = Arc<K>> + use<K> {
        let entries: Vec<_> = match &self.cache {
            Cache::Written(written) => lock(&written.objects).values().cloned().collect(),
            Cache::Informer(informer) => {
                informer.lister().snapshot().iter().map(|object| Entry::Packed(object.clone())).collect()
            }
        };
        entries.into_iter().filter_map(|entry| entry.decode())
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        let cache = match &self.cache {
            Cache::Written(written) => Cache::Written(Arc::clone(written)),
            Cache::Informer(informer) => Cache::Informer(informer.clone()),
        };
        Self { cache }
    }
}

impl<K: 'static> fmt::Debug for Store<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Store({} objects)", self.len())
    }
}

/// The objects that a [`Writer`] wrote.
struct Written<K> {
    objects: Mutex<HashMap<ObjectKey, Entry<K>>>,
    ready: watch::Receiver<bool>,
}

/// A cached object.
enum Entry<K> {
    Packed(Object<K>),
    /// It cannot be packed: it has no resource version, for example.
    Decoded(Arc<K>),
}

impl<K> Clone for Entry<K> {
    fn clone(&self) -> Self {
        match self {
            Self::Packed(object) => Self::Packed(object.clone()),
            Self::Decoded(object) => Self::Decoded(Arc::clone(object)),
        }
    }
}

impl<K: DeserializeOwned + Send + Sync + 'static> Entry<K> {
    fn decode(&self) -> Option<Arc<K>> {
        match self {
            Self::Decoded(object) => Some(Arc::clone(object)),
            Self::Packed(object) => match object.decode() {
                Ok(decoded) => Some(decoded),
                Err(error) => {
                    tracing::warn!(?object, %error, "a cached object cannot be decoded");
                    None
                }
            },
        }
    }
}

/// Fills a [`Store`].
pub struct Writer<K> {
    written: Arc<Written<K>>,
    /// The objects of a list that is not complete.
    listed: HashMap<ObjectKey, Entry<K>>,
    origin: Arc<Origin>,
    packer: Packer,
    ready: watch::Sender<bool>,
    /// `None` if the store is not shared.
    subscriptions: Option<Arc<Subscriptions>>,
}

impl<K: Resource> Writer<K> {
    /// A writer to an empty store.
    pub fn new(dyntype: K::DynamicType) -> Self {
        let kind = Kind {
            group: K::group(&dyntype).into_owned(),
            version: K::version(&dyntype).into_owned(),
            kind: K::kind(&dyntype).into_owned(),
            plural: K::plural(&dyntype).into_owned(),
            namespaced: true,
        };
        let (ready, is_ready) = watch::channel(false);
        Self {
            written: Arc::new(Written { objects: Mutex::default(), ready: is_ready }),
            listed: HashMap::new(),
            origin: Arc::new(Origin::new(kind)),
            packer: Packer::new(Packing::Packed),
            ready,
            subscriptions: None,
        }
    }

    /// A writer to an empty store that can be [subscribed](Self::subscribe) to. The buffer size is not used: subscribers need no
    /// buffer.
    pub fn new_shared(_buffer_size: usize, dyntype: K::DynamicType) -> Self {
        let mut writer = Self::new(dyntype);
        writer.subscriptions = Some(Arc::default());
        writer
    }

    /// The store.
    #[must_use]
    pub fn as_reader(&self) -> Store<K> {
        Store { cache: Cache::Written(Arc::clone(&self.written)) }
    }

    /// A stream of the objects that are written from now on; `None` if the store is not [shared](store_shared).
    #[must_use]
    pub fn subscribe(&self) -> Option<ReflectHandle<K>> {
        self.subscriptions.as_ref().map(|all| ReflectHandle::new(self.as_reader(), all))
    }
}

impl<K> Writer<K>
where
    K: Resource + Serialize + DeserializeOwned + Clone + Send + Sync + 'static,
{
    /// Applies an event to the store.
    pub fn apply_watcher_event(&mut self, event: &watcher::Event<K>) {
        match event {
            watcher::Event::Apply(object) => {
                let (key, entry) = self.entry(object);
                lock(&self.written.objects).insert(key.clone(), entry);
                self.notify([&key].into_iter());
            }
            watcher::Event::Delete(object) => {
                lock(&self.written.objects).remove(&key(object));
            }
            watcher::Event::Init => self.listed = HashMap::new(),
            watcher::Event::InitApply(object) => {
                let (key, entry) = self.entry(object);
                self.listed.insert(key, entry);
            }
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                let keys: Vec<_> = listed.keys().cloned().collect();
                self.packer.keeps(listed.len());
                let replaced = std::mem::replace(&mut *lock(&self.written.objects), listed);
                drop(replaced);
                self.ready.send_replace(true);
                self.notify(keys.iter());
            }
        }
    }

    fn notify<'a>(&self, keys: impl Iterator<Item = &'a ObjectKey> + Clone) {
        if let Some(subscriptions) = &self.subscriptions {
            subscriptions.notify(keys);
        }
    }

    fn entry(&self, object: &K) -> (ObjectKey, Entry<K>) {
        let packed = serde_json::to_vec(object)
            .ok()
            .and_then(|json| Object::parse(&self.origin, json.into(), &Limits::default()).ok())
            .map(|parsed| Entry::Packed(self.packer.pack(parsed).cast()));
        (key(object), packed.unwrap_or_else(|| Entry::Decoded(Arc::new(object.clone()))))
    }
}

fn key<K: Resource>(object: &K) -> ObjectKey {
    let meta = object.meta();
    ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref().unwrap_or_default())
}

impl<K: Resource> Default for Writer<K>
where
    K::DynamicType: Default,
{
    fn default() -> Self {
        Self::new(K::DynamicType::default())
    }
}

impl<K> Drop for Writer<K> {
    fn drop(&mut self) {
        if let Some(subscriptions) = &self.subscriptions {
            subscriptions.close();
        }
    }
}

impl<K> fmt::Debug for Writer<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Writer({} objects)", lock(&self.written.objects).len())
    }
}

/// An empty store, and its writer for [`reflector`](super::reflector()).
#[must_use]
pub fn store<K: Resource>() -> (Store<K>, Writer<K>)
where
    K::DynamicType: Default,
{
    let writer = Writer::default();
    (writer.as_reader(), writer)
}

/// An empty store that can be [subscribed](Writer::subscribe) to, and its writer. The buffer size is not used: subscribers need
/// no buffer.
#[must_use]
pub fn store_shared<K: Resource>(buffer_size: usize) -> (Store<K>, Writer<K>)
where
    K::DynamicType: Default,
{
    let writer = Writer::new_shared(buffer_size, K::DynamicType::default());
    (writer.as_reader(), writer)
}
