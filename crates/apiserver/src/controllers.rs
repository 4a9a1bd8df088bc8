//! The controllers that a cluster runs beside its API server, as far as clients rely on them.
//!
//! Each controller is one file. The store notifies [`Controllers`] of every change; each controller returns the keys that the change may
//! concern. The request that caused the change reconciles those keys before its response is sent, so that a client sees the result at
//! once and the same seed gives the same run. A server on a socket also reconciles in the background, for changes that other servers
//! made.

mod custom_resource_definitions;
mod edit;
mod garbage_collection;
mod kubernetes_service;
mod metadata;
mod namespaces;
mod pods;
mod queue;
mod quotas;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_core::future::BoxFuture;
use tokio::sync::{Mutex, MutexGuard, Notify};

use self::custom_resource_definitions::CustomResourceDefinitions;
use self::garbage_collection::GarbageCollection;
use self::kubernetes_service::KubernetesService;
use self::metadata::Observation;
use self::namespaces::Namespaces;
use self::pods::Pods;
use self::queue::{Queue, Turn};
use self::quotas::Quotas;
use crate::caches::Caches;
use crate::registry::{Lifecycle, Resource};
use crate::storage::{Change, Follower, Stored};
use crate::verbs::WriteContext;
use crate::verbs::error::VerbError;

/// Pause after a failed reconciliation.
const RETRY: Duration = Duration::from_secs(1);

/// The controllers that can be switched off. The one of custom resource definitions always runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Switches {
    pub(crate) namespaces: bool,
    pub(crate) garbage_collection: bool,
    pub(crate) finalize_pods: bool,
    /// The address that the Service `kubernetes` leads to. A server without a socket has none, and no such Service.
    pub(crate) kubernetes_service: Option<SocketAddr>,
    /// Whether requests do not wait for the controllers.
    pub(crate) in_background: bool,
    /// Whether kube-controller-manager empties namespaces and collects garbage.
    pub(crate) elsewhere: bool,
    pub(crate) quota_usage: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            namespaces: true,
            garbage_collection: false,
            finalize_pods: false,
            kubernetes_service: None,
            in_background: false,
            elsewhere: false,
            quota_usage: true,
        }
    }
}

/// The revision of the reconciliation's own last write to its object, if it wrote it.
type Settled = Option<u64>;

/// One controller.
///
/// `reset` and `change` are called by the store while it commits: they take short locks and never wait.
trait Controller: Send + Sync {
    /// Replaces all that is known by the state of the store. Returns the keys to reconcile.
    fn reset(&self, items: &[Arc<Stored>]) -> Vec<Arc<str>>;

    /// Takes note of a change. Returns the keys to reconcile.
    fn change(&self, change: &Observation<'_>) -> Vec<Arc<str>>;

    /// Brings the object of a key, which may be gone, to the state it should have.
    fn reconcile<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Settled, VerbError>>;
}

/// All controllers of a server, and the keys they have to reconcile.
///
/// 1. Keys are reconciled in order of controller, then of key.
/// 2. One controller reconciles one key at a time.
/// 3. A key whose reconciliation fails or is dropped stays queued. It does not block other keys.
pub(crate) struct Controllers {
    /// In order of precedence.
    controllers: Vec<Running>,
    queue: Queue,
    queued: Notify,
    /// Whether only [`run`](Self::run) reconciles, and requests do not.
    in_background: bool,
}

struct Running {
    controller: Box<dyn Controller>,
    /// Held while the controller reconciles a key.
    turn: Mutex<()>,
}

impl Controllers {
    pub(crate) fn new(context: &Arc<WriteContext>, caches: &Arc<Caches>, switches: Switches) -> Arc<Self> {
        let built_in = |lifecycle| -> Arc<Resource> {
            let snapshot = context.resources.snapshot();
            Arc::clone(snapshot.registry.with_lifecycle(lifecycle).expect("a built-in resource"))
        };
        let definitions = built_in(Lifecycle::CustomResourceDefinition);
        let mut controllers: Vec<Box<dyn Controller>> = vec![Box::new(CustomResourceDefinitions::new(
            Arc::clone(context),
            Arc::clone(caches),
            definitions,
        ))];
        if switches.namespaces && !switches.elsewhere {
            let namespaces = built_in(Lifecycle::Namespace);
            controllers.push(Box::new(Namespaces::new(Arc::clone(context), namespaces)));
        }
        if switches.finalize_pods {
            controllers.push(Box::new(Pods::new(Arc::clone(context), &built_in(Lifecycle::Pod))));
        }
        if switches.garbage_collection && !switches.elsewhere {
            controllers.push(Box::new(GarbageCollection::new(Arc::clone(context))));
        }
        if let Some(address) = switches.kubernetes_service {
            controllers.push(Box::new(KubernetesService::new(Arc::clone(context), address)));
        }
        if switches.quota_usage {
            controllers.push(Box::new(Quotas::new(Arc::clone(context))));
        }
        let running = |controller| Running { controller, turn: Mutex::default() };
        let controllers = controllers.into_iter().map(running).collect();
        let in_background = switches.in_background;
        Arc::new(Self { controllers, queue: Queue::default(), queued: Notify::new(), in_background })
    }

    /// Reconciles the keys of a request that began at `mark`, unless controllers run in the background.
    ///
    /// A failed reconciliation stays queued: the write itself has happened.
    pub(crate) async fn after_request(&self, mark: u64) {
        if !self.in_background {
            self.reconcile(mark).await;
        }
    }

    /// Keeps all controllers from reconciling until the result is dropped. Changes are noted and queued meanwhile.
    pub(crate) async fn pause(&self) -> Vec<MutexGuard<'_, ()>> {
        let mut turns = Vec::new();
        for running in &self.controllers {
            turns.push(running.turn.lock().await);
        }
        turns
    }

    /// The sequence number of the last queued key. Call this before a write.
    pub(crate) fn mark(&self) -> u64 {
        self.queue.mark()
    }

    /// Reconciles every queued key, and waits for those that were queued after `mark` and are being reconciled by another task.
    /// Returns false if a reconciliation failed. Its key stays queued and does not keep other keys from being reconciled.
    ///
    /// # Cancel safety
    /// If the future is dropped, the key being reconciled stays queued.
    pub(crate) async fn reconcile(&self, mark: u64) -> bool {
        let mut failed = BTreeSet::new();
        while let Some((controller, key)) = self.queue.next(mark, &failed) {
            let running = &self.controllers[controller];
            let _turn = running.turn.lock().await;
            let Some(turn) = Turn::begin(&self.queue, controller, Arc::clone(&key)) else { continue };
            match running.controller.reconcile(turn.key()).await {
                Ok(settled) => turn.finish(settled),
                Err(error) => {
                    tracing::warn!(key = turn.key(), %error, "reconciliation failed; it will be retried");
                    failed.insert((controller, key));
                }
            }
        }
        failed.is_empty()
    }

    /// Reconciles keys as they are queued, for as long as the server runs.
    pub(crate) async fn run(&self) {
        loop {
            self.queued.notified().await;
            while !self.reconcile(u64::MAX).await {
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    fn enqueue(&self, revision: u64, keys: impl Fn(&dyn Controller) -> Vec<Arc<str>>) {
        let mut any = false;
        for (index, running) in self.controllers.iter().enumerate() {
            let keys = keys(&*running.controller);
            any |= !keys.is_empty();
            self.queue.add(index, keys, revision);
        }
        if any {
            self.queued.notify_one();
        }
    }
}

impl Follower for Controllers {
    fn reset(&self, revision: u64, items: Vec<Arc<Stored>>) {
        self.queue.clear();
        self.enqueue(revision, |controller| controller.reset(&items));
    }

    fn change(&self, change: &Arc<Change>) {
        let observation = Observation::new(change);
        self.enqueue(change.revision, |controller| controller.change(&observation));
    }

    fn progress(&self, _revision: u64) {}

    fn compacted(&self, _revision: u64) {}

    /// A reset follows. Until then queued keys stay: every reconciliation reads the stored object first.
    fn lost(&self, _cause: &str) {}
}
