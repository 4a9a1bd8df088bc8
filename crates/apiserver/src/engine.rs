//! Everything a request needs, in one place: store, kinds, caches, clock, chance.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use tokio::sync::{Semaphore, watch};

use crate::controllers::{Controllers, Switches};
use crate::faults::FaultRules;
use crate::metrics::Metrics;
use crate::registry::{Object, Registry, Resource};
use crate::server::Limits;
use crate::status::Status;
use crate::storage::{Document, Follower, Storage, StorageError, Stored};
use crate::watch_cache::{self, CacheOptions, CacheStats, WatchCache};

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
    pub(crate) limits: Limits,
    pub(crate) fault_endpoints: bool,
}

/// The server without its sockets.
pub(crate) struct Engine {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) registry: Registry,
    /// One cache per resource, by storage prefix; all of them from the start, so that a watch may begin at any version since.
    caches: HashMap<String, WatchCache>,
    namespaces: Arc<Resource>,
    clock: Clock,
    /// For uids and generated names. Locked for one draw at a time.
    rng: Mutex<fastrand::Rng>,
    /// Whether dying namespaces are emptied here, for want of a controller.
    pub(crate) empties_namespaces: bool,
    pub(crate) controllers: Arc<Controllers>,
    pub(crate) limits: Limits,
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
        let registry = Registry::built_in();
        let mut caches = HashMap::new();
        for resource in registry.all() {
            if !resource.is_stored() || caches.contains_key(&resource.storage_prefix()) {
                continue; // reviews need none, and two faces of one kind share theirs
            }
            let cached = watch_cache::Resource {
                prefix: resource.storage_prefix(),
                namespaced: resource.namespaced,
                cached: is_cached(resource),
            };
            let options = ingredients.cache_options.clone();
            let cache = WatchCache::start(Arc::clone(&ingredients.storage), cached, options).await?;
            caches.insert(resource.storage_prefix(), cache);
        }
        let namespaces = Arc::clone(registry.find("", "v1", "namespaces").expect("a built-in kind"));
        let engine = Arc::new(Self {
            storage: ingredients.storage,
            registry,
            caches,
            namespaces,
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
        engine.seed_namespaces().await;
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

    /// The resource of namespaces.
    pub(crate) fn namespaces(&self) -> &Resource {
        &self.namespaces
    }

    pub(crate) fn cache(&self, resource: &Resource) -> Result<&WatchCache, Status> {
        self.caches
            .get(&resource.storage_prefix())
            .ok_or_else(|| Status::internal("no cache for this resource"))
    }

    /// The caches of a resource by plural name, or of all.
    pub(crate) fn caches<'a>(&'a self, plural: Option<&'a str>) -> impl Iterator<Item = &'a WatchCache> {
        let chosen = self.registry.all().filter(move |r| plural.is_none_or(|p| r.plural == p));
        chosen.filter_map(|r| self.caches.get(&r.storage_prefix()))
    }

    /// Whether every resource that has a cache can be read from it.
    pub(crate) fn caches_ready(&self) -> bool {
        let cached = self.registry.all().filter(|r| is_cached(r));
        cached.filter_map(|r| self.caches.get(&r.storage_prefix())).all(WatchCache::is_ready)
    }

    /// Every cache once, under the first resource that uses it.
    pub(crate) fn cache_stats(&self) -> Vec<(Arc<Resource>, CacheStats)> {
        let mut seen = HashSet::new();
        let once = self.registry.all().filter(|r| seen.insert(r.storage_prefix()));
        once.filter_map(|r| Some((Arc::clone(r), self.cache(r).ok()?.stats()))).collect()
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
        if let Some(conversion) = resource.conversion {
            conversion.show(object.root_mut());
        }
        Ok(object)
    }

    /// An object as it is stored, with what selectors will look at.
    pub(crate) fn document(&self, resource: &Resource, object: &Object) -> Result<Document, Status> {
        if let Some(conversion) = resource.conversion {
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
    let fields = resource.rules.fields.values(object);
    let fields = fields.iter().map(|(label, value)| (*label, value.as_str()));
    Document::encode(object.value(), fields).map_err(Status::internal)
}

/// Events come and go too fast to be worth a cache; every other kind has one.
fn is_cached(resource: &Resource) -> bool {
    resource.plural != "events"
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Engine({} resources)", self.caches.len())
    }
}
