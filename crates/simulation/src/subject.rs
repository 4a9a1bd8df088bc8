//! An informer under test, with its handlers, indexes and waits.

mod cache;
mod durations;
mod index;
mod restored;
mod settings;
mod shared_factory;
mod task_panics;
mod transform;
mod waiting;

pub(crate) use cache::CacheCheck;
pub(crate) use durations::key_delay;
pub(crate) use durations::time_limit;
pub(crate) use index::IndexKind;
pub(crate) use settings::Coverage;
pub(crate) use settings::NAMES;
pub(crate) use settings::NAMESPACES;
pub(crate) use settings::Settings;
pub(crate) use shared_factory::SharedFactory;
pub(crate) use transform::TransformKind;

use crate::{
    backend::Backend,
    handler_log::HandlerLog,
    handlers::{Behaviour, Handler, HandlerContext},
    history::Write,
    log::Log,
    selection::Part,
    totals::Fault,
    truth::{ClientId, Truth},
    work::Work,
};
use index::Indexed;
use kube_informer::{
    CacheSnapshot, InformerBuilder, InformerStatus, Lister, PersistStatus, SharedInformer, Stop,
};
use serde_json::Value;
use std::{future::Future, sync::Arc, time::Duration};
use tokio::task::{JoinHandle, JoinSet};

/// Indexes are checked after convergence, and with one of this many checks of the cache.
const INDEX_CHECK_EVERY: u64 = 4;

/// Time limit for stopping an informer and for removing a handler.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// Time limit for a slow reader to read what its stream has buffered.
const STREAM_DRAIN_TIMEOUT: Duration = Duration::from_secs(100_000);

/// An informer under test.
pub(crate) struct Subject {
    name: String,
    settings: Settings,
    informer: SharedInformer<Value>,
    /// The factory that created the informer, if one did.
    factory: Option<Arc<SharedFactory>>,
    /// Whether other informers may belong to that factory, too.
    is_shared: bool,
    clients: Vec<ClientId>,
    pub(crate) handlers: Vec<Handler>,
    handlers_made: usize,
    indexes: Vec<Indexed>,
    cache: Arc<CacheCheck>,
    /// Checks the cache after each change.
    observer: Option<JoinHandle<()>>,
    waits: JoinSet<()>,
    /// Changes of the cache, calls, handlers and indexes at the last check.
    checked: Option<(u64, u64, usize, usize)>,
    checks: u64,
    backend: Backend,
    truth: Arc<Truth>,
    log: Arc<Log>,
}

impl Subject {
    /// A new informer, of a factory that others share, or with a factory of its own, or without one.
    pub(crate) fn new(
        name: String,
        settings: Settings,
        shared: Option<&Arc<SharedFactory>>,
        backend: &Backend,
        log: &Arc<Log>,
    ) -> Self {
        log.note(format_args!("{name} is created with {settings:?}"));
        let truth = backend.truth();
        let factory = match shared {
            Some(shared) => Some(Arc::clone(shared)),
            None => settings.by_factory.then(|| SharedFactory::new(settings.clone(), backend, log)),
        };
        let (informer, clients) = match &factory {
            Some(factory) => factory.informer(&settings.coverage),
            None => create_with_builder(&name, &settings, backend, log),
        };
        if !settings.panics.is_on() {
            let mut truth = truth.lock();
            clients
                .iter()
                .for_each(|&client| truth.expect_retry_after(client, settings.durations.max_retry_after));
        }
        let (lister, coverage) = (informer.lister(), &settings.coverage);
        let persistence = settings.persistence.clone();
        let cache =
            CacheCheck::new(name.clone(), lister, coverage, clients.clone(), Arc::clone(truth), persistence);
        let cache = Arc::new(cache);
        if let Some(persistence) = &settings.persistence {
            persistence.set_cache(&cache);
        }
        Self {
            name,
            settings,
            informer,
            factory,
            is_shared: shared.is_some(),
            clients,
            handlers: Vec::new(),
            handlers_made: 0,
            indexes: Vec::new(),
            cache,
            observer: None,
            waits: JoinSet::new(),
            checked: None,
            checks: 0,
            backend: backend.clone(),
            truth: Arc::clone(truth),
            log: Arc::clone(log),
        }
    }

    pub(crate) fn start(&mut self) {
        if self.observer.is_some() {
            return;
        }
        self.log.note(format_args!("{} starts", self.name));
        self.cache.start();
        match &self.factory {
            Some(factory) => factory.start(),
            None => self.informer.start(),
        }
        self.observer = Some(tokio::spawn(cache::observe(self.informer.clone(), Arc::clone(&self.cache))));
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The resource version of each partition.
    pub(crate) fn versions(&self) -> Vec<Option<u64>> {
        self.cache.versions()
    }

    /// The version that was saved last, if the informer says so.
    pub(crate) fn saved_version(&self) -> Option<u64> {
        match self.informer.persist_status() {
            PersistStatus::Saving { version } => version?.number(),
            _ => None,
        }
    }

    pub(crate) fn persist_status(&self) -> PersistStatus {
        self.informer.persist_status()
    }

    pub(crate) fn lister(&self) -> Lister<Value> {
        self.informer.lister()
    }

    pub(crate) fn is_started(&self) -> bool {
        self.observer.is_some()
    }

    /// Whether a request may wait longer for the server than a world takes to converge.
    pub(crate) fn waits_without_limit(&self) -> bool {
        self.settings.durations.waits_without_limit()
    }

    /// Whether one of its partitions has no live watch.
    pub(crate) fn lacks_watch(&self) -> bool {
        self.is_started() && self.clients.iter().any(|&client| !self.backend.is_watched(client))
    }

    pub(crate) fn add_handler(&mut self, behaviour: Behaviour, seed: u64, work: &Work) {
        self.handlers_made += 1;
        let name = format!("{}.{}", self.name, self.handlers_made);
        self.log.note(format_args!("{name} is added, {behaviour:?}"));
        let resync = durations::handler_resync(seed);
        let resync_of_informer = !self.settings.durations.resync.is_zero();
        let (truth, lister) = (Arc::clone(&self.truth), self.informer.lister());
        let handler_log = HandlerLog::new(
            name,
            truth,
            lister,
            behaviour.accept(),
            resync_of_informer,
            self.settings.coverage.view(),
            self.settings.persistence.clone(),
        );
        let context = HandlerContext { informer: &self.informer, work, log: &self.log, seed, resync };
        self.handlers.push(Handler::add(behaviour, handler_log, &context));
    }

    pub(crate) async fn remove_handler(&mut self, pick: u64) {
        if self.handlers.is_empty() {
            return;
        }
        let handler = self.handlers.swap_remove(pick as usize % self.handlers.len());
        let name = handler.handler_log.name().to_owned();
        self.log.note(format_args!("{name} is removed"));
        self.log.record_fault(Fault::HandlerRemoved);
        let removal = handler.remove(&self.log);
        self.within(removal, &format!("the removal of {name}")).await;
    }

    pub(crate) fn add_index(&mut self, kind: IndexKind) {
        if self.indexes.len() < 4 {
            self.log.note(format_args!("{} adds an index, {kind:?}", self.name));
            self.indexes.push(Indexed::add(kind, &self.informer));
        }
    }

    /// Checks everything that must hold at any time.
    pub(crate) fn check(&mut self) {
        let calls = self.handlers.iter().map(|handler| handler.handler_log.calls()).sum();
        let now = (self.cache.changes(), calls, self.handlers.len(), self.indexes.len());
        let status = (!self.is_shared).then(|| self.informer.status());
        self.require(self.settings.panics.check(status.as_ref()));
        if self.informer.is_synced() && self.checked.replace(now) == Some(now) {
            return;
        }
        self.cache.check();
        self.require(self.check_restored());
        let snapshot = self.informer.lister().snapshot();
        self.checks += 1;
        if self.checks.is_multiple_of(INDEX_CHECK_EVERY) {
            self.check_indexes(&snapshot);
        }
        let cached = self.cached(&snapshot);
        // After a panic, a change may be in the cache and not yet queued for handlers until the task is restarted.
        let consistent = self.is_started() && !self.informer.status().is_failed();
        for handler in self.handlers.iter().filter(|handler| consistent && handler.is_idle()) {
            self.require(handler.handler_log.compare(&cached));
        }
    }

    /// Checks that a restored cache counts as synced and live only when it has reached the present.
    fn check_restored(&self) -> Result<(), String> {
        let Some(persistence) = &self.settings.persistence else { return Ok(()) };
        if persistence.trusts_restored {
            return Ok(());
        }
        if self.informer.is_synced() {
            self.cache.check_synced()?;
        }
        let statuses = self.informer.namespace_statuses();
        self.cache.check_live(|at| statuses[at].1.is_live())
    }

    fn check_indexes(&self, snapshot: &CacheSnapshot<Value>) {
        for index in &self.indexes {
            let view = self.settings.coverage.view();
            self.require(index.check(&self.informer, snapshot, view, &self.truth.lock().history));
        }
    }

    /// The writes that a cache shows, in the order of their keys.
    fn cached(&self, snapshot: &CacheSnapshot<Value>) -> Vec<Arc<Write>> {
        let (truth, view) = (self.truth.lock(), self.settings.coverage.view());
        let mut cached: Vec<_> =
            snapshot.iter().filter_map(|object| truth.history.find(object, view).cloned()).collect();
        cached.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        cached
    }

    /// Checks everything that must hold after convergence.
    pub(crate) fn check_converged(&self) -> Result<(), String> {
        let status = self.informer.status();
        if !status.is_live() {
            return Err(format!("{} is {status}", self.name));
        }
        self.cache.check_current()?;
        let snapshot = self.informer.lister().snapshot();
        self.check_indexes(&snapshot);
        let cached = self.cached(&snapshot);
        for handler in &self.handlers {
            handler.handler_log.compare(&cached)?;
            if !handler.is_synced() {
                return Err(format!("{} is not synced", handler.handler_log.name()));
            }
        }
        Ok(())
    }

    /// Checks that the status is neither stopped nor failed for good.
    pub(crate) fn check_status(&self) {
        let status = self.informer.status();
        if matches!(status, InformerStatus::Stopped | InformerStatus::Failed { next: None, .. }) {
            self.log.fail(format_args!("{} has the status {status}", self.name));
        }
    }

    /// Stops the informer. Handlers must receive nothing afterwards, and after a drain they must have received everything.
    pub(crate) async fn stop(mut self, how: StopMode) {
        self.log.note(format_args!("{} stops, {how:?}", self.name));
        self.settings.panics.stop();
        self.waits.shutdown().await;
        let started = self.is_started();
        let in_use = self.is_shared
            && self.factory.as_ref().is_some_and(|factory| !factory.release(&self.settings.coverage));
        if !in_use {
            let mut truth = self.truth.lock();
            self.clients.iter().for_each(|&client| truth.remove_client(client));
        }
        if let Some(observer) = self.observer.take() {
            observer.abort();
            let _ = observer.await;
        }
        let handlers = std::mem::take(&mut self.handlers);
        if in_use {
            // Another user of the factory has the same informer, which goes on without these handlers.
            for handler in handlers {
                self.within(handler.remove(&self.log), "the removal of a handler").await;
            }
            return;
        }
        let lister = self.informer.lister();
        match how {
            StopMode::Drain => self.within(self.halt(Stop::Drain), "draining").await,
            StopMode::Drop => self.within(self.halt(Stop::Drop), "stopping").await,
            // A factory keeps its informers when their handles are dropped.
            StopMode::Abandon if self.is_shared => self.within(self.halt(Stop::Drop), "stopping").await,
            StopMode::Abandon => {}
        }
        let (log, name, cached) = (Arc::clone(&self.log), self.name.clone(), self.cached(&lister.snapshot()));
        drop((self, lister));
        let mut logs = Vec::new();
        for handler in handlers {
            match tokio::time::timeout(STREAM_DRAIN_TIMEOUT, handler.finish(&log)).await {
                Ok(handler_log) => logs.push(handler_log),
                Err(_) => log.fail(format_args!("a stream of {name} does not end")),
            }
        }
        if how == StopMode::Drain && started {
            for handler_log in &logs {
                if let Err(why) = handler_log.compare(&cached) {
                    log.fail(format_args!("after a drain: {why}"));
                }
            }
        }
        for handler_log in logs {
            handler_log.close();
        }
    }

    async fn halt(&self, stop: Stop) {
        match &self.factory {
            Some(factory) if !self.is_shared => factory.shut_down(stop).await,
            _ => self.informer.stop(stop).await,
        }
    }

    fn require(&self, result: Result<(), String>) {
        if let Err(why) = result {
            self.log.fail(format_args!("{}: {why}", self.name));
        }
    }

    async fn within(&self, future: impl Future<Output = ()>, what: &str) {
        if tokio::time::timeout(STOP_TIMEOUT, future).await.is_err() {
            self.log.fail(format_args!("{}: {what} does not end", self.name));
        }
    }
}

fn create_with_builder(
    name: &str,
    settings: &Settings,
    backend: &Backend,
    log: &Arc<Log>,
) -> (SharedInformer<Value>, Vec<ClientId>) {
    let mut clients = Vec::new();
    let origin = backend.truth().origin();
    let builder = settings.apply_all(InformerBuilder::new(Arc::clone(origin)).name(name), log);
    let informer = builder.build(|namespace| {
        let part = Part::new(namespace, settings.coverage.selection);
        let (id, client) = backend.client(origin, part);
        clients.push(id);
        client
    });
    (informer, clients)
}

/// How an informer is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    Drain,
    Drop,
    /// Its last handle is dropped.
    Abandon,
}
