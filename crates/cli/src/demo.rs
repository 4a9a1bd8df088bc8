//! `kube-informer demo`: an embedded cluster that never rests, and the informer pipeline that follows it.

mod auditor;
mod cluster_life;
mod journal;
mod keys;
mod meters;
mod plain;
mod sample;
mod screen;
mod switches;

use crate::{args::DemoOptions, cluster::Cluster, seeding::seed_nodes, signals};
use auditor::Auditor;
use cluster_life::ClusterLife;
use journal::Journal;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Node, Pod},
};
use kube_informer::{InformerFactory, informer_client};
use kube_informer_examples::replica_set_controller::ReplicaSetController;
use meters::Meters;
use sample::Observer;
use std::{
    future::{Future, pending},
    io::{IsTerminal, stdout},
    time::Duration,
};
use switches::Switches;

/// Nodes of the demo cluster.
const NODES: usize = 5;
/// Events waiting for one handler before it gets net effects; small, so that one can see it happen.
const HANDLER_BOUND: usize = 64;
const WORKERS: usize = 4;

/// Runs until the time is up or somebody ends it.
pub(crate) async fn run(options: DemoOptions) -> anyhow::Result<()> {
    // Before the first informer: counters are found when things are made.
    let meters = Meters::install();
    let cluster = Cluster::embedded(0).await?;
    let Some(server) = cluster.server() else { anyhow::bail!("the embedded server is gone") };
    let (client, faults, url) = (server.client()?, server.faults(), cluster.url());
    seed_nodes(&client, NODES, options.seed).await?;

    let factory = InformerFactory::builder(informer_client(cluster.config.clone())?)
        .resync(Duration::from_secs(60))
        .configure(|informer| informer.handler_bound(HANDLER_BOUND))
        .build();
    let journal = Journal::default();
    let controller = ReplicaSetController::new(&factory, client.clone(), options.seed)?;
    let life = ClusterLife::new(&factory, client.clone(), options.seed);
    let auditor = Auditor::new(&factory.of::<Pod>(), journal.clone());
    let switches = Switches::new(faults, client, journal.clone(), auditor.stalled(), options.seed);
    let informers = vec![
        factory.of::<Deployment>().cast(),
        factory.of::<ReplicaSet>().cast(),
        factory.of::<Pod>().cast(),
        factory.of::<Node>().cast(),
    ];
    let observer =
        Observer::new(informers, controller.queue().clone(), meters, journal, url, auditor.stalled());
    factory.start();

    let ended = async {
        tokio::select! {
            () = signals::ended() => {}
            () = after(options.length) => {}
        }
    };
    let everything = async {
        let (ran, lived, ()) =
            tokio::join!(controller.run(WORKERS, pending::<()>()), life.run(), auditor.run());
        ran.map_err(anyhow::Error::new).and(lived)
    };
    let shown = async {
        match options.plain || !stdout().is_terminal() {
            true => plain::show(observer, switches).await,
            false => screen::show(observer, switches).await,
        }
    };
    let result = tokio::select! {
        result = shown_until(shown, ended) => result,
        result = everything => result,
    };
    factory.shutdown().await;
    cluster.shutdown().await;
    result
}

async fn after(length: Option<Duration>) {
    match length {
        Some(length) => tokio::time::sleep(length).await,
        None => pending().await,
    }
}

/// What is shown ends with the demo, and with it says its last word.
async fn shown_until<S>(
    shown: impl Future<Output = anyhow::Result<S>>,
    ended: impl Future<Output = ()>,
) -> anyhow::Result<()>
where
    S: Send,
{
    tokio::select! {
        result = shown => result.map(drop),
        () = ended => Ok(()),
    }
}
