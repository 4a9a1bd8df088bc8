//! Several controllers in one process.

mod endpoint;
mod health;
mod metrics_text;
pub(crate) mod signals;

pub use metrics_text::InstallError;
pub use metrics_text::Metrics;

use crate::{
    leader::{ElectionConfigError, ElectionError, Elector, LeaderElection},
    leadership::Leadership,
    run::{RunController, RunError},
    shards::{Replica, Sharding},
};
use endpoint::Endpoint;
use futures_util::{StreamExt, stream::FuturesUnordered};
use health::Health;
use kube_informer::InformerFactory;
use metrics_text::Render;
use std::{fmt, future::Future, io, net::SocketAddr, pin::pin, sync::Arc};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Runs several controllers with one set of informers, one lease and one HTTP endpoint.
///
/// 1. All informers of the factory and of the controllers are started at once. With leader election, caches are warm before the process
///    leads.
/// 2. If one controller ends with an error, or the lease is lost, all of them are stopped, and [`run`](Self::run) returns the error: end
///    the process, so that it starts again in a known state.
/// 3. A stop happens in this order: no controller takes another key; reconciles in flight are finished, or cancelled after the drain
///    timeout of their controller; the lease is released; informers are stopped; the endpoint is closed. A reconcile that blocks
///    its thread cannot be cancelled: the stop waits for it, the lease is kept, and `/healthz` fails.
/// 4. A lost lease cancels reconciles at once.
///
/// The endpoint ([`serve`](Self::serve)):
///
/// | path | response |
/// |---|---|
/// | `/healthz` | 200, unless a reconcile blocks its thread, which only a restart ends |
/// | `/readyz` | 200 if all caches are synced and current, and the lease is held, held by another process, or could not be acquired for less than its duration; otherwise 503. Each line names a part, and says why it is not ready |
/// | `/metrics` | metrics in the text format of Prometheus |
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{InformerFactory, Object};
/// use kube_informer_controller::{Action, BoxError, Context, Controller, LeaderElection, Manager, Metrics};
///
/// async fn reconcile(config: Object<ConfigMap>, _: Context) -> Result<Action, BoxError> {
///     println!("reconcile {}", config.key());
///     Ok(Action::done())
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let server = kube_embedded_apiserver::ApiServer::start().await?;
/// # let client = server.client()?;
/// let metrics = Metrics::install()?; // before anything that reports metrics
/// // In your program: let client = kube_informer::informer_client(kube::Config::infer().await?)?;
/// let factory = InformerFactory::new(client.clone());
/// let configs = factory.of::<ConfigMap>();
/// # let stop = { let configs = configs.clone(); async move { configs.synced(std::time::Duration::MAX).await } };
/// let controller = Controller::new(&configs, client.clone()).run(reconcile);
/// # let any = ([127, 0, 0, 1], 0);
/// # let serve_address = any.into();
/// // In your program: let serve_address = ([0, 0, 0, 0], 8080).into();
/// Manager::new(&factory, client)
///     .add(controller)
///     .leader_election(LeaderElection::new("default", "my-operator"))
///     .serve(serve_address)
///     .metrics(metrics)
///     .until(stop) // or .run(), until SIGINT or SIGTERM
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "a manager does nothing until it is run"]
pub struct Manager {
    factory: InformerFactory,
    client: kube::Client,
    controllers: Vec<RunController>,
    work: Work,
    listen: Option<Listen>,
    render: Option<Render>,
    health: Health,
}

/// How the work is divided among processes.
#[derive(Debug)]
enum Work {
    /// This process does all of it.
    Alone,
    /// One process does all of it.
    Leader(Box<LeaderElection>),
    /// Each process does a part.
    Shards(Box<Sharding>),
}

/// The part of this process in the work.
enum Role {
    Alone,
    Candidate(Box<Elector>),
    Replica(Box<Replica>),
}

/// Where the endpoint listens.
#[derive(Debug)]
enum Listen {
    Address(SocketAddr),
    Socket(TcpListener),
}

/// A manager ended although it was not stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManagerError {
    /// The HTTP endpoint cannot be opened.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// Several controllers have one name, so their queues, metrics, events and field managers could not be distinguished.
    #[error(
        "{} controllers are named {name:?} (of {}): give each a name of its own with Controller::named",
        resources.len(), resources.join(", ")
    )]
    SameName {
        /// The name.
        name: String,
        /// The resources that these controllers reconcile.
        resources: Vec<String>,
    },
    /// The configuration of the leader election is invalid.
    #[error(transparent)]
    Config(#[from] ElectionConfigError),
    /// The lease was lost.
    #[error(transparent)]
    Election(#[from] ElectionError),
    /// A controller cannot go on.
    #[error(transparent)]
    Controller(#[from] RunError),
    /// Signals cannot be handled.
    #[error("cannot handle signals: {0}")]
    Signals(#[source] io::Error),
}

impl Manager {
    /// A manager of controllers whose informers are from `factory`, which it starts and shuts down. The client is for the lease.
    pub fn new(factory: &InformerFactory, client: kube::Client) -> Self {
        Self {
            factory: factory.clone(),
            client,
            controllers: Vec::new(),
            work: Work::Alone,
            listen: None,
            render: None,
            health: Health::new(factory.clone()),
        }
    }

    /// Adds a controller.
    #[allow(clippy::should_implement_trait, reason = "adds to the manager, which is not a number")]
    pub fn add(mut self, controller: RunController) -> Self {
        self.health.add_controller(Arc::clone(controller.shared()));
        self.controllers.push(controller);
        self
    }

    /// Runs the controllers only while this process holds a lease. Replaces [`sharding`](Self::sharding).
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.work = Work::Leader(Box::new(election));
        self
    }

    /// Divides the objects of the controllers among all processes with the same configuration. Replaces
    /// [`leader_election`](Self::leader_election).
    ///
    /// A process that loses the Lease of a shard cancels the reconciles of that shard, and goes on with the others.
    pub fn sharding(mut self, sharding: Sharding) -> Self {
        self.work = Work::Shards(Box::new(sharding));
        self
    }

    /// Serves health checks and metrics over HTTP.
    pub fn serve(mut self, address: SocketAddr) -> Self {
        self.listen = Some(Listen::Address(address));
        self
    }

    /// Serves health checks and metrics on a socket that is open already.
    pub fn serve_on(mut self, listener: TcpListener) -> Self {
        self.listen = Some(Listen::Socket(listener));
        self
    }

    /// Serves these metrics.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.render = Some(Render::prometheus(metrics));
        self
    }

    /// Serves what `render` returns as metrics, for programs with a recorder of their own.
    pub fn metrics_with(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.render = Some(Render::custom(render));
        self
    }

    /// Adds a check to `/readyz`; the error says why the program is not ready.
    pub fn ready_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.health.add_check(name.into(), Arc::new(check));
        self
    }

    /// Runs until SIGINT or SIGTERM; otherwise like [`until`](Self::until).
    pub async fn run(self) -> Result<(), ManagerError> {
        let signal = signals::stop().map_err(ManagerError::Signals)?;
        self.until(signal).await
    }

    /// Runs until `stop` resolves. Fails if two controllers have one name ([`ManagerError::SameName`]).
    pub async fn until(self, stop: impl Future) -> Result<(), ManagerError> {
        let Self { factory, client, controllers, work, listen, render, mut health } = self;
        check_names(&controllers)?;
        let role = role(work, client, &controllers)?;
        match &role {
            Role::Alone => {}
            Role::Candidate(elector) => health.add_election(Arc::clone(elector.candidacy())),
            Role::Replica(replica) => {
                health.add_shards(Arc::clone(replica.table()), replica.leases().clone());
            }
        }
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let endpoint = match listen {
            Some(Listen::Address(address)) => Some(Endpoint::open(address).await?),
            Some(Listen::Socket(listener)) => Some(Endpoint::on(listener)),
            None => None,
        };
        let serve = async {
            match endpoint {
                Some(endpoint) => endpoint.serve(health, render, closing.cancelled()).await,
                None => closing.cancelled().await,
            }
        };
        let work = async {
            factory.start();
            // Also informers from elsewhere, so that they are warm before the process leads.
            controllers.iter().for_each(|controller| controller.shared().start_informers());
            let outcome = run_role(role, controllers, &stopping).await;
            factory.shutdown().await;
            closing.cancel();
            outcome
        };
        let signal = async {
            let mut stop = pin!(stop);
            tokio::select! {
                biased;
                _ = &mut stop => stopping.cancel(),
                () = closing.cancelled() => {}
            }
        };
        let (outcome, (), ()) = tokio::join!(work, serve, signal);
        outcome
    }
}

/// Checks that no two controllers have one name.
fn check_names(controllers: &[RunController]) -> Result<(), ManagerError> {
    for controller in controllers {
        let name = controller.name();
        let same = controllers.iter().filter(|other| other.name() == name);
        let resources: Vec<_> = same.map(|other| other.shared().resource()).collect();
        if resources.len() > 1 {
            return Err(ManagerError::SameName { name: name.to_owned(), resources });
        }
    }
    Ok(())
}

/// The part of this process in the work.
fn role(
    work: Work,
    client: kube::Client,
    controllers: &[RunController],
) -> Result<Role, ElectionConfigError> {
    Ok(match work {
        Work::Alone => Role::Alone,
        Work::Leader(election) => {
            check_write_timeouts(&election, controllers)?;
            Role::Candidate(Box::new(election.elector(client)?))
        }
        Work::Shards(sharding) => {
            check_write_timeouts(&sharding.election, controllers)?;
            Role::Replica(Box::new(Replica::new(&sharding, &client, controllers)?))
        }
    })
}

/// Checks that every controller can write between two renewals.
fn check_write_timeouts(
    election: &LeaderElection,
    controllers: &[RunController],
) -> Result<(), ElectionConfigError> {
    let (lease, period) = (election.lease_duration, election.retry_period);
    for controller in controllers {
        let write = controller.shared().settings.write_timeout;
        if write.saturating_add(period) >= lease {
            let controller = controller.name().to_owned();
            return Err(ElectionConfigError::WriteTimeout { controller, write, lease });
        }
    }
    Ok(())
}

/// Runs the controllers, with the leases that they need.
async fn run_role(
    role: Role,
    controllers: Vec<RunController>,
    stopping: &CancellationToken,
) -> Result<(), ManagerError> {
    match role {
        Role::Alone => run_all(controllers, None, stopping).await,
        Role::Candidate(elector) => {
            let work = |leadership| run_all(controllers, Some(leadership), stopping);
            elector.run(stopping.cancelled(), work).await?.unwrap_or(Ok(()))
        }
        Role::Replica(replica) => {
            // Shards are released when the controllers have drained.
            let drained = CancellationToken::new();
            let work = async {
                let outcome = run_all(controllers, None, stopping).await;
                drained.cancel();
                outcome
            };
            let (outcome, ()) = tokio::join!(work, replica.run(stopping, &drained));
            outcome
        }
    }
}

/// Runs the controllers until they are stopped. If one ends with an error, the others are stopped.
async fn run_all(
    controllers: Vec<RunController>,
    leadership: Option<Leadership>,
    stopping: &CancellationToken,
) -> Result<(), ManagerError> {
    let stop = stopping.child_token();
    let runs = controllers.into_iter().map(|controller| {
        let (leadership, stop) = (leadership.clone(), stop.clone());
        async move {
            match leadership {
                Some(leadership) => controller.lead(leadership, stop.cancelled()).await,
                None => controller.until(stop.cancelled()).await,
            }
        }
    });
    let mut runs: FuturesUnordered<_> = runs.collect();
    let mut outcome = Ok(());
    while let Some(ended) = runs.next().await {
        stop.cancel();
        outcome = outcome.and(ended.map_err(ManagerError::from));
    }
    if outcome.is_ok() {
        // Without controllers there is nothing to do until the stop.
        stopping.cancelled().await;
    }
    outcome
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("controllers", &self.controllers)
            .field("work", &self.work)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}
