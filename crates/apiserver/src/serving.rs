//! The resources that are served now, with their caches. CRDs replace the snapshot.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use imbl::OrdMap;
use tokio::sync::OnceCell;

use crate::custom::Installed;
use crate::registry::{Lifecycle, Object, Registry, Resource};
use crate::storage::{Change, Follower, Storage, StorageError, Stored};
use crate::watch_cache::{self, CacheOptions, WatchCache};

/// The served resources, kept current with the stored CRDs.
///
/// 1. [`snapshot`](Self::snapshot) is one consistent state: a kind that is in its registry has its cache in it.
/// 2. It follows the store of CRDs, so a CRD that another server wrote is served here too, and the response to a write
///    is sent only after every request sees the resources it creates.
/// 3. A write of a CRD that does not change its resources keeps caches and watches; any other change ends the watches of its
///    resources.
pub(crate) struct ServedResources {
    state: RwLock<State>,
    definitions: Arc<Resource>,
}

struct State {
    current: Arc<Snapshot>,
    /// By name of the CRD. Ordered, so that conflicts are resolved in the same way in every run.
    installed: BTreeMap<String, Definition>,
}

struct Definition {
    made: Installed,
    cache: Arc<Cache>,
}

/// Resources and caches at one moment. Persistent: a clone is O(1).
#[derive(Clone)]
pub(crate) struct Snapshot {
    pub(crate) registry: Registry,
    /// By storage prefix: all versions of a resource share one.
    stores: OrdMap<String, Store>,
}

/// The objects under one storage prefix.
#[derive(Clone)]
struct Store {
    /// The resource whose objects they are.
    owner: Arc<Resource>,
    cache: Arc<Cache>,
}

/// The cache of one resource, started when it is first used.
///
/// A watch may begin at any version since then, so a caller that needs all events starts it early.
#[derive(Debug)]
pub(crate) struct Cache {
    resource: watch_cache::Resource,
    cell: OnceCell<Arc<WatchCache>>,
}

impl Cache {
    fn of(resource: &Resource) -> Arc<Self> {
        let resource = watch_cache::Resource {
            prefix: resource.storage_prefix(),
            namespaced: resource.namespaced,
            cached: resource.watch_cached,
        };
        Arc::new(Self { resource, cell: OnceCell::new() })
    }

    pub(crate) async fn started(
        &self,
        storage: &Arc<dyn Storage>,
        options: &CacheOptions,
    ) -> Result<Arc<WatchCache>, StorageError> {
        let start = async || {
            WatchCache::start(Arc::clone(storage), self.resource.clone(), options.clone()).await.map(Arc::new)
        };
        self.cell.get_or_try_init(start).await.cloned()
    }

    /// Whether the cache can serve reads. A resource without a cache is always read from the store.
    pub(crate) fn is_ready(&self) -> bool {
        !self.resource.cached || self.if_started().is_some_and(|cache| cache.is_ready())
    }

    /// The cache, if it was started.
    pub(crate) fn if_started(&self) -> Option<&Arc<WatchCache>> {
        self.cell.get()
    }
}

impl Snapshot {
    fn built_in(registry: Registry) -> Self {
        let stored: Vec<Arc<Resource>> = registry.all().filter(|r| r.is_stored()).cloned().collect();
        let mut snapshot = Self { registry, stores: OrdMap::new() };
        // A resource that is stored as another one shares the store of that one.
        for resource in stored.iter().filter(|r| r.owns_store()) {
            snapshot.add_store(resource, Cache::of(resource));
        }
        for resource in &stored {
            if snapshot.cache(resource).is_none() {
                snapshot.add_store(resource, Cache::of(resource));
            }
        }
        snapshot
    }

    fn add_store(&mut self, owner: &Arc<Resource>, cache: Arc<Cache>) {
        let store = Store { owner: Arc::clone(owner), cache };
        self.stores.entry(owner.storage_prefix()).or_insert(store);
    }

    /// Adds the resources of a CRD. Those whose path is taken are left out.
    fn add(&mut self, definition: &Definition) {
        for resource in &definition.made.resources {
            self.registry.add(Arc::clone(resource));
            self.add_store(resource, Arc::clone(&definition.cache));
        }
    }

    /// Removes the resources of a CRD.
    fn remove(&mut self, definition: &Definition) {
        for resource in &definition.made.resources {
            self.registry.remove(resource);
            let prefix = resource.storage_prefix();
            if self.stores.get(&prefix).is_some_and(|store| Arc::ptr_eq(&store.cache, &definition.cache)) {
                self.stores.remove(&prefix);
            }
        }
    }

    pub(crate) fn cache(&self, resource: &Resource) -> Option<&Arc<Cache>> {
        self.stores.get(&resource.storage_prefix()).map(|store| &store.cache)
    }

    /// The resource, namespace and name of a storage key.
    pub(crate) fn locate<'k>(&self, key: &'k str) -> Option<(Arc<Resource>, Option<&'k str>, &'k str)> {
        let slashes: Vec<usize> = key.match_indices('/').map(|(at, _)| at).take(3).collect();
        // `/plural/…` or `/group/plural/…`
        let mut prefixes = slashes.iter().skip(1).map(|end| key.split_at(end + 1));
        let (owner, rest) = prefixes
            .find_map(|(prefix, rest)| Some((&self.stores.get(prefix)?.owner, rest)))
            .filter(|(owner, _)| owner.is_stored() && owner.owns_store())?;
        if !owner.namespaced {
            return Some((Arc::clone(owner), None, rest));
        }
        let (namespace, name) = rest.split_once('/')?;
        Some((Arc::clone(owner), Some(namespace), name))
    }

    /// Every cache once, in order of discovery.
    pub(crate) fn caches<'s>(&'s self, plural: Option<&'s str>) -> impl Iterator<Item = &'s Arc<Cache>> {
        let chosen = self.registry.all().filter(move |r| plural.is_none_or(|p| r.plural == p));
        let mut seen = HashSet::new();
        chosen.filter(move |r| seen.insert(r.storage_prefix())).filter_map(|r| self.cache(r))
    }
}

impl ServedResources {
    /// Serves the built-in resources.
    pub(crate) fn new() -> Arc<Self> {
        let current = Snapshot::built_in(Registry::built_in());
        let definitions = current.registry.with_lifecycle(Lifecycle::CustomResourceDefinition);
        let definitions = Arc::clone(definitions.expect("a built-in resource"));
        let state = RwLock::new(State { current: Arc::new(current), installed: BTreeMap::new() });
        Arc::new(Self { state, definitions })
    }

    /// The current state.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.read().current)
    }

    /// Whether a resource is served as it is: its CRD still exists with the same uid and is not being deleted.
    pub(crate) fn is_current(&self, resource: &Resource) -> bool {
        let Some(custom) = &resource.custom else { return true };
        let state = self.read();
        let made = state.installed.get(&custom.definition).map(|definition| &definition.made);
        made.is_some_and(|made| made.uid == custom.uid && !made.terminating)
    }

    /// A resource of a CRD.
    pub(crate) fn of_definition(&self, name: &str) -> Option<Arc<Resource>> {
        self.read().installed.get(name)?.made.resources.first().cloned()
    }

    /// The prefix under which CRDs are stored.
    pub(crate) fn definitions_prefix(&self) -> String {
        self.definitions.storage_prefix()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the resources of a CRD, or stops serving them.
    fn install(&self, name: &str, made: Option<Installed>) {
        let ended = { self.write().replace(name, made) };
        // A watch that is being opened ends when it finds its cache drained; all others end here.
        if let Some(watches) = ended.as_ref().and_then(|cache| cache.if_started()) {
            watches.drain_watches();
        }
    }
}

impl State {
    /// Replaces a CRD. Returns the cache whose watches must end.
    ///
    /// Takes time in proportion to the resources of this CRD, not to the number of CRDs.
    fn replace(&mut self, name: &str, made: Option<Installed>) -> Option<Arc<Cache>> {
        let old = self.installed.remove(name);
        if old.is_none() && made.is_none() {
            return None;
        }
        let mut next = Snapshot::clone(&self.current);
        if let Some(old) = &old {
            next.remove(old);
        }
        let ended = match made {
            None => old.map(|old| old.cache),
            Some(made) => {
                let (kept, ended) = match old {
                    Some(old) if old.made.has_same_resources(&made) => (Some(old.cache), None),
                    Some(old) => (None, Some(old.cache)),
                    None => (None, None),
                };
                if let Some(cache) = kept.or_else(|| made.resources.first().map(|r| Cache::of(r))) {
                    let definition = Definition { made, cache };
                    next.add(&definition);
                    self.installed.insert(name.to_owned(), definition);
                }
                ended
            }
        };
        self.current = Arc::new(next);
        ended
    }
}

/// The resources of a stored CRD. A malformed one has none, and is reported.
fn read(definitions: &Resource, stored: &Stored) -> Option<Installed> {
    let object = stored.to_value(&definitions.head).ok().and_then(Object::new)?;
    match Installed::read(&object) {
        Ok(made) => made,
        Err(error) => {
            tracing::warn!(definition = stored.name(), error, "the CRD is not served: replace or delete it");
            None
        }
    }
}

impl Follower for ServedResources {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let gone: Vec<String> = {
            let stored: HashSet<&str> = items.iter().map(|item| item.name()).collect();
            let state = self.read();
            state.installed.keys().filter(|name| !stored.contains(name.as_str())).cloned().collect()
        };
        gone.iter().for_each(|name| self.install(name, None));
        items.iter().for_each(|item| self.install(item.name(), read(&self.definitions, item)));
    }

    fn change(&self, change: &Arc<Change>) {
        match &change.current {
            Some(stored) => self.install(stored.name(), read(&self.definitions, stored)),
            None => self.install(change.key().rsplit('/').next().unwrap_or_default(), None),
        }
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// Resources stay served until the store is back and reports its state.
    fn lost(&self, _cause: &str) {}
}
