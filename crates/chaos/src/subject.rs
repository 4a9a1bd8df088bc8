//! An informer under test with its indexes, handlers and work queue, and the checks of all of them.

mod settings;

pub(crate) use settings::SHORT_WATCH_TIMEOUT;
pub(crate) use settings::SILENCE_TIMEOUT;
pub(crate) use settings::Settings;

use crate::{
    cluster::{Listing, canary, content_field},
    handler_log::HandlerLog,
    handlers::{Behaviour, Handler},
    report::{Fault, Report},
    work::Work,
};
use harness::NAMESPACES;
use kube_informer::{CacheSnapshot, Index, Object, ObjectKey, SharedInformer, Stop};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};
use tokio::task::JoinHandle;

/// An informer under test.
pub(crate) struct Subject {
    pub(crate) settings: Settings,
    pub(crate) informer: SharedInformer<Value>,
    by_color: Index<String>,
    by_field: Index<String>,
    handlers: Vec<Handler>,
    work: Work,
    workers: JoinHandle<()>,
    report: Arc<Report>,
    rng: fastrand::Rng,
    /// Handlers added so far, for their names.
    handlers_added: usize,
}

impl Subject {
    /// Starts an informer with handlers of these behaviours.
    pub(crate) fn start(
        settings: Settings,
        client: kube::Client,
        behaviours: &[Behaviour],
        report: &Arc<Report>,
        mut rng: fastrand::Rng,
    ) -> anyhow::Result<Self> {
        let informer = settings.build(client, rng.u64(..));
        let by_color = informer.index_label("color")?;
        let by_field = informer.index_field(&settings.indexed_field())?;
        let work = Work::new(settings.name.clone(), rng.fork(), Arc::clone(report));
        let workers = work.spawn_workers(2);
        let report = Arc::clone(report);
        let handlers = Vec::new();
        let mut subject = Self {
            settings,
            informer,
            by_color,
            by_field,
            handlers,
            work,
            workers,
            report,
            rng,
            handlers_added: 0,
        };
        for behaviour in behaviours {
            subject.add_handler(*behaviour);
        }
        subject.informer.start();
        Ok(subject)
    }

    pub(crate) fn add_handler(&mut self, behaviour: Behaviour) {
        self.handlers_added += 1;
        let name = format!("{}, handler {} ({behaviour:?})", self.settings.name, self.handlers_added);
        let view = behaviour.view(self.settings.color.is_some());
        let log = HandlerLog::new(name, Arc::clone(&self.report), self.informer.lister(), view);
        let Self { informer, work, report, rng, .. } = self;
        self.handlers.push(Handler::add(behaviour, log, informer, work, report, rng.fork()));
    }

    /// Removes a random handler and adds another one, which receives a replay of the cache.
    pub(crate) async fn swap_handler(&mut self) {
        let removed = self.handlers.swap_remove(self.rng.usize(..self.handlers.len()));
        removed.remove().await;
        self.report.record_fault(Fault::HandlerRemoved);
        let behaviour = Behaviour::ALL[self.rng.usize(..Behaviour::ALL.len())];
        self.add_handler(behaviour);
        self.report.record_fault(Fault::HandlerAdded);
    }

    /// Stops it. When this returns, none of its tasks run.
    pub(crate) async fn stop(self, stop: Stop) {
        self.informer.stop(stop).await;
        for handler in self.handlers {
            handler.finish().await;
        }
        self.work.shutdown();
        let _ = self.workers.await;
    }

    pub(crate) fn awaited(&self) -> AwaitedInformer {
        AwaitedInformer { settings: self.settings.clone(), informer: self.informer.clone() }
    }

    /// Returns whether all of its cache is from an epoch of the server.
    pub(crate) fn has_reached_epoch(&self, epoch: u64) -> bool {
        let mut namespaces = NAMESPACES.iter().filter(|name| self.settings.covers_namespace(name));
        namespaces.all(|name| self.awaited().epoch(name) == Some(epoch))
    }

    /// The oldest resource version among the namespaces it covers.
    pub(crate) fn resource_version(&self) -> u64 {
        let snapshot = self.informer.lister().snapshot();
        let version = |name: &&str| Some(snapshot.namespace_version(name)?.number().unwrap_or(0));
        let covered = NAMESPACES.iter().filter(|name| self.settings.covers_namespace(name));
        covered.map(|name| version(name).unwrap_or(0)).min().unwrap_or(0)
    }

    /// Sets whether workers fail sometimes.
    pub(crate) fn set_failing(&self, failing: bool) {
        self.work.set_failing(failing);
    }

    /// Checks that cache, indexes, handlers and queue agree with a LIST, when nothing is written.
    pub(crate) fn check(&self, expected: &Listing) -> Result<(), String> {
        let snapshot = self.informer.lister().snapshot();
        self.check_cache(&snapshot, expected)?;
        self.check_indexes(&snapshot)?;
        for handler in &self.handlers {
            handler.compare(&snapshot)?;
        }
        self.work.check()?;
        self.report.checks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn check_cache(&self, snapshot: &CacheSnapshot<Value>, listing: &Listing) -> Result<(), String> {
        let name = &self.settings.name;
        let mut covered = 0;
        for (key, expected) in listing.iter().filter(|(key, object)| self.settings.covers(key, object)) {
            covered += 1;
            let Some(object) = snapshot.get(key) else {
                let version = &expected["metadata"]["resourceVersion"];
                return Err(format!("{name}: {key}@{version} is not in the cache, {}", self.state()));
            };
            let content = object.json().map_err(|error| error.to_string())?;
            let content: Value = serde_json::from_slice(&content).map_err(|error| error.to_string())?;
            if content != *expected {
                let version = &expected["metadata"]["resourceVersion"];
                let cached = object.resource_version();
                let state = self.state();
                return Err(format!(
                    "{name}: {key} is @{cached} in the cache and @{version} in the LIST, or its content differs, {state}"
                ));
            }
        }
        if snapshot.len() == covered {
            return Ok(());
        }
        let extra = snapshot.iter().find(|object| !listing.contains_key(object.key()));
        let extra = extra.map(|object| object.key().to_string());
        let state = self.state();
        Err(format!(
            "{name}: the cache has {} objects instead of {covered}; {extra:?} is not in the LIST, {state}",
            snapshot.len()
        ))
    }

    /// Its resource version and status, for failures.
    fn state(&self) -> String {
        format!("resource version {}, {}", self.resource_version(), self.informer.status())
    }

    /// Checks each index against an index computed from all objects of the cache.
    fn check_indexes(&self, snapshot: &CacheSnapshot<Value>) -> Result<(), String> {
        let color = |object: &Object<Value>| object.labels().get("color").map(str::to_owned);
        let (parent, child) = (content_field(&self.settings.kind), self.settings.indexed_child());
        let field = |object: &Object<Value>| {
            let content = object.decode().ok()?;
            content[parent][child].as_str().map(str::to_owned)
        };
        self.check_index(snapshot, &self.by_color, color)?;
        self.check_index(snapshot, &self.by_field, field)
    }

    fn check_index(
        &self,
        snapshot: &CacheSnapshot<Value>,
        index: &Index<String>,
        value: impl Fn(&Object<Value>) -> Option<String>,
    ) -> Result<(), String> {
        let mut expected: BTreeMap<String, Vec<ObjectKey>> = BTreeMap::new();
        for object in snapshot.iter() {
            if let Some(value) = value(object) {
                expected.entry(value).or_default().push(object.key().clone());
            }
        }
        let found = |value: &String| -> Vec<ObjectKey> {
            let objects = snapshot.by(index, value).unwrap_or_default();
            objects.iter().map(|object| object.key().clone()).collect()
        };
        let values = snapshot.values(index).map_err(|missing| missing.to_string())?;
        let mut actual: BTreeMap<String, Vec<ObjectKey>> =
            values.iter().map(|value| (value.clone(), found(value))).collect();
        actual.values_mut().chain(expected.values_mut()).for_each(|keys| keys.sort());
        if actual == expected {
            Ok(())
        } else {
            Err(format!("{}: an index differs from its cache", self.settings.name))
        }
    }
}

/// An informer in which writers wait for their writes.
#[derive(Clone)]
pub(crate) struct AwaitedInformer {
    pub(crate) settings: Settings,
    pub(crate) informer: SharedInformer<Value>,
}

impl AwaitedInformer {
    /// The epoch of the server from which the cache of a namespace is.
    pub(crate) fn epoch(&self, namespace: &str) -> Option<u64> {
        let canary = canary(namespace, self.settings.color.unwrap_or("red"));
        self.informer.lister().get(&canary)?.labels().get("epoch")?.parse().ok()
    }
}
