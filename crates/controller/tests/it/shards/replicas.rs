//! Replicas of one program, which write down what they reconcile.

use crate::support::{NAMESPACE, World};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::{InformerFactory, Object, ObjectKey};
use kube_informer_controller::{
    Action, BoxError, Context, Controller, LeaderElection, Manager, ManagerError, RunController, Sharding,
    WriteError,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
    time::Instant,
};

/// Something that a replica does with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) replica: String,
    pub(crate) key: String,
    pub(crate) what: &'static str,
}

impl Step {
    pub(crate) fn new(replica: &str, key: &str, what: &'static str) -> Self {
        Self { replica: replica.to_owned(), key: key.to_owned(), what }
    }
}

/// What all replicas do, in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Log(Arc<Mutex<Vec<Step>>>);

impl Log {
    fn note(&self, replica: &str, key: &str, what: &'static str) {
        self.0.lock().unwrap().push(Step::new(replica, key, what));
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn take(&self) -> Vec<Step> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// What happened last to a key.
    fn of_key(&self, key: &str) -> Vec<Step> {
        let steps: Vec<_> = self.steps().into_iter().filter(|step| step.key == key).collect();
        steps[steps.len().saturating_sub(20)..].to_vec()
    }

    /// The keys that are being reconciled, with the replica. Fails if two replicas reconcile one at once.
    pub(crate) fn check_intervals(&self) -> BTreeMap<String, String> {
        let mut running = BTreeMap::new();
        for Step { replica, key, what } in self.steps() {
            match what {
                "starts" => {
                    let other = running.insert(key.clone(), replica.clone());
                    assert_eq!(other, None, "{replica} starts {key}: {:?}", self.of_key(&key));
                }
                "ends" | "fails" | "is cancelled" => _ = running.remove(&key),
                _ => {}
            }
        }
        running
    }

    pub(crate) fn is_running(&self, replica: &str, key: &str) -> bool {
        self.check_intervals().get(key).is_some_and(|running| running == replica)
    }

    /// Whether a replica has reconciled a key.
    pub(crate) fn is_ended(&self, replica: &str, key: &str) -> bool {
        self.steps().contains(&Step::new(replica, key, "ends"))
    }
}

/// A reconcile that is running. It is cancelled unless it ends.
struct Running {
    log: Log,
    replica: String,
    key: String,
    outcome: &'static str,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.log.note(&self.replica, &self.key, self.outcome);
    }
}

/// A process with a controller of config maps, which writes its name into them.
pub(crate) struct Replica {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ManagerError>>,
    /// Names whose reconciles do not go on.
    blocked: watch::Sender<BTreeSet<String>>,
    /// Seconds by which the clock is ahead.
    skew: Arc<AtomicU64>,
}

impl Replica {
    pub(crate) fn start(world: &World, name: &str, shards: u32, log: &Log) -> Self {
        let factory =
            InformerFactory::builder(world.client.clone()).configure(|informer| informer.seed(1)).build();
        let (blocked, skew) = (watch::Sender::new(BTreeSet::new()), Arc::<AtomicU64>::default());
        let run = controller(world, &factory, name, log, &blocked);
        let (begin, ahead) = (Instant::now(), Arc::clone(&skew));
        let clock = move || begin.elapsed() + Duration::from_secs(ahead.load(Ordering::SeqCst));
        let seed = name.bytes().fold(0, |seed, byte| seed * 31 + u64::from(byte));
        let election = LeaderElection::new(NAMESPACE, "shard").identity(name).clock(clock).seed(seed);
        let manager =
            Manager::new(&factory, world.client.clone()).add(run).sharding(Sharding::new(election, shards));
        let (stop, stopped) = oneshot::channel::<()>();
        Self { stop, task: tokio::spawn(manager.until(stopped)), blocked, skew }
    }

    /// Reconciles of this name do not go on from now on.
    pub(crate) fn block(&self, name: &str) {
        self.blocked.send_modify(|names| _ = names.insert(name.to_owned()));
    }

    pub(crate) fn unblock(&self) {
        self.blocked.send_replace(BTreeSet::new());
    }

    /// The machine is suspended.
    pub(crate) fn suspend(&self, seconds: u64) {
        self.skew.fetch_add(seconds, Ordering::SeqCst);
    }

    /// Stops in order.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        self.task.await.unwrap().unwrap();
    }

    /// Ends without a chance to release its leases.
    pub(crate) async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn controller(
    world: &World,
    factory: &InformerFactory,
    name: &str,
    log: &Log,
    blocked: &watch::Sender<BTreeSet<String>>,
) -> RunController {
    let (log, name, blocked) = (log.clone(), name.to_owned(), blocked.clone());
    let configs = factory.of::<ConfigMap>();
    Controller::new(&configs, world.client.clone()).named("configs").concurrency(8).run_by_key(
        move |key: ObjectKey, config: Option<Object<ConfigMap>>, context: Context| {
            let (log, name, blocked) = (log.clone(), name.clone(), blocked.subscribe());
            async move { reconcile(key, config, context, log, name, blocked).await }
        },
    )
}

async fn reconcile(
    key: ObjectKey,
    config: Option<Object<ConfigMap>>,
    context: Context,
    log: Log,
    name: String,
    mut blocked: watch::Receiver<BTreeSet<String>>,
) -> Result<Action, BoxError> {
    log.note(&name, key.name(), "starts");
    let mut running = Running {
        log: log.clone(),
        replica: name.clone(),
        key: key.name().to_owned(),
        outcome: "is cancelled",
    };
    let Some(config) = config else {
        log.note(&name, key.name(), "is absent");
        running.outcome = "ends";
        return Ok(Action::done());
    };
    // The sender is dropped with the test.
    let _ = blocked.wait_for(|names| !names.contains(key.name())).await;
    let value = config.decode()?.data.as_ref().and_then(|data| data.get("value").cloned());
    let seen = format!("{name} {}", value.unwrap_or_default());
    let written = context.patch(&config, |config| config["data"]["seen"] = seen.into()).await;
    if let Err(WriteError::NotLeading { .. }) = &written {
        log.note(&name, key.name(), "does not write");
    }
    running.outcome = if written.is_ok() { "ends" } else { "fails" };
    drop(running);
    written?;
    Ok(Action::done())
}
