//! Replicas of a controller in processes that are killed and paused, with objects divided into shards.
//!
//! A server, three replicas and a writer. Again and again one replica is paused for longer than its leases, or killed and
//! replaced. All writes are checked afterwards, in the order of the server: see [`audit`].

mod audit;
mod replica;

pub use replica::run_replica;

use anyhow::Context;
use audit::Audit;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use kube_embedded_apiserver::ApiServer;
use replica::{LEASE, NAMESPACE, OBJECTS, ReplicaProcess, SHARDS};
use serde_json::json;
use std::time::{Duration, Instant};

/// Replicas at a time.
const REPLICAS: usize = 3;
/// One of this many pauses kills the replica instead.
const KILL_EVERY: u32 = 10;
/// How long a take-over may take beyond the lease: much longer than promised, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// How replicas are disturbed.
#[derive(Debug, Clone)]
pub struct ShardOptions {
    /// Number of pauses and kills.
    pub pauses: u32,
    /// Seed of the writes and of the victims.
    pub seed: u64,
}

/// Disturbs replicas and checks all their writes. Returns a line with totals.
pub async fn shards(options: &ShardOptions, progress: &dyn Fn(&str)) -> anyhow::Result<String> {
    let server = ApiServer::start().await.context("cannot start the server")?;
    let client = server.client()?;
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    for number in 0..OBJECTS {
        let mut config = ConfigMap::default();
        config.metadata.name = Some(format!("c-{number}"));
        configs.create(&PostParams::default(), &config).await?;
    }
    let audit = Audit::start(&client).await?;
    let mut rng = fastrand::Rng::with_seed(options.seed);
    let writer = tokio::spawn(write(configs.clone(), rng.fork()));
    let outcome = disturb(options, &server.address().to_string(), &audit, &mut rng, progress).await;
    writer.abort();
    let (mut replicas, slowest) = outcome?;
    converged(&configs, &audit).await?;
    let mut late = 0;
    for replica in &mut replicas {
        late += replica.stop().await?;
    }
    let checked = audit.check()?;
    server.shutdown().await;
    let pauses = options.pauses;
    Ok(format!("pauses={pauses} {checked} not-sent-or-conflict={late} slowest-takeover={slowest:?}"))
}

/// Pauses and kills replicas. Returns those that run at the end, and the longest time of a take-over.
async fn disturb(
    options: &ShardOptions,
    address: &str,
    audit: &Audit,
    rng: &mut fastrand::Rng,
    progress: &dyn Fn(&str),
) -> anyhow::Result<(Vec<ReplicaProcess>, Duration)> {
    let mut started = 0;
    let mut next = || {
        started += 1;
        ReplicaProcess::start(address, &format!("replica-{started}"))
    };
    let mut replicas = (0..REPLICAS).map(|_| next()).collect::<anyhow::Result<Vec<_>>>()?;
    audit.all_hold(&names(&replicas)).await?;
    let mut slowest = Duration::ZERO;
    for pause in 1..=options.pauses {
        tokio::time::sleep(Duration::from_millis(rng.u64(..1500))).await;
        let victim = rng.usize(..REPLICAS);
        let name = replicas[victim].name().to_owned();
        let began = Instant::now();
        if pause % KILL_EVERY == 0 {
            replicas[victim].kill().await?;
            audit.holds_nothing(&name, LEASE + PATIENCE).await?;
            slowest = slowest.max(began.elapsed());
            replicas[victim] = next()?;
        } else {
            replicas[victim].signal("STOP").await?;
            audit.holds_nothing(&name, LEASE + PATIENCE).await?;
            slowest = slowest.max(began.elapsed());
            tokio::time::sleep(Duration::from_millis(rng.u64(..1500))).await;
            replicas[victim].signal("CONT").await?;
        }
        if pause % 10 == 0 {
            progress(&format!("{pause} of {} pauses, {} writes", options.pauses, audit.writes()));
        }
        // Otherwise the next victim often holds nothing.
        audit.all_hold(&names(&replicas)).await?;
    }
    Ok((replicas, slowest))
}

fn names(replicas: &[ReplicaProcess]) -> Vec<&str> {
    replicas.iter().map(ReplicaProcess::name).collect()
}

/// Changes random objects for ever.
async fn write(configs: Api<ConfigMap>, mut rng: fastrand::Rng) {
    for number in 0_u64.. {
        let name = format!("c-{}", rng.u32(..OBJECTS));
        let patch = Patch::Merge(json!({"data": {"want": number.to_string()}}));
        // A write that fails is followed by others.
        let _ = configs.patch(&name, &PatchParams::default(), &patch).await;
        tokio::time::sleep(Duration::from_millis(rng.u64(..10))).await;
    }
}

/// Waits until every object is in its desired state.
async fn converged(configs: &Api<ConfigMap>, audit: &Audit) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let list = configs.list(&ListParams::default()).await?;
        let is_done = |config: &ConfigMap| {
            let value = |name: &str| config.data.as_ref().and_then(|data| data.get(name));
            value("want") == value("done")
        };
        let lagging = list.items.iter().filter(|config| !is_done(config)).count();
        if lagging == 0 {
            let versions = list.items.iter().filter_map(|config| config.metadata.resource_version.as_ref());
            let newest = versions.filter_map(|version| version.parse().ok()).max();
            return audit.has_seen(newest.unwrap_or_default()).await;
        }
        anyhow::ensure!(began.elapsed() < PATIENCE, "{lagging} objects are not in their desired state");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// A client of the server at an address.
fn connect(address: &str) -> anyhow::Result<Client> {
    let config = kube::Config::new(format!("http://{address}").parse()?);
    Ok(kube_informer::informer_client(config)?)
}

/// The shard of an object.
fn shard_of(uid: kube_informer::Uid) -> u32 {
    kube_informer::ShardRange::index_of(uid, SHARDS)
}
