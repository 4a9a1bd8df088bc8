//! The embedded API server, its store, and all that becomes of them.

mod life;
mod recorder;
mod template;
mod writing;

pub(crate) use writing::noise;
pub(crate) use writing::send;

use crate::{
    log::Log,
    network::Network,
    truth::{ClientId, Truth},
};
use kube_embedded_apiserver::LocalServer;
use kube_embedded_apiserver::storage::MemoryStorage;
use kube_informer::{Kind, KubeSource, ListWatch, Origin};
use recorder::Recorder;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use template::Template;

/// An API server without sockets, behind a network of bytes.
///
/// The history of its collection is taken down by its store itself; what the server answers to a write, and what
/// it lists at rest, must agree with that.
pub(crate) struct Cluster {
    truth: Arc<Truth>,
    network: Arc<Network>,
    flavor: Flavor,
    seed: u64,
    state: Mutex<State>,
    log: Arc<Log>,
}

struct State {
    server: Option<LocalServer>,
    storage: MemoryStorage,
    /// Held here only: the store tells whoever is alive.
    _recorder: Arc<Recorder>,
    /// Stores as they were, by version.
    backups: VecDeque<(u64, MemoryStorage)>,
    starts: u64,
    /// The number that the next content gets.
    stamp: u64,
    rng: fastrand::Rng,
}

/// What kind of objects it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// Built in: config maps.
    BuiltIn,
    /// Of a definition that can go away.
    Custom,
}

impl Flavor {
    fn kind(self) -> Kind {
        match self {
            Self::BuiltIn => Kind::namespaced("", "v1", "ConfigMap", "configmaps"),
            Self::Custom => Kind::namespaced("sim.example", "v1", "Thing", "things"),
        }
    }

    /// Where objects are stored.
    fn prefix(self) -> &'static str {
        match self {
            Self::BuiltIn => "/configmaps/",
            Self::Custom => "/sim.example/things/",
        }
    }
}

impl Cluster {
    pub(crate) async fn new(mut rng: fastrand::Rng, log: &Arc<Log>) -> Arc<Self> {
        let flavor = if rng.bool() { Flavor::BuiltIn } else { Flavor::Custom };
        let template = Template::get();
        let storage = template.storage.backup();
        let truth = Truth::new(flavor.kind(), template.revision, log);
        let state = State {
            server: None,
            storage,
            _recorder: Recorder::new(&truth),
            backups: VecDeque::new(),
            starts: 0,
            stamp: 0,
            rng: rng.fork(),
        };
        let network = Network::new(rng.fork(), &truth);
        let seed = rng.u64(..);
        let cluster = Self { truth, network, flavor, seed, state: Mutex::new(state), log: Arc::clone(log) };
        log.note(format_args!("a cluster, {flavor:?}"));
        cluster.follow().await;
        cluster.start().await;
        Arc::new(cluster)
    }

    pub(crate) fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }

    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// A new client, for one namespace or for all.
    pub(crate) fn client(
        &self,
        origin: &Arc<Origin>,
        namespace: Option<&str>,
    ) -> (ClientId, Arc<dyn ListWatch>) {
        let id = self.truth.lock().new_client();
        let client = self.network.client(id, namespace);
        let source = KubeSource::new(client, Arc::clone(origin), namespace);
        (id, Arc::new(source))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self) -> Option<LocalServer> {
        self.lock().server.clone()
    }

    /// Another number for content, never used before.
    pub(crate) fn next_stamp(&self) -> u64 {
        let mut state = self.lock();
        state.stamp += 1;
        state.stamp
    }
}
