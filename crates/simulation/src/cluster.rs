//! The embedded API server behind a simulated network.

mod lifecycle;
mod recorder;
mod template;
mod writes;

pub(crate) use writes::json_request;
pub(crate) use writes::unrelated_write;

use crate::{
    log::Log,
    network::Network,
    selection::Part,
    truth::{ClientId, Truth},
};
use kube_embedded_apiserver::LocalServer;
use kube_embedded_apiserver::storage::MemoryStorage;
use kube_informer::{Kind, KubeSource, ListWatch, Origin};
use kube_informer_wire::{MediaType, sync::lock};
use recorder::Recorder;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};
use template::Template;

/// An API server without sockets, behind a simulated network.
///
/// The history of the collection is recorded from the store itself. The responses of the server to writes, and its
/// lists after convergence, must agree with that.
pub(crate) struct Cluster {
    truth: Arc<Truth>,
    network: Arc<Network>,
    resource: ResourceType,
    /// The encoding that clients request. A custom resource has only JSON.
    encoding: MediaType,
    seed: u64,
    state: Mutex<State>,
    log: Arc<Log>,
}

struct State {
    server: Option<LocalServer>,
    storage: MemoryStorage,
    /// The only strong reference: the store holds a weak one.
    _recorder: Arc<Recorder>,
    /// Backups of the store, with their versions.
    backups: VecDeque<(u64, MemoryStorage)>,
    starts: u64,
    /// The last number that identifies a content.
    stamp: u64,
    rng: fastrand::Rng,
}

/// The resource of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceType {
    /// Config maps.
    BuiltIn,
    /// A custom resource, whose CRD can be deleted.
    Custom,
}

impl ResourceType {
    fn kind(self) -> Kind {
        match self {
            Self::BuiltIn => Kind::namespaced("", "v1", "ConfigMap", "configmaps"),
            Self::Custom => Kind::namespaced("sim.example", "v1", "Thing", "things"),
        }
    }

    /// The prefix of the storage keys.
    fn prefix(self) -> &'static str {
        match self {
            Self::BuiltIn => "/configmaps/",
            Self::Custom => "/sim.example/things/",
        }
    }
}

impl Cluster {
    pub(crate) async fn new(mut rng: fastrand::Rng, log: &Arc<Log>) -> Arc<Self> {
        let resource = if rng.bool() { ResourceType::BuiltIn } else { ResourceType::Custom };
        let protobuf = resource == ResourceType::BuiltIn && rng.bool();
        let encoding = if protobuf { MediaType::Protobuf } else { MediaType::Json };
        let template = Template::get();
        let storage = template.storage.backup();
        let truth = Truth::new(resource.kind(), template.revision, log);
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
        let (state, log) = (Mutex::new(state), Arc::clone(log));
        log.note(format_args!("a cluster, {resource:?}, {encoding:?}"));
        let cluster = Self { truth, network, resource, encoding, seed, state, log };
        cluster.record_history().await;
        cluster.start().await;
        Arc::new(cluster)
    }

    pub(crate) fn truth(&self) -> &Arc<Truth> {
        &self.truth
    }

    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// A new client, for a part of the collection.
    pub(crate) fn client(&self, origin: &Arc<Origin>, part: Part) -> (ClientId, Arc<dyn ListWatch>) {
        let id = self.truth.lock().new_client();
        let (labels, fields) = (part.selection.labels(), part.selection.fields());
        let namespace = part.namespace.clone();
        let client = self.network.client(id, part);
        let mut source = KubeSource::new(client, Arc::clone(origin), namespace.as_deref());
        if self.encoding == MediaType::Json {
            source = source.json_only();
        }
        (id, Arc::new(source.labels(&labels).fields(&fields)))
    }

    /// Whether field selectors may select by a field of the content.
    pub(crate) fn has_selectable_field(&self) -> bool {
        self.resource == ResourceType::Custom
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn server(&self) -> Option<LocalServer> {
        self.lock().server.clone()
    }

    /// A unique number for a new content.
    pub(crate) fn next_stamp(&self) -> u64 {
        let mut state = self.lock();
        state.stamp += 1;
        state.stamp
    }
}
