//! The parts of a server, without its sockets.

use std::sync::Arc;

use crate::admission::{Admission, Plugin, Plugins};
use crate::authentication::Authenticator;
use crate::caches::Caches;
use crate::clock::Clock;
use crate::controllers::{Controllers, Switches};
use crate::cpu_pool::CpuPool;
use crate::faults::FaultRules;
use crate::http::WatchPermits;
use crate::ids::Ids;
use crate::metrics::Metrics;
use crate::registry::Lifecycle;
use crate::server::{ServerLimits, Tokens};
use crate::service_addresses::ServiceAddresses;
use crate::serving::ServedResources;
use crate::shutdown::Shutdown;
use crate::snapshots::{self, NamedSnapshots};
use crate::storage::{Follower, Storage, StorageError};
use crate::verbs::WriteContext;
use crate::verbs::namespaces::{seed_namespaces, seed_priority_classes};
use crate::watch_cache::CacheOptions;

/// The name of the snapshot that is taken at the start.
const START: &str = "start";

/// The configuration of a server.
pub(crate) struct ApiConfig {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) cache_options: CacheOptions,
    pub(crate) clock: Clock,
    pub(crate) seed: u64,
    pub(crate) controllers: Switches,
    pub(crate) plugins: Plugins,
    pub(crate) limits: ServerLimits,
    pub(crate) fault_endpoints: bool,
    /// Present if callers have to present one.
    pub(crate) tokens: Option<Tokens>,
    /// Present if large requests get threads of their own. Without it requests run in the task of the caller.
    pub(crate) cpu_pool: Option<CpuPool>,
}

/// The parts of a server. Each has one job; functions take the parts they need.
pub(crate) struct Api {
    pub(crate) resources: Arc<ServedResources>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) caches: Arc<Caches>,
    pub(crate) writes: Arc<WriteContext>,
    pub(crate) controllers: Arc<Controllers>,
    pub(crate) limits: ServerLimits,
    pub(crate) watch_permits: WatchPermits,
    pub(crate) metrics: Metrics,
    pub(crate) faults: Arc<FaultRules>,
    /// Whether faults and snapshots can be controlled over HTTP.
    pub(crate) fault_endpoints: bool,
    pub(crate) snapshots: NamedSnapshots,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) cpu_pool: Option<CpuPool>,
    pub(crate) shutdown: Shutdown,
}

impl Api {
    pub(crate) async fn start(config: ApiConfig) -> Result<Arc<Self>, StorageError> {
        let resources = ServedResources::new();
        let writes = Arc::new(write_context(&config, &resources));
        let storage = config.storage;
        let authenticator = Arc::new(Authenticator::new(config.tokens, writes.clock.clone()));
        let caches = Caches::new(Arc::clone(&resources), Arc::clone(&storage), config.cache_options);
        let caches = Arc::new(caches);
        let controllers = Controllers::new(&writes, &caches, config.controllers);

        let follower: Arc<dyn Follower> = Arc::clone(&resources) as _;
        storage.follow(&resources.definitions_prefix(), Arc::downgrade(&follower)).await?;
        caches.start().await?;
        writes.admission.start(&*storage).await?;
        writes.service_addresses.start(&*storage).await?;
        let follower: Arc<dyn Follower> = Arc::clone(authenticator.issuer.bound_objects()) as _;
        storage.follow("/", Arc::downgrade(&follower)).await?;
        seed_namespaces(&writes).await;
        if writes.admission.has(Plugin::Priority) {
            seed_priority_classes(&writes).await;
        }
        let follower: Arc<dyn Follower> = Arc::clone(&controllers) as _;
        storage.follow("/", Arc::downgrade(&follower)).await?;
        // A failed reconciliation stays queued and is retried with the next write.
        controllers.reconcile(controllers.mark()).await;
        let snapshots = NamedSnapshots::default();
        if config.fault_endpoints {
            // There is room for the first one.
            let _ = snapshots.set(START, snapshots::take(&*storage).await?);
        }
        Ok(Arc::new(Self {
            resources,
            storage,
            caches,
            writes,
            controllers,
            watch_permits: WatchPermits::new(config.limits.watches),
            limits: config.limits,
            metrics: Metrics::default(),
            faults: Arc::default(),
            fault_endpoints: config.fault_endpoints,
            snapshots,
            authenticator,
            cpu_pool: config.cpu_pool,
            shutdown: Shutdown::default(),
        }))
    }
}

fn write_context(config: &ApiConfig, resources: &Arc<ServedResources>) -> WriteContext {
    let registry = &resources.snapshot().registry;
    let namespaces = registry.with_lifecycle(Lifecycle::Namespace);
    let budgets = registry.find("policy", "v1", "poddisruptionbudgets");
    let services = registry.find("", "v1", "services");
    WriteContext {
        storage: Arc::clone(&config.storage),
        resources: Arc::clone(resources),
        namespaces: Arc::clone(namespaces.expect("a built-in resource")),
        disruption_budgets: Arc::clone(budgets.expect("a built-in resource")),
        admission: Admission::new(registry, config.plugins),
        service_addresses: ServiceAddresses::new(Arc::clone(services.expect("a built-in resource"))),
        clock: config.clock.clone(),
        ids: Ids::new(config.seed),
        garbage_collection: config.controllers.garbage_collection || config.controllers.elsewhere,
        object_bytes: config.limits.object_bytes,
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Api({} resources)", self.resources.snapshot().registry.all().count())
    }
}
