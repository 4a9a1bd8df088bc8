//! Shares one informer for each resource.

pub mod builtin;
mod options;

pub use options::InformerOptions;

use crate::{
    InformerBuilder, InformerError, KubeSource, Scope, ScopeError, SharedInformer, Stop, SyncError,
    Transform,
    kind::{kind_of, kind_of_resource},
    lister::Lister,
    persist::{Cluster, PersistError, PersistOptions, Persistence, authority_of},
    shared_informer::Core,
    source::{ClientError, informer_client},
    telemetry::ErrorHook,
    time,
};
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kube_informer_wire::{
    FieldSelector, Kind, LabelSelector, ListWatch, Omissions, Origin, Storage, sync::lock,
};
use std::{
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

/// Shares informers: all requests for the same resource return handles of one informer, with one watch and one cache.
///
/// 1. What is shared is the resource with its scope, selectors and transform, not the type: a typed, a slim
///    and a dynamic handle of one resource use one watch and one store.
/// 2. Requesting an informer registers it; each call of [`start`](Self::start) starts those that are not running.
/// 3. [`synced`](Self::synced) waits for all registered informers; its error names those that are not synced.
/// 4. After [`shutdown`](Self::shutdown) no informer runs, and none can be started.
///
/// Cloning gives another handle on the same factory.
#[derive(Clone)]
pub struct InformerFactory {
    shared: Arc<Shared>,
}

struct Shared {
    connect: Connect,
    defaults: InformerOptions,
    configure: Option<Configure>,
    persistence: Option<Persistence>,
    /// Held while an informer is looked up or added, never over an `.await` or code of the user.
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    informers: Vec<Entry>,
    shut_down: bool,
}

struct Entry {
    kind: Kind,
    options: InformerOptions,
    core: Arc<Core>,
}

impl Registry {
    fn find(&self, kind: &Kind, options: &InformerOptions) -> Option<Arc<Core>> {
        let same = |entry: &&Entry| same_resource(&entry.kind, kind) && entry.options.is_same(options);
        self.informers.iter().find(same).map(|entry| Arc::clone(&entry.core))
    }
}

type Configure = Arc<dyn Fn(InformerBuilder) -> InformerBuilder + Send + Sync>;
type MakeSource =
    Arc<dyn Fn(&Arc<Origin>, &InformerOptions, Option<&str>) -> Arc<dyn ListWatch> + Send + Sync>;

enum Connect {
    Client(kube::Client),
    Sources(MakeSource),
}

impl InformerFactory {
    /// A factory with a client of its own, made for informers: HTTP/2 with pings, no hidden
    /// retries. Prefer this constructor.
    pub fn from_config(config: kube::Config) -> Result<Self, ClientError> {
        Ok(Self::new(informer_client(config)?))
    }

    /// A factory on any client, without defaults.
    pub fn new(client: kube::Client) -> Self {
        Self::builder(client).build()
    }

    /// A factory on any client, with defaults of your own.
    pub fn builder(client: kube::Client) -> FactoryBuilder {
        FactoryBuilder::over(Connect::Client(client))
    }

    /// A factory with a client of its own, made for informers, with defaults of your own. It knows the certificate authority of
    /// the cluster, which [`persist`](FactoryBuilder::persist) needs.
    pub fn builder_from_config(config: kube::Config) -> Result<FactoryBuilder, ClientError> {
        let authority = authority_of(&config);
        Ok(FactoryBuilder { authority, ..Self::builder(informer_client(config)?) })
    }

    /// A factory on other sources than an API server: for tests.
    pub fn from_sources(
        source: impl Fn(&Arc<Origin>, &InformerOptions, Option<&str>) -> Arc<dyn ListWatch>
        + Send
        + Sync
        + 'static,
    ) -> FactoryBuilder {
        FactoryBuilder::over(Connect::Sources(Arc::new(source)))
    }

    /// The informer of a kind.
    pub fn of<K>(&self) -> SharedInformer<K>
    where
        K: kube::Resource<DynamicType = ()> + 'static,
        K::Scope: 'static,
    {
        self.of_as::<K, K>()
    }

    /// The informer of a kind, its objects read as another type: usually a small struct of yours.
    pub fn of_as<K, T: 'static>(&self) -> SharedInformer<T>
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.of_with::<K, T>(|options| options)
    }

    /// The informer of a kind with other options than the factory's defaults.
    ///
    /// ```no_run
    /// # use kube_informer::{InformerFactory, Scope};
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn example(factory: InformerFactory) -> Result<(), Box<dyn std::error::Error>> {
    /// let (shop, on_node) = (Scope::namespace("shop")?, "spec.nodeName=node-1".parse()?);
    /// let here = factory.of_with::<Pod, Pod>(|options| options.field_selector(on_node).scope(shop));
    /// # Ok(()) }
    /// ```
    pub fn of_with<K, T: 'static>(
        &self,
        options: impl FnOnce(InformerOptions) -> InformerOptions,
    ) -> SharedInformer<T>
    where
        K: kube::Resource<DynamicType = ()>,
        K::Scope: 'static,
    {
        self.of_kind(kind_of::<K>(), options)
    }

    /// The informer of a kind that is a value, read as any type: for kinds found by discovery
    /// ([`kind_of_discovered`](crate::kind_of_discovered)) or written down by hand. One that is not namespaced is
    /// covered whole, whatever the scope.
    pub fn of_kind<T: 'static>(
        &self,
        kind: Kind,
        options: impl FnOnce(InformerOptions) -> InformerOptions,
    ) -> SharedInformer<T> {
        let mut options = options(self.shared.defaults.clone());
        if !kind.namespaced {
            options.scope = Scope::all();
        }
        self.informer(kind, options)
    }

    /// The informer of a resource known only at run time. An [`ApiResource`] does not say whether it is namespaced;
    /// it is presumed to be, which matters only for a factory of single namespaces. See [`of_kind`](Self::of_kind).
    pub fn dynamic(&self, resource: &ApiResource) -> SharedInformer<DynamicObject> {
        self.dynamic_with(resource, |options| options)
    }

    /// The informer of a resource known only at run time, with other options than the factory's defaults.
    pub fn dynamic_with<T: 'static>(
        &self,
        resource: &ApiResource,
        options: impl FnOnce(InformerOptions) -> InformerOptions,
    ) -> SharedInformer<T> {
        self.of_kind(kind_of_resource(resource), options)
    }

    /// An informer of the metadata of a kind: the server sends nothing else.
    pub fn metadata<K>(&self) -> SharedInformer<PartialObjectMeta<K>>
    where
        K: kube::Resource<DynamicType = ()> + 'static,
        K::Scope: 'static,
    {
        self.of_with::<K, _>(|options| options.metadata_only(true))
    }

    /// Starts every registered informer that was not started.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn start(&self) {
        // An informer that is stopped meanwhile does not start.
        if !self.registry().shut_down {
            self.cores().iter().for_each(|core| core.start());
        }
    }

    /// Resolves when every registered informer has its initial list. The error names those that do not, with their status.
    pub async fn synced(&self, within: Duration) -> Result<(), SyncError> {
        let cores = self.cores();
        let all = async {
            for core in &cores {
                if core.until(|snapshot| snapshot.is_listed()).await.is_err() {
                    return false;
                }
            }
            true
        };
        match time::timeout(within, all).await {
            Ok(true) => Ok(()),
            _ => Err(SyncError { unsynced: cores.iter().flat_map(|core| core.unsynced()).collect() }),
        }
    }

    /// Stops every informer; events that are queued are dropped. When this resolves no handler is running, nor
    /// will be. An informer that is requested later is stopped from the beginning: it never starts, and waiting for it is an
    /// error.
    pub async fn shutdown(&self) {
        self.shutdown_with(Stop::Drop).await;
    }

    /// Stops every informer; undelivered events are delivered or dropped, as `stop` says.
    pub async fn shutdown_with(&self, stop: Stop) {
        self.registry().shut_down = true;
        let cores = self.cores();
        futures_util::future::join_all(cores.iter().map(|core| core.stop(stop))).await;
    }

    /// All registered informers.
    pub fn informers(&self) -> Vec<SharedInformer<DynamicObject>> {
        self.cores().into_iter().map(SharedInformer::from_core).collect()
    }

    fn informer<T: 'static>(&self, kind: Kind, options: InformerOptions) -> SharedInformer<T> {
        if let Some(core) = self.find(&kind, &options) {
            return SharedInformer::from_core(core);
        }
        // Without the lock, because the source and the configuration are code of the user, which may use the factory. If
        // another caller, or that code, registers the same informer meanwhile, that one is used.
        let made = self.make::<T>(kind.clone(), &options);
        let mut registry = self.registry();
        if registry.shut_down {
            drop(registry);
            made.core.refuse();
            return made;
        }
        match registry.find(&kind, &options) {
            Some(core) => {
                drop(registry);
                SharedInformer::from_core(core)
            }
            None => {
                registry.informers.push(Entry { kind, options, core: Arc::clone(&made.core) });
                made
            }
        }
    }

    /// The registered informer of a resource. One that was stopped on its own is removed, and dropped without the lock.
    fn find(&self, kind: &Kind, options: &InformerOptions) -> Option<Arc<Core>> {
        let mut registry = self.registry();
        let stopped: Vec<_> = registry.informers.extract_if(.., |entry| entry.core.is_stopped()).collect();
        let found = registry.find(kind, options);
        drop(registry);
        drop(stopped);
        found
    }

    fn make<T: 'static>(&self, kind: Kind, options: &InformerOptions) -> SharedInformer<T> {
        let origin = Arc::new(Origin::new(kind));
        let mut builder = InformerBuilder::new(Arc::clone(&origin));
        if let Some(configure) = &self.shared.configure {
            builder = configure(builder);
        }
        if options.storage != Storage::Memory {
            builder = builder.storage(options.storage.clone());
        }
        if let Some(persistence) = &self.shared.persistence {
            builder = builder.persist_in(persistence.clone());
        }
        builder
            .metadata_only(options.metadata_only)
            .label_selector(options.label_selector.clone())
            .field_selector(options.field_selector.clone())
            .shard_selector(options.shard_selector.clone())
            .scope(options.scope.clone())
            .transform(options.transform.clone())
            .build(|namespace| self.source(&origin, options, namespace))
    }

    fn source(
        &self,
        origin: &Arc<Origin>,
        options: &InformerOptions,
        namespace: Option<&str>,
    ) -> Arc<dyn ListWatch> {
        let client = match &self.shared.connect {
            Connect::Client(client) => client.clone(),
            Connect::Sources(source) if options.metadata_only => {
                return source(&origin.omitting(&Omissions::outside_metadata()), options, namespace);
            }
            Connect::Sources(source) => return source(origin, options, namespace),
        };
        let mut source = KubeSource::new(client, Arc::clone(origin), namespace)
            .labels(&options.label_selector)
            .fields(&options.field_selector)
            .shards(&options.shard_selector);
        if options.metadata_only {
            source = source.metadata_only();
        }
        if options.json_only || options.transform.has_functions() {
            source = source.json_only();
        }
        Arc::new(source)
    }

    fn cores(&self) -> Vec<Arc<Core>> {
        self.registry().informers.iter().map(|entry| Arc::clone(&entry.core)).collect()
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.shared.registry)
    }
}

/// Whether two kinds are one resource. A dynamic kind may lack the rest.
fn same_resource(a: &Kind, b: &Kind) -> bool {
    (&a.group, &a.version, &a.plural) == (&b.group, &b.version, &b.plural)
}

impl fmt::Debug for InformerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.informers()).finish()
    }
}

/// Defaults for the informers of a factory.
#[must_use = "a factory exists only once it is built"]
pub struct FactoryBuilder {
    connect: Connect,
    defaults: InformerOptions,
    resync: Option<Duration>,
    hook: Option<ErrorHook>,
    configure: Option<Configure>,
    /// The hash of the certificate authority of the cluster, if it is known.
    authority: Option<String>,
    persistence: Option<Persistence>,
}

impl FactoryBuilder {
    fn over(connect: Connect) -> Self {
        Self {
            connect,
            defaults: InformerOptions::default(),
            resync: None,
            hook: None,
            configure: None,
            authority: None,
            persistence: None,
        }
    }

    /// Saves the caches of all informers in a directory, so that the next process starts with them: a path, or
    /// [`PersistOptions`]. Opens the directory, which no other process may use. Informers that cannot be saved, such as those of
    /// Secrets without a key, work as without this; [`SharedInformer::persist_status`] says why.
    ///
    /// The options must name the cluster, unless the factory was built by
    /// [`builder_from_config`](InformerFactory::builder_from_config) and the configuration has a certificate authority.
    pub fn persist(mut self, options: impl Into<PersistOptions>) -> Result<Self, PersistError> {
        let known = match (&self.connect, &self.authority) {
            (Connect::Client(client), Some(hash)) => Some(Cluster::authority(hash.clone(), client.clone())),
            _ => None,
        };
        self.persistence = Some(options.into().open(known)?);
        Ok(self)
    }

    /// The namespaces of namespaced kinds; all by default.
    pub fn scope(mut self, scope: Scope) -> Self {
        self.defaults.scope = scope;
        self
    }

    /// One namespace for namespaced kinds.
    pub fn namespace(self, namespace: impl Into<String>) -> Result<Self, ScopeError> {
        Ok(self.scope(Scope::namespace(namespace)?))
    }

    /// A label selector for all kinds.
    pub fn label_selector(mut self, selector: LabelSelector) -> Self {
        self.defaults.label_selector = selector;
        self
    }

    /// A field selector for all kinds.
    pub fn field_selector(mut self, selector: FieldSelector) -> Self {
        self.defaults.field_selector = selector;
        self
    }

    /// The transform of every object before it is stored.
    pub fn transform(mut self, transform: Transform) -> Self {
        self.defaults.transform = transform;
        self
    }

    /// Where the content of the objects of all kinds is kept; in memory by default. For one kind, use
    /// [`InformerFactory::of_with`].
    pub fn storage(mut self, storage: Storage) -> Self {
        self.defaults.storage = storage;
        self
    }

    /// Period of resyncs, which update every object although nothing changed; never by default.
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = Some(period);
        self
    }

    /// Called for every failure, wherever it happens. Must not block.
    pub fn on_error(mut self, hook: impl Fn(&InformerError) + Send + Sync + 'static) -> Self {
        self.hook = Some(Arc::new(hook));
        self
    }

    /// Anything else about the informers: bounds, page sizes, backoff.
    pub fn configure(
        mut self,
        configure: impl Fn(InformerBuilder) -> InformerBuilder + Send + Sync + 'static,
    ) -> Self {
        self.configure = Some(Arc::new(configure));
        self
    }

    /// The factory.
    pub fn build(self) -> InformerFactory {
        let Self { connect, defaults, resync, hook, configure, persistence, .. } = self;
        let configure: Configure = Arc::new(move |mut builder| {
            if let Some(period) = resync {
                builder = builder.resync(period);
            }
            if let Some(hook) = hook.clone() {
                builder = builder.on_error(move |error| hook(error));
            }
            match &configure {
                Some(configure) => configure(builder),
                None => builder,
            }
        });
        let registry = Mutex::new(Registry::default());
        InformerFactory {
            shared: Arc::new(Shared { connect, defaults, configure: Some(configure), persistence, registry }),
        }
    }
}

impl fmt::Debug for FactoryBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryBuilder").field("defaults", &self.defaults).finish_non_exhaustive()
    }
}

/// A built-in kind of a factory, on the way to its informer or its lister.
pub struct InformerFor<K> {
    factory: InformerFactory,
    of: PhantomData<fn() -> K>,
}

impl<K> InformerFor<K>
where
    K: kube::Resource<DynamicType = ()> + 'static,
    K::Scope: 'static,
{
    fn new(factory: &InformerFactory) -> Self {
        Self { factory: factory.clone(), of: PhantomData }
    }

    /// The shared informer.
    pub fn informer(&self) -> SharedInformer<K> {
        self.factory.of()
    }

    /// Its lister.
    pub fn lister(&self) -> Lister<K> {
        self.informer().lister()
    }
}

impl<K> fmt::Debug for InformerFor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InformerFor({})", std::any::type_name::<K>())
    }
}
