//! One informer with everything that hangs on it, and what must hold of it.

mod plan;

pub(crate) use plan::BRISK_WATCH;
pub(crate) use plan::PATIENCE;
pub(crate) use plan::Plan;

use crate::{
    cluster::{Listed, NAMESPACES, canary, content_field},
    handler_log::HandlerLog,
    handlers::{Handler, Temper},
    ledger::{Fault, Ledger},
    work::Work,
};
use kube_informer::{CacheSnapshot, Index, Object, ObjectKey, SharedInformer, Stop};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
};
use tokio::task::JoinHandle;

/// An informer, its indexes, handlers and work queue.
pub(crate) struct Follower {
    pub(crate) plan: Plan,
    pub(crate) informer: SharedInformer<Value>,
    by_color: Index<String>,
    by_field: Index<String>,
    handlers: Vec<Handler>,
    work: Work,
    workers: JoinHandle<()>,
    ledger: Arc<Ledger>,
    rng: fastrand::Rng,
    /// Handlers so far, for their names.
    count: usize,
}

impl Follower {
    /// Starts following a server, with handlers of these tempers.
    pub(crate) fn start(
        plan: Plan,
        client: kube::Client,
        tempers: &[Temper],
        ledger: &Arc<Ledger>,
        mut rng: fastrand::Rng,
    ) -> anyhow::Result<Self> {
        let informer = plan.build(client, rng.u64(..));
        let by_color = informer.index_label("color")?;
        let by_field = informer.index_field(&plan.indexed_field())?;
        let work = Work::new(plan.name.clone(), rng.fork(), Arc::clone(ledger));
        let workers = work.begin(2);
        let ledger = Arc::clone(ledger);
        let handlers = Vec::new();
        let mut follower =
            Self { plan, informer, by_color, by_field, handlers, work, workers, ledger, rng, count: 0 };
        for temper in tempers {
            follower.add_handler(*temper);
        }
        follower.informer.start();
        Ok(follower)
    }

    pub(crate) fn add_handler(&mut self, temper: Temper) {
        self.count += 1;
        let name = format!("{}, handler {} ({temper:?})", self.plan.name, self.count);
        let view = temper.view(self.plan.color.is_some());
        let log = HandlerLog::new(name, Arc::clone(&self.ledger), self.informer.lister(), view);
        let Self { informer, work, ledger, rng, .. } = self;
        self.handlers.push(Handler::add(temper, log, informer, work, ledger, rng.fork()));
    }

    /// Removes a handler and adds another one, which gets everything from the start.
    pub(crate) async fn swap_handler(&mut self) {
        let gone = self.handlers.swap_remove(self.rng.usize(..self.handlers.len()));
        gone.remove().await;
        self.ledger.strike(Fault::HandlerRemoved);
        let temper = Temper::ALL[self.rng.usize(..Temper::ALL.len())];
        self.add_handler(temper);
        self.ledger.strike(Fault::HandlerAdded);
    }

    /// Stops it by one of the ways to do so. When this returns, nothing of it runs.
    pub(crate) async fn stop(self, stop: Stop) {
        self.informer.stop(stop).await;
        for handler in self.handlers {
            handler.stopped().await;
        }
        self.work.shutdown();
        let _ = self.workers.await;
    }

    pub(crate) fn watched(&self) -> Watched {
        Watched { plan: self.plan.clone(), informer: self.informer.clone() }
    }

    /// Whether all of its cache shows a life of the server.
    pub(crate) fn is_in(&self, life: u64) -> bool {
        let mut namespaces = NAMESPACES.iter().filter(|name| self.plan.covers_namespace(name));
        namespaces.all(|name| self.watched().life(name) == Some(life))
    }

    /// How far it has come, in the part where it is least far.
    pub(crate) fn position(&self) -> u64 {
        let snapshot = self.informer.lister().snapshot();
        let version = |name: &&str| Some(snapshot.namespace_version(name)?.number().unwrap_or(0));
        let covered = NAMESPACES.iter().filter(|name| self.plan.covers_namespace(name));
        covered.map(|name| version(name).unwrap_or(0)).min().unwrap_or(0)
    }

    /// Whether workers fail now and then.
    pub(crate) fn set_clumsy(&self, clumsy: bool) {
        self.work.set_clumsy(clumsy);
    }

    /// At rest: cache, indexes, handlers and queue are what a LIST says they should be.
    pub(crate) fn check(&self, truth: &Listed) -> Result<(), String> {
        let snapshot = self.informer.lister().snapshot();
        self.equal(&snapshot, truth)?;
        self.indexes(&snapshot)?;
        for handler in &self.handlers {
            handler.compare(&snapshot)?;
        }
        self.work.check()?;
        self.ledger.checks.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn equal(&self, snapshot: &CacheSnapshot<Value>, truth: &Listed) -> Result<(), String> {
        let name = &self.plan.name;
        let mut covered = 0;
        for (key, expected) in truth.iter().filter(|(key, object)| self.plan.covers(key, object)) {
            covered += 1;
            let Some(object) = snapshot.get(key) else {
                let version = &expected["metadata"]["resourceVersion"];
                return Err(format!("{name}: {key}@{version} is missing in the cache, {}", self.state()));
            };
            let content = object.json().map_err(|error| error.to_string())?;
            let content: Value = serde_json::from_slice(&content).map_err(|error| error.to_string())?;
            if content != *expected {
                let version = &expected["metadata"]["resourceVersion"];
                let shown = object.resource_version();
                let state = self.state();
                return Err(format!(
                    "{name}: {key}@{version} is @{shown} in the cache, or other content, {state}"
                ));
            }
        }
        if snapshot.len() == covered {
            return Ok(());
        }
        let extra = snapshot.iter().find(|object| !truth.contains_key(object.key()));
        let extra = extra.map(|object| object.key().to_string());
        let state = self.state();
        Err(format!(
            "{name}: the cache shows {}, not {covered}; {extra:?} is not there, {state}",
            snapshot.len()
        ))
    }

    /// Where it is and what it is doing, for complaints.
    fn state(&self) -> String {
        format!("which is at {} and {}", self.position(), self.informer.status())
    }

    /// Each index is what a walk over everything gives.
    fn indexes(&self, snapshot: &CacheSnapshot<Value>) -> Result<(), String> {
        let color = |object: &Object<Value>| object.labels().get("color").map(str::to_owned);
        let (parent, child) = (content_field(&self.plan.kind), self.plan.indexed_child());
        let field = |object: &Object<Value>| {
            let content = object.decode().ok()?;
            content[parent][child].as_str().map(str::to_owned)
        };
        self.index(snapshot, &self.by_color, color)?;
        self.index(snapshot, &self.by_field, field)
    }

    fn index(
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
        let found =
            |value: &String| snapshot.by(index, value).iter().map(|object| object.key().clone()).collect();
        let values = snapshot.values(index);
        let mut actual: BTreeMap<String, Vec<ObjectKey>> =
            values.iter().map(|value| (value.clone(), found(value))).collect();
        actual.values_mut().chain(expected.values_mut()).for_each(|keys| keys.sort());
        if actual == expected { Ok(()) } else { Err(format!("{}: an index is wrong", self.plan.name)) }
    }
}

/// An informer as those see it who wait for what they have written.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) plan: Plan,
    pub(crate) informer: SharedInformer<Value>,
}

impl Watched {
    /// The life of the server that the cache shows in a namespace.
    pub(crate) fn life(&self, namespace: &str) -> Option<u64> {
        let canary = canary(namespace, self.plan.color.unwrap_or("red"));
        self.informer.lister().get(&canary)?.labels().get("life")?.parse().ok()
    }
}
