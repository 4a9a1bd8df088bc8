//! The resources that are served now, with their caches. Custom resource definitions replace the snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::OnceCell;

use crate::custom::Installed;
use crate::registry::{Lifecycle, Object, Registry, Resource};
use crate::storage::{Change, Follower, Storage, StorageError, Stored};
use crate::watch_cache::{self, CacheOptions, WatchCache};

/// The served resources, kept current with the stored definitions.
///
/// 1. [`snapshot`](Self::snapshot) is one consistent state: a kind that is in its registry has its cache in it.
/// 2. It follows the store of definitions, so a definition that another server wrote is served here too, and the response to a write
///    is sent only after every request sees the resources it creates.
/// 3. A write of a definition that does not change its resources keeps caches and watches; any other change ends the watches of its
///    resources.
pub(crate) struct ServedResources {
    state: RwLock<State>,
    /// The resources no definition can change.
    built_in: Registry,
    definitions: Arc<Resource>,
}

struct State {
    current: Arc<Snapshot>,
    /// By name of the definition. Ordered, so that conflicts are resolved in the same way in every run.
    installed: BTreeMap<String, Definition>,
}

struct Definition {
    made: Installed,
    cache: Arc<Cache>,
}

/// Resources and caches at one moment.
pub(crate) struct Snapshot {
    pub(crate) registry: Registry,
    /// By storage prefix: all versions of a resource share one.
    caches: HashMap<String, Arc<Cache>>,
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
    pub(crate) fn cache(&self, resource: &Resource) -> Option<&Arc<Cache>> {
        self.caches.get(&resource.storage_prefix())
    }

    /// The resource, namespace and name of a storage key.
    pub(crate) fn locate<'k>(&self, key: &'k str) -> Option<(Arc<Resource>, Option<&'k str>, &'k str)> {
        let mut own = self.registry.all().filter(|r| r.is_stored() && r.owns_store());
        let resource = own.find(|r| key.starts_with(&r.storage_prefix()))?;
        let rest = &key[resource.storage_prefix().len()..];
        if !resource.namespaced {
            return Some((Arc::clone(resource), None, rest));
        }
        let (namespace, name) = rest.split_once('/')?;
        Some((Arc::clone(resource), Some(namespace), name))
    }

    /// Every cache once, in order of discovery.
    pub(crate) fn caches<'s>(&'s self, plural: Option<&'s str>) -> impl Iterator<Item = &'s Arc<Cache>> {
        let chosen = self.registry.all().filter(move |r| plural.is_none_or(|p| r.plural == p));
        let mut seen = std::collections::HashSet::new();
        chosen.filter(move |r| seen.insert(r.storage_prefix())).filter_map(|r| self.cache(r))
    }
}

impl ServedResources {
    /// Serves the built-in resources.
    pub(crate) fn new() -> Arc<Self> {
        let built_in = Registry::built_in();
        let stored = built_in.all().filter(|r| r.is_stored());
        let caches = stored.map(|r| (r.storage_prefix(), Cache::of(r))).collect();
        let current = Arc::new(Snapshot { registry: built_in.clone(), caches });
        let definitions = built_in.with_lifecycle(Lifecycle::CustomResourceDefinition);
        let definitions = Arc::clone(definitions.expect("a built-in resource"));
        let state = RwLock::new(State { current, installed: BTreeMap::new() });
        Arc::new(Self { state, built_in, definitions })
    }

    /// The current state.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.read().current)
    }

    /// Whether a resource is served as it is: its definition still exists with the same uid and is not being deleted.
    pub(crate) fn is_current(&self, resource: &Resource) -> bool {
        let Some(custom) = &resource.custom else { return true };
        let state = self.read();
        let made = state.installed.get(&custom.definition).map(|definition| &definition.made);
        made.is_some_and(|made| made.uid == custom.uid && !made.terminating)
    }

    /// The prefix under which definitions are stored.
    pub(crate) fn definitions_prefix(&self) -> String {
        self.definitions.storage_prefix()
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the resources of a definition, or stops serving them.
    fn install(&self, name: &str, made: Option<Installed>) {
        let ended = {
            let mut state = self.write();
            let ended = state.replace(name, made);
            state.current = Arc::new(state.snapshot(&self.built_in));
            ended
        };
        // A watch that is being opened ends when it finds its cache drained; all others end here.
        if let Some(watches) = ended.as_ref().and_then(|cache| cache.if_started()) {
            watches.drain_watches();
        }
    }
}

impl State {
    /// Replaces a definition. Returns the cache whose watches must end.
    fn replace(&mut self, name: &str, made: Option<Installed>) -> Option<Arc<Cache>> {
        let old = self.installed.remove(name);
        let Some(made) = made else { return old.map(|old| old.cache) };
        let (cache, ended) = match old {
            Some(old) if old.made.is_like(&made) => (Some(old.cache), None),
            Some(old) => (None, Some(old.cache)),
            None => (None, None),
        };
        if let Some(cache) = cache.or_else(|| made.resources.first().map(|r| Cache::of(r))) {
            self.installed.insert(name.to_owned(), Definition { made, cache });
        }
        ended
    }

    fn snapshot(&self, built_in: &Registry) -> Snapshot {
        let custom = self.installed.values().flat_map(|d| &d.made.resources).cloned();
        let registry = built_in.with(custom);
        let mut caches: HashMap<String, Arc<Cache>> = HashMap::new();
        for resource in built_in.all().filter(|r| r.is_stored()) {
            if let Some(cache) = self.current.cache(resource) {
                caches.insert(resource.storage_prefix(), Arc::clone(cache));
            }
        }
        for definition in self.installed.values() {
            for resource in &definition.made.resources {
                caches.entry(resource.storage_prefix()).or_insert_with(|| Arc::clone(&definition.cache));
            }
        }
        Snapshot { registry, caches }
    }
}

/// The resources of a stored definition. A malformed one has none, and is reported.
fn read(definitions: &Resource, stored: &Stored) -> Option<Installed> {
    let object = stored.to_value(&definitions.head).ok().and_then(Object::new)?;
    match Installed::read(&object) {
        Ok(made) => made,
        Err(error) => {
            tracing::warn!(
                definition = stored.name(),
                error,
                "the definition is not served: replace or delete it"
            );
            None
        }
    }
}

impl Follower for ServedResources {
    fn reset(&self, _revision: u64, items: Vec<Arc<Stored>>) {
        let gone: Vec<String> = {
            let state = self.read();
            let stays = |name: &&String| items.iter().any(|item| item.name() == name.as_str());
            state.installed.keys().filter(|name| !stays(name)).cloned().collect()
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
