//! A controller that is ready to run, and its stages: sync, dispatch, drain.

use crate::{
    action::Action,
    barrier::Barrier,
    clock::WallClock,
    context::Context,
    events::Recorder,
    failure::{BoxError, ReconcileFailure},
    freshness,
    in_flight::InFlight,
    leadership::{Leadership, LeaseGate},
    phase::{Phase, PhaseCell},
    shards::{ShardKeys, Table},
    telemetry::Telemetry,
    time, worker,
    written_status::WrittenStatuses,
};
use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kube_informer::{
    InformerStatus, ObjectKey, Priority, ResourceVersion, ScopedRegistration, SharedInformer, SyncError,
    WorkQueue, workqueue::RateLimiter,
};
use serde_json::Value;
use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Number of keys that a resync adds at once.
const RESYNC_BATCH: usize = 256;

/// Delay between two attempts to prove that a cache is current.
const PROOF_RETRY: Duration = Duration::from_secs(1);

/// Reconciles a key; `None` if its object does not exist.
pub(crate) type Reconcile =
    Arc<dyn Fn(Context) -> BoxFuture<'static, Result<Option<Action>, BoxError>> + Send + Sync>;

/// Code of the user that receives failures.
#[derive(Clone)]
pub(crate) struct Hook(pub(crate) Arc<dyn Fn(&ReconcileFailure) + Send + Sync>);

/// The options of a controller that apply while it runs.
pub(crate) struct Settings {
    pub(crate) name: Arc<str>,
    /// At least one.
    pub(crate) concurrency: usize,
    pub(crate) deadline: Duration,
    pub(crate) drain_timeout: Duration,
    /// `None`: the resyncs of the informer.
    pub(crate) resync: Option<Duration>,
    pub(crate) hook: Option<Hook>,
    /// The rate limiter of the queue, so that a failure can be reported with the delay of its retry.
    pub(crate) limiter: Option<Arc<dyn RateLimiter<ObjectKey>>>,
    /// The name of the controller if `None`.
    pub(crate) field_manager: Option<String>,
    pub(crate) write_timeout: Duration,
    pub(crate) barrier_timeout: Duration,
    pub(crate) allow_stale: bool,
    /// Whether deleted objects are reconciled.
    pub(crate) by_key: bool,
    pub(crate) wall_clock: WallClock,
}

impl Settings {
    pub(crate) fn named(name: String) -> Self {
        Self {
            name: Arc::from(name),
            concurrency: 1,
            deadline: Duration::from_secs(5 * 60),
            drain_timeout: Duration::from_secs(30),
            resync: None,
            hook: None,
            limiter: None,
            field_manager: None,
            write_timeout: Duration::from_secs(5),
            barrier_timeout: Duration::from_secs(30),
            allow_stale: false,
            by_key: false,
            wall_clock: WallClock::default(),
        }
    }
}

/// The state that all reconciles of a controller share.
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) queue: WorkQueue<ObjectKey>,
    /// The caches that reconciles read; the first one is that of the controller's own objects.
    pub(crate) caches: Vec<SharedInformer<Value>>,
    pub(crate) client: kube::Client,
    pub(crate) telemetry: Telemetry,
    pub(crate) in_flight: InFlight,
    pub(crate) barrier: Arc<Barrier>,
    pub(crate) gate: LeaseGate,
    pub(crate) recorder: Recorder,
    pub(crate) statuses: WrittenStatuses,
    pub(crate) phase: PhaseCell,
    /// Which keys this replica may reconcile, if they are divided among several.
    pub(crate) shards: OnceLock<Arc<ShardKeys>>,
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        queue: WorkQueue<ObjectKey>,
        caches: Vec<SharedInformer<Value>>,
        client: kube::Client,
    ) -> Arc<Self> {
        let telemetry = Telemetry::new(&settings.name);
        let (barrier, in_flight) = (Barrier::new(caches.clone()), InFlight::default());
        let recorder = Recorder::new(&settings.name, settings.wall_clock.clone());
        let (gate, statuses) = (LeaseGate::default(), WrittenStatuses::default());
        Arc::new(Self {
            settings,
            queue,
            caches,
            client,
            telemetry,
            in_flight,
            barrier,
            gate,
            recorder,
            statuses,
            phase: PhaseCell::default(),
            shards: OnceLock::new(),
        })
    }
}

/// A controller cannot run, or cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A cache cannot become synced, because its informer was stopped or its runtime was shut down.
    #[error("controller {controller} cannot start: {source}")]
    Sync {
        /// The name of the controller.
        controller: Arc<str>,
        /// The caches.
        source: SyncError,
    },
    /// An informer of the controller was stopped.
    #[error(
        "controller {controller}: the informer of {resource} is {status}; stop the controller before its informers"
    )]
    InformerEnded {
        /// The name of the controller.
        controller: Arc<str>,
        /// The resource of the informer.
        resource: String,
        /// The last status of the informer.
        status: InformerStatus,
    },
}

/// A controller that is ready to run, made by [`Controller::run`](crate::Controller::run).
///
/// It runs while it, or [`until`](Self::until), is awaited; dropping that future cancels the reconciles in flight. It starts
/// the informers of the controller if they were not started, and does not stop them.
#[must_use = "a controller does nothing unless awaited"]
pub struct RunController {
    shared: Arc<Shared>,
    reconcile: Reconcile,
    /// Dropping them removes the handlers, which would fill the queue of a controller that does not run.
    registrations: Vec<ScopedRegistration>,
}

impl RunController {
    pub(crate) fn new(
        shared: Arc<Shared>,
        reconcile: Reconcile,
        registrations: Vec<ScopedRegistration>,
    ) -> Self {
        Self { shared, reconcile, registrations }
    }

    /// The name of the controller.
    pub fn name(&self) -> &str {
        &self.shared.settings.name
    }

    /// The queue of keys to reconcile. Adding a key reconciles it.
    pub fn queue(&self) -> &WorkQueue<ObjectKey> {
        &self.shared.queue
    }

    /// Runs the controller until `stop` resolves. Then it takes no further key, waits for the reconciles in flight, and cancels
    /// those that take longer than [`drain_timeout`](crate::Controller::drain_timeout).
    pub async fn until(self, stop: impl Future) -> Result<(), RunError> {
        self.stages(stop, false).await
    }

    /// Runs the controller in a process that just won a lease, until `stop` resolves.
    ///
    /// 1. The first reconcile starts when the caches show everything that the previous holder wrote. If they are synced already,
    ///    that takes one request for each kind, and for a quiet kind a watch of about a second.
    /// 2. Every write through a [`Context`] is sent only if the lease is valid for longer than the request may take.
    ///
    /// Drop the future when the lease is lost, as [`Elector::run`](crate::Elector::run) does.
    pub async fn lead(self, leadership: Leadership, stop: impl Future) -> Result<(), RunError> {
        self.shared.gate.set(leadership);
        self.stages(stop, true).await
    }

    async fn stages(self, stop: impl Future, prove: bool) -> Result<(), RunError> {
        let Self { shared, reconcile, registrations } = self;
        let mut stop = pin!(async { drop(stop.await) });
        let prepare = async {
            shared.phase.set(Phase::Syncing);
            shared.synced().await?;
            if prove {
                shared.phase.set(Phase::CheckingCaches);
                shared.prove_fresh().await;
            }
            Ok(())
        };
        tokio::select! {
            biased;
            () = &mut stop => {
                shared.phase.set(Phase::Stopped);
                return Ok(());
            }
            prepared = prepare => prepared?,
        }
        shared.phase.set(Phase::Running);
        let mut ended = None;
        let stop = async {
            tokio::select! {
                biased;
                () = stop => {}
                error = shared.informer_ended() => ended = Some(error),
                () = shared.resync() => {}
            }
            shared.phase.set(Phase::Draining);
        };
        let drained = CancellationToken::new();
        let work = async {
            worker::dispatch(&shared, &reconcile, stop).await;
            drained.cancel();
        };
        tokio::join!(work, shared.record_events(drained.cancelled()));
        drop(registrations);
        shared.queue.shutdown();
        shared.phase.set(Phase::Stopped);
        ended.map_or(Ok(()), Err)
    }

    /// For reports on the state of the controller, which outlive it.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl IntoFuture for RunController {
    type Output = Result<(), RunError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// Runs the controller until one of its informers is stopped, which is an error.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.until(std::future::pending::<()>()))
    }
}

impl Shared {
    /// The resource that the controller reconciles.
    pub(crate) fn resource(&self) -> String {
        self.caches.first().map(|primary| primary.kind().to_string()).unwrap_or_default()
    }

    pub(crate) fn start_informers(&self) {
        self.caches.iter().for_each(SharedInformer::start);
    }

    /// Starts the informers, and resolves when all are synced.
    pub(crate) async fn synced(&self) -> Result<(), RunError> {
        self.start_informers();
        for cache in &self.caches {
            let synced = cache.synced(Duration::MAX).await;
            synced.map_err(|source| RunError::Sync { controller: self.settings.name.clone(), source })?;
        }
        Ok(())
    }

    /// Writes events until `stop` resolves.
    async fn record_events(&self, stop: impl Future<Output = ()>) {
        self.recorder.run(&self.client, &self.gate, self.settings.write_timeout, stop).await;
    }

    /// Adds all objects to the queue in the period of the controller. Never resolves.
    async fn resync(&self) {
        loop {
            let period = self.settings.resync.filter(|period| !period.is_zero());
            time::sleep(period.unwrap_or(Duration::MAX)).await;
            let Some(primary) = self.caches.first() else { continue };
            for (index, object) in primary.lister().snapshot().iter().enumerate() {
                self.queue.add_with(object.key().clone(), Priority::LOW);
                if index % RESYNC_BATCH == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Resolves when every cache shows what the server has stored now, with the version of the controller's own objects. Retries
    /// after failures; gives up only if stale caches are allowed.
    pub(crate) async fn prove_fresh(&self) -> Option<ResourceVersion> {
        let mut own = None;
        for (index, cache) in self.caches.iter().enumerate() {
            let version = loop {
                match freshness::prove(cache, &self.client, self.settings.barrier_timeout).await {
                    Ok(version) => break version,
                    Err(unproved) => {
                        warn!(controller = %self.settings.name, %unproved, "no reconcile starts before its caches are current");
                    }
                }
                if self.settings.allow_stale {
                    break None;
                }
                time::sleep(PROOF_RETRY).await;
            };
            if index == 0 {
                own = version;
            }
        }
        own
    }

    /// Divides the keys of the controller among replicas: from now on it reconciles only those of shards that this one holds. `None`
    /// if it has no objects.
    pub(crate) fn divide(&self, table: &Arc<Table>) -> Option<Arc<ShardKeys>> {
        let (name, primary) = (Arc::clone(&self.settings.name), self.caches.first()?);
        let keys =
            || ShardKeys::new(name, primary, self.queue.clone(), Arc::clone(table), self.settings.by_key);
        Some(Arc::clone(self.shards.get_or_init(keys)))
    }

    /// Resolves when an informer was stopped, or has failed and is not restarted.
    async fn informer_ended(&self) -> RunError {
        let ends = self.caches.iter().map(async |cache| {
            let mut changes = cache.status_changes();
            while let Some(status) = changes.next().await {
                if status == InformerStatus::Stopped
                    || matches!(status, InformerStatus::Failed { next: None, .. })
                {
                    return (cache, status);
                }
            }
            (cache, InformerStatus::Stopped)
        });
        match ends.collect::<FuturesUnordered<_>>().next().await {
            Some((cache, status)) => RunError::InformerEnded {
                controller: self.settings.name.clone(),
                resource: cache.kind().to_string(),
                status,
            },
            None => std::future::pending().await,
        }
    }
}

impl fmt::Debug for RunController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunController({})", self.name())
    }
}
