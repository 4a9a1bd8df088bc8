//! An informer under test, with its handlers, indexes and those who wait for it.

mod cache;
mod index;
mod settings;
mod waiting;

pub(crate) use index::IndexKind;
pub(crate) use settings::NAMESPACES;
pub(crate) use settings::Settings;
pub(crate) use settings::TransformKind;

use crate::{
    handlers::{Handler, Surroundings, Temper, accept},
    history::Written,
    log::Log,
    place::Place,
    tape::Tape,
    totals::Fault,
    truth::{ClientId, Truth},
    work::Work,
};
use cache::CacheCheck;
use index::Indexed;
use kube_informer::{
    CacheSnapshot, InformerBuilder, InformerFactory, InformerStatus, Lister, SharedInformer, Stop,
};
use serde_json::Value;
use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::task::{JoinHandle, JoinSet};

/// Indexes are recomputed at rest, and each time the cache has been looked at so often.
const INDEXES_EVERY: u64 = 4;

/// Nothing that ends an informer or a handler may take longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A slow reader may take this long to read what is left.
const READING: Duration = Duration::from_secs(100_000);

/// An informer under test.
pub(crate) struct Subject {
    name: String,
    settings: Settings,
    informer: SharedInformer<Value>,
    /// The program it belongs to, if it was not made by hand.
    factory: Option<InformerFactory>,
    clients: Vec<ClientId>,
    pub(crate) handlers: Vec<Handler>,
    handlers_made: usize,
    indexes: Vec<Indexed>,
    cache: Arc<CacheCheck>,
    /// Looks at the cache after each change of it.
    observer: Option<JoinHandle<()>>,
    waits: JoinSet<()>,
    /// What there was to look at when it was looked at last.
    checked: Option<(u64, u64, usize, usize)>,
    checks: u64,
    place: Place,
    truth: Arc<Truth>,
    log: Arc<Log>,
}

impl Subject {
    pub(crate) fn new(name: String, settings: Settings, place: &Place, log: &Arc<Log>) -> Self {
        log.note(format_args!("{name} is made with {settings:?}"));
        let truth = place.truth();
        let Made { informer, factory, clients } = match settings.by_factory {
            true => by_factory(&name, &settings, place, log),
            false => by_hand(&name, &settings, place, log),
        };
        let cache =
            CacheCheck::new(name.clone(), informer.lister(), &settings, clients.clone(), Arc::clone(truth));
        Self {
            name,
            settings,
            informer,
            factory,
            clients,
            handlers: Vec::new(),
            handlers_made: 0,
            indexes: Vec::new(),
            cache: Arc::new(cache),
            observer: None,
            waits: JoinSet::new(),
            checked: None,
            checks: 0,
            place: place.clone(),
            truth: Arc::clone(truth),
            log: Arc::clone(log),
        }
    }

    pub(crate) fn start(&mut self) {
        if self.observer.is_some() {
            return;
        }
        self.log.note(format_args!("{} starts", self.name));
        match &self.factory {
            Some(factory) => factory.start(),
            None => self.informer.start(),
        }
        self.observer = Some(tokio::spawn(cache::observe(self.informer.clone(), Arc::clone(&self.cache))));
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn lister(&self) -> Lister<Value> {
        self.informer.lister()
    }

    pub(crate) fn is_started(&self) -> bool {
        self.observer.is_some()
    }

    /// Whether nobody is watching for one of its namespaces.
    pub(crate) fn is_blind(&self) -> bool {
        self.is_started() && self.clients.iter().any(|&client| !self.place.is_watched(client))
    }

    pub(crate) fn add_handler(&mut self, temper: Temper, seed: u64, work: &Work) {
        self.handlers_made += 1;
        let name = format!("{}.{}", self.name, self.handlers_made);
        self.log.note(format_args!("{name} joins, {temper:?}"));
        let resync = self.settings.handler_resync(seed);
        let may_repeat = !self.settings.resync.is_zero();
        let (truth, lister) = (Arc::clone(&self.truth), self.informer.lister());
        let tape = Tape::new(name, truth, lister, accept(temper), may_repeat, self.settings.transform);
        let around = Surroundings { informer: &self.informer, work, log: &self.log, seed, resync };
        self.handlers.push(Handler::add(temper, tape, &around));
    }

    pub(crate) async fn remove_handler(&mut self, pick: u64) {
        if self.handlers.is_empty() {
            return;
        }
        let handler = self.handlers.swap_remove(pick as usize % self.handlers.len());
        let name = handler.tape.name().to_owned();
        self.log.note(format_args!("{name} leaves"));
        self.log.strike(Fault::HandlerRemoved);
        let removal = handler.remove(&self.log);
        self.within(removal, &format!("the removal of {name}")).await;
    }

    pub(crate) fn add_index(&mut self, kind: IndexKind) {
        if self.indexes.len() < 4 {
            self.log.note(format_args!("{} gets an index, {kind:?}", self.name));
            self.indexes.push(Indexed::add(kind, &self.informer));
        }
    }

    /// Everything that must hold at any moment.
    pub(crate) fn check(&mut self) {
        let calls = self.handlers.iter().map(|handler| handler.tape.calls()).sum();
        let now = (self.cache.looks(), calls, self.handlers.len(), self.indexes.len());
        if self.informer.is_synced() && self.checked.replace(now) == Some(now) {
            return;
        }
        self.cache.check();
        let snapshot = self.informer.lister().snapshot();
        self.checks += 1;
        if self.checks.is_multiple_of(INDEXES_EVERY) {
            self.check_indexes(&snapshot);
        }
        let shown = self.shown(&snapshot);
        // A task that panicked may have left a change between the cache and the handlers, until it is restarted.
        let in_step = self.is_started() && !self.informer.status().is_failed();
        for handler in self.handlers.iter().filter(|handler| in_step && handler.is_idle()) {
            self.must(handler.tape.compare(&shown));
        }
    }

    fn check_indexes(&self, snapshot: &CacheSnapshot<Value>) {
        for index in &self.indexes {
            let transform = self.settings.transform;
            self.must(index.check(&self.informer, snapshot, transform, &self.truth.lock().history));
        }
    }

    /// The writes that a cache shows, in the order of their keys.
    fn shown(&self, snapshot: &CacheSnapshot<Value>) -> Vec<Arc<Written>> {
        let (known, transform) = (self.truth.lock(), self.settings.transform);
        let mut shown: Vec<_> =
            snapshot.iter().filter_map(|object| known.history.find(object, transform).cloned()).collect();
        shown.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        shown
    }

    /// Everything that must hold once nothing happens any more and nothing is in the way.
    pub(crate) fn check_rest(&self) -> Result<(), String> {
        let status = self.informer.status();
        if !status.is_live() {
            return Err(format!("{} is {status}", self.name));
        }
        self.cache.check_current()?;
        let snapshot = self.informer.lister().snapshot();
        self.check_indexes(&snapshot);
        let shown = self.shown(&snapshot);
        for handler in &self.handlers {
            handler.tape.compare(&shown)?;
            if !handler.is_synced() {
                return Err(format!("{} is not synced", handler.tape.name()));
            }
        }
        Ok(())
    }

    /// Statuses say no more than is true.
    pub(crate) fn check_status(&self) {
        let status = self.informer.status();
        if matches!(status, InformerStatus::Stopped | InformerStatus::Failed { next: None, .. }) {
            self.log.fail(format_args!("{} says it is {status}", self.name));
        }
    }

    /// Ends the informer; then nothing may be told any more, and after a drain everything must have been.
    pub(crate) async fn stop(mut self, how: Ending) {
        self.log.note(format_args!("{} ends, {how:?}", self.name));
        self.settings.calm();
        self.waits.shutdown().await;
        let started = self.is_started();
        for &client in &self.clients {
            self.truth.lock().forget(client);
        }
        if let Some(observer) = self.observer.take() {
            observer.abort();
            let _ = observer.await;
        }
        let handlers = std::mem::take(&mut self.handlers);
        let lister = self.informer.lister();
        match how {
            Ending::Drain => self.within(self.halt(Stop::Drain), "draining").await,
            Ending::Drop => self.within(self.halt(Stop::Drop), "stopping").await,
            Ending::Abandon => {}
        }
        let (log, name, shown) = (Arc::clone(&self.log), self.name.clone(), self.shown(&lister.snapshot()));
        drop((self, lister));
        let mut ended = Vec::new();
        for handler in handlers {
            let tape = handler.stopped(&log);
            match tokio::time::timeout(READING, tape).await {
                Ok(tape) => ended.push(tape),
                Err(_) => log.fail(format_args!("a handler of {name} outlives it")),
            }
        }
        if how == Ending::Drain && started {
            for tape in &ended {
                if let Err(why) = tape.compare(&shown) {
                    log.fail(format_args!("after a drain: {why}"));
                }
            }
        }
        for tape in ended {
            tape.end();
        }
    }

    async fn halt(&self, stop: Stop) {
        match &self.factory {
            Some(factory) => factory.shutdown_with(stop).await,
            None => self.informer.stop(stop).await,
        }
    }

    fn must(&self, checked: Result<(), String>) {
        if let Err(why) = checked {
            self.log.fail(format_args!("{}: {why}", self.name));
        }
    }

    async fn within(&self, future: impl Future<Output = ()>, what: &str) {
        if tokio::time::timeout(PATIENCE, future).await.is_err() {
            self.log.fail(format_args!("{}: {what} never ends", self.name));
        }
    }
}

/// An informer and what belongs to it.
struct Made {
    informer: SharedInformer<Value>,
    factory: Option<InformerFactory>,
    clients: Vec<ClientId>,
}

fn by_hand(name: &str, settings: &Settings, place: &Place, log: &Arc<Log>) -> Made {
    let mut clients = Vec::new();
    let origin = place.truth().origin();
    let builder = settings.apply(InformerBuilder::new(Arc::clone(origin)).name(name), log);
    let informer = builder.build(|namespace| {
        let (id, client) = place.client(origin, namespace);
        clients.push(id);
        client
    });
    Made { informer, factory: None, clients }
}

fn by_factory(name: &str, settings: &Settings, place: &Place, log: &Arc<Log>) -> Made {
    let clients: Arc<Mutex<Vec<ClientId>>> = Arc::default();
    let (made, at) = (Arc::clone(&clients), place.clone());
    let factory = InformerFactory::from_sources(move |origin, _, namespace| {
        at.truth().lend(origin);
        let (id, client) = at.client(origin, namespace);
        made.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        client
    });
    let (name, same, notes) = (name.to_owned(), settings.clone(), Arc::clone(log));
    let factory = factory.configure(move |builder| same.apply(builder.name(&name), &notes)).build();
    let kind = place.truth().origin().kind().clone();
    let informer = factory.of_kind(kind, |options| settings.options(options, log));
    let clients = clients.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Made { informer, factory: Some(factory), clients }
}

/// How an informer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Drain,
    Drop,
    /// Its last handle is dropped.
    Abandon,
}
