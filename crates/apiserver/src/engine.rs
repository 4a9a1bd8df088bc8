//! Everything a request needs, in one place: store, kinds, caches, clock, chance.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};

use crate::controllers::{Controllers, Switches};
use crate::faults::FaultRules;
use crate::metrics::Metrics;
use crate::registry::{Lifecycle, Object, Resource};
use crate::server::ServerLimits;
use crate::serving::{Serving, Snapshot};
use crate::status::Status;
use crate::storage::{Document, Follower, Storage, StorageError, Stored};
use crate::watch_cache::{CacheOptions, CacheStats, WatchCache};

/// Tells the time of day, for timestamps that users see.
pub(crate) type Clock = Box<dyn Fn() -> SystemTime + Send + Sync>;

/// What a server is made of.
pub(crate) struct Ingredients {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) cache_options: CacheOptions,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) empties_namespaces: bool,
    pub(crate) controllers: Switches,
    pub(crate) limits: ServerLimits,
    pub(crate) fault_endpoints: bool,
}

/// The server without its sockets.
pub(crate) struct Engine {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) serving: Arc<Serving>,
    cache_options: CacheOptions,
    namespaces: Arc<Resource>,
    pub(crate) definitions: Arc<Resource>,
    /// Whose turn it is to take names for a definition.
    pub(crate) naming: tokio::sync::Mutex<()>,
    clock: Clock,
    /// For uids and generated names. Locked for one draw at a time.
    rng: Mutex<fastrand::Rng>,
    /// Whether dying namespaces are emptied here, for want of a controller.
    pub(crate) empties_namespaces: bool,
    pub(crate) controllers: Arc<Controllers>,
    pub(crate) limits: ServerLimits,
    /// One permit per watch that may still be opened.
    pub(crate) watches: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) faults: FaultRules,
    /// Whether faults can be switched over HTTP.
    pub(crate) fault_endpoints: bool,
    /// Turns true when the server shuts down; ends every watch.
    closing: watch::Sender<bool>,
}

impl Engine {
    pub(crate) async fn new(ingredients: Ingredients) -> Result<Arc<Self>, StorageError> {
        let serving = Serving::new();
        let built_in = |lifecycle| {
            Arc::clone(serving.now().registry.with_lifecycle(lifecycle).expect("a built-in resource"))
        };
        let namespaces = built_in(Lifecycle::Namespace);
        let definitions = built_in(Lifecycle::CustomResourceDefinition);
        let engine = Arc::new(Self {
            storage: ingredients.storage,
            serving,
            cache_options: ingredients.cache_options,
            namespaces,
            definitions,
            naming: tokio::sync::Mutex::default(),
            clock: ingredients.clock,
            rng: Mutex::new(fastrand::Rng::with_seed(ingredients.seed)),
            empties_namespaces: ingredients.empties_namespaces,
            controllers: Controllers::new(ingredients.controllers),
            watches: Arc::new(Semaphore::new(ingredients.limits.watches.min(Semaphore::MAX_PERMITS))),
            limits: ingredients.limits,
            metrics: Metrics::default(),
            faults: FaultRules::default(),
            fault_endpoints: ingredients.fault_endpoints,
            closing: watch::channel(false).0,
        });
        let follower: Arc<dyn Follower> = Arc::clone(&engine.serving) as _;
        engine.storage.follow(&engine.definitions.storage_prefix(), Arc::downgrade(&follower)).await?;
        engine.start_caches().await?;
        engine.seed_namespaces().await;
        engine.settle_definitions().await;
        engine.start_controllers().await?;
        Ok(engine)
    }

    async fn start_controllers(&self) -> Result<(), StorageError> {
        if self.controllers.switches.any() {
            let follower: Arc<dyn Follower> = Arc::clone(&self.controllers) as _;
            self.storage.follow("/", Arc::downgrade(&follower)).await?;
            self.tend().await;
        }
        Ok(())
    }

    /// Starts every cache, so that a watch may begin at any version since.
    async fn start_caches(&self) -> Result<(), StorageError> {
        for cache in self.serving.now().caches(None) {
            cache.started(&self.storage, &self.cache_options).await?;
        }
        Ok(())
    }

    /// What is served at this moment.
    pub(crate) fn now(&self) -> Arc<Snapshot> {
        self.serving.now()
    }

    /// The resource of namespaces.
    pub(crate) fn namespaces(&self) -> &Resource {
        &self.namespaces
    }

    /// The cache of a resource; a resource that is no longer served has none.
    pub(crate) async fn cache(&self, resource: &Resource) -> Result<Arc<WatchCache>, Status> {
        let now = self.now();
        let cache = now.cache(resource).ok_or_else(Status::no_such_resource)?;
        cache.started(&self.storage, &self.cache_options).await.map_err(Status::internal)
    }

    /// The caches of a resource by plural name, or of all.
    pub(crate) fn caches(&self, plural: Option<&str>) -> Vec<Arc<WatchCache>> {
        self.now().caches(plural).filter_map(|cache| cache.if_started().cloned()).collect()
    }

    /// Whether every built-in resource that has a cache can be read from it. Those of definitions start when they are used.
    pub(crate) fn caches_ready(&self) -> bool {
        let now = self.now();
        let built_in = now.registry.all().filter(|r| r.custom.is_none() && r.is_stored());
        built_in.filter_map(|r| now.cache(r)).all(|cache| cache.is_ready())
    }

    /// Every cache once, under the first resource that uses it.
    pub(crate) fn cache_stats(&self) -> Vec<(Arc<Resource>, CacheStats)> {
        let mut seen = HashSet::new();
        let now = self.now();
        let once = now.registry.all().filter(|r| seen.insert(r.storage_prefix()));
        once.filter_map(|r| Some((Arc::clone(r), now.cache(r)?.if_started()?.stats()))).collect()
    }

    pub(crate) fn rng(&self) -> MutexGuard<'_, fastrand::Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn new_uid(&self) -> String {
        let mut bytes = [0; 16];
        self.rng().fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Now, in seconds since 1970.
    pub(crate) fn now_seconds(&self) -> i64 {
        Timestamp::try_from((self.clock)()).unwrap_or_default().as_second()
    }

    /// Now, as objects show it.
    pub(crate) fn now_text(&self) -> String {
        self.text_in(0)
    }

    /// So many seconds from now, as objects show it.
    pub(crate) fn text_in(&self, seconds: i64) -> String {
        let then = (self.clock)() + Duration::from_secs(seconds.max(0).unsigned_abs());
        let then = Timestamp::try_from(then).unwrap_or_default();
        then.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    /// A stored version as an object with its type and version.
    pub(crate) fn object(&self, resource: &Resource, stored: &Stored) -> Result<Object, Status> {
        let value = stored.to_value(&resource.head).map_err(Status::internal)?;
        let mut object =
            Object::new(value).ok_or_else(|| Status::internal("a stored object has no metadata"))?;
        if let Some(conversion) = &resource.conversion {
            conversion.show(object.root_mut());
        }
        Ok(object)
    }

    /// An object as it is stored, with what selectors will look at.
    pub(crate) fn document(&self, resource: &Resource, object: &Object) -> Result<Document, Status> {
        if let Some(conversion) = &resource.conversion {
            let mut stored = object.clone();
            conversion.store(stored.root_mut());
            return encode(resource, &stored);
        }
        encode(resource, object)
    }

    /// The answer to a write that the store refused for a reason of its own.
    pub(crate) fn storage_status(&self, resource: &Resource, name: &str, error: StorageError) -> Status {
        match error {
            StorageError::NotFound => Status::not_found(resource, name),
            StorageError::Exists(_) => Status::already_exists(resource, name, false),
            StorageError::Conflict(_) => Status::modified(resource, name),
            other => Status::internal(other),
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }

    /// Ends every watch and refuses new requests.
    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Wakes when the server shuts down.
    pub(crate) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }
}

fn encode(resource: &Resource, object: &Object) -> Result<Document, Status> {
    let fields = resource.field_values(object);
    let fields = fields.iter().map(|(label, value)| (*label, value.as_str()));
    Document::encode(object.value(), fields).map_err(Status::internal)
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} resources)", self.now().registry.all().count())
    }
}
