//! A replica that reconciles some of the shards.

use super::{
    Sharding,
    lease::{NAME_LABEL, PREFERRED},
    member::{Divided, Member},
    table::{Request, Table},
};
use crate::{
    failure::chain,
    leader::{ElectionConfigError, LeaderElection},
    run::RunController,
    time,
};
use futures_util::future::{join, join_all};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use kube_informer::{Deleted, EventHandler, InformerFactory, LabelSelector, Object, Scope, SharedInformer};
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tracing::debug;

/// Delay after a request for a shard that failed.
const REQUEST_RETRY: Duration = Duration::from_secs(1);
/// How often a replica tries to withdraw its requests before others have to wait until they count as those of a dead one.
const WITHDRAWALS: usize = 3;
/// How long a request for a shard may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A replica that reconciles some of the shards of its controllers.
pub(crate) struct Replica {
    election: LeaderElection,
    client: kube::Client,
    table: Arc<Table>,
    controllers: Vec<Divided>,
    members: Vec<Member>,
    factory: InformerFactory,
    leases: SharedInformer<Lease>,
}

impl Replica {
    /// Prepares the controllers: from now on they reconcile only what this replica holds.
    pub(crate) fn new(
        sharding: &Sharding,
        client: &kube::Client,
        controllers: &[RunController],
    ) -> Result<Self, ElectionConfigError> {
        let (count, scope) = sharding.validate()?;
        let election = sharding.election.clone();
        let (identity, name) = (election.identity.clone(), election.name.clone());
        let clock = election.clock.clone();
        let table = Arc::new(Table::new(identity, name, count, election.lease_duration, clock));
        let divide = |controller: &RunController| {
            let shared = Arc::clone(controller.shared());
            let keys = shared.divide(&table)?;
            Some(Divided { shared, keys })
        };
        let controllers: Vec<_> = controllers.iter().filter_map(divide).collect();
        let member = |shard| Member::new(shard, &table, &controllers, &election, client);
        let members = table.all().map(member).collect::<Result<_, _>>()?;
        let seed = election.seed;
        let factory = InformerFactory::builder(client.clone())
            .configure(move |informer| informer.name("shard leases").seed(seed))
            .build();
        let leases = leases(&factory, scope, &table);
        Ok(Self { election, client: client.clone(), table, controllers, members, factory, leases })
    }

    /// The table, for reports, which outlive the replica.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The informer of the Leases of all shards.
    pub(crate) fn leases(&self) -> &SharedInformer<Lease> {
        &self.leases
    }

    /// Takes part in the division until `stop` is cancelled, then releases all shards. When `stopping` is cancelled, it asks for no
    /// further shards, and withdraws its requests: others would leave them to a replica that has ended.
    pub(crate) async fn run(self, stopping: &CancellationToken, stop: &CancellationToken) {
        let Self { election, client, table, controllers, members, factory, leases } = self;
        factory.start();
        let warm = async {
            for controller in &controllers {
                // The controller reports why it is not synced.
                if controller.shared.synced().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            // Otherwise all Leases would look as if they did not exist.
            if leases.synced(Duration::MAX).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = warm => {
                let api = Api::namespaced(client, &election.namespace);
                let leaving = stopping.child_token();
                let members = async {
                    join_all(members.into_iter().map(|member| member.run(stop.clone()))).await;
                    leaving.cancel();
                };
                let asking = async {
                    ask(&table, &api, &election.identity, &leaving).await;
                    withdraw(&table, &api).await;
                };
                tokio::select! {
                    biased;
                    _ = join(members, asking) => {}
                    () = retry_parked(&table, &controllers) => {}
                }
            }
        }
        controllers.iter().for_each(|controller| controller.keys.close());
        factory.shutdown().await;
    }
}

/// An informer of the Leases of all shards, which fills the table.
fn leases(factory: &InformerFactory, scope: Scope, table: &Arc<Table>) -> SharedInformer<Lease> {
    let selector = LabelSelector::parse(&format!("{NAME_LABEL}={}", table.name()));
    // The name was checked to be valid.
    let selector = selector.unwrap_or_default();
    let leases = factory.of_with::<Lease, Lease>(|options| options.scope(scope).label_selector(selector));
    leases.add_handler(Observer(Arc::clone(table)));
    leases
}

/// Passes Leases to the table.
struct Observer(Arc<Table>);

impl Observer {
    fn observe(&self, lease: &Object<Lease>) {
        match lease.decode() {
            Ok(lease) => self.0.observe(&lease),
            Err(error) => debug!(%error, "cannot decode the Lease of a shard"),
        }
    }
}

impl EventHandler<Lease> for Observer {
    fn on_add(&mut self, lease: &Object<Lease>, _: bool) {
        self.observe(lease);
    }

    fn on_update(&mut self, _: &Object<Lease>, lease: &Object<Lease>) {
        self.observe(lease);
    }

    fn on_delete(&mut self, deleted: &Deleted<Lease>) {
        if let Ok(lease) = deleted.object().decode() {
            self.0.forget(&lease);
        }
    }
}

/// Retries the keys that wait for other replicas whenever these have made progress. Never resolves.
async fn retry_parked(table: &Table, controllers: &[Divided]) {
    let mut changes = table.changes();
    loop {
        controllers.iter().for_each(|controller| controller.keys.others_progressed());
        // The table outlives this.
        let _ = changes.changed().await;
    }
}

/// Asks for shards as long as others have too many, until `leaving` is cancelled.
async fn ask(table: &Table, api: &Api<Lease>, identity: &str, leaving: &CancellationToken) {
    let mut changes = table.changes();
    while !leaving.is_cancelled() {
        changes.mark_unchanged();
        let Some(request) = table.request() else {
            // The table outlives this.
            let _ = leaving.run_until_cancelled(changes.changed()).await;
            continue;
        };
        // Not cancelled: a request that the server processes later could not be withdrawn.
        match time::timeout(REQUEST_TIMEOUT, send(api, &request, Some(identity))).await {
            Ok(Ok(lease)) => table.observe(&lease),
            Ok(Err(error)) => {
                debug!(lease = request.lease, error = chain(&error), "cannot ask for a shard")
            }
            Err(time::Elapsed) => debug!(lease = request.lease, "no response to a request for a shard"),
        }
        if table.request() == Some(request) {
            leaving.run_until_cancelled(time::sleep(REQUEST_RETRY)).await;
        }
    }
}

/// Withdraws the requests for shards that this replica does not hold.
async fn withdraw(table: &Table, api: &Api<Lease>) {
    for _ in 0..WITHDRAWALS {
        for request in table.requested() {
            let lease = time::timeout(REQUEST_TIMEOUT, async {
                match send(api, &request, None).await {
                    Ok(lease) => Ok(lease),
                    // It was changed meanwhile, most likely.
                    Err(_) => api.get(&request.lease).await,
                }
            });
            match lease.await {
                Ok(Ok(lease)) => table.observe(&lease),
                Ok(Err(error)) => {
                    debug!(
                        lease = request.lease,
                        error = chain(&error),
                        "cannot withdraw a request for a shard"
                    )
                }
                Err(time::Elapsed) => return,
            }
        }
    }
}

/// Names the replica that a shard is to be given to, or none.
async fn send(api: &Api<Lease>, request: &Request, preferred: Option<&str>) -> Result<Lease, kube::Error> {
    let annotations = json!({PREFERRED: preferred});
    let metadata = json!({"resourceVersion": request.version.to_string(), "annotations": annotations});
    let patch = Patch::Merge(json!({"metadata": metadata}));
    api.patch(&request.lease, &PatchParams::default(), &patch).await
}
