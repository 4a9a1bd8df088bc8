//! `kube-informer demo`: a busy embedded cluster, and the informer pipeline that watches it.

mod actions;
mod activity;
mod auditor;
mod journal;
mod keys;
mod metrics;
mod plain;
mod replica_sets;
mod sample;
mod screen;

use crate::{args::DemoOptions, cluster::Cluster, seeding::seed_nodes, signals};
use actions::Actions;
use activity::Activity;
use auditor::Auditor;
use journal::Journal;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Node, Pod},
};
use kube_informer::{InformerFactory, informer_client};
use metrics::Metrics;
use replica_sets::ReplicaSets;
use sample::Observer;
use std::{
    future::pending,
    io::{IsTerminal, stdout},
    time::Duration,
};

/// Nodes of the demo cluster.
const NODES: usize = 5;
/// Pending events of a handler before they are coalesced; small, so that the demo shows it.
const HANDLER_BOUND: usize = 64;

/// Runs until the time is up, a signal arrives or the user quits.
pub(crate) async fn run(options: DemoOptions) -> anyhow::Result<()> {
    // Before the first informer, which looks up its metrics when it is built.
    let metrics = Metrics::install();
    let cluster = Cluster::embedded(0).await?;
    let Some(server) = cluster.server() else { anyhow::bail!("the embedded server has stopped") };
    let (client, faults, url) = (server.client()?, server.faults(), cluster.url());
    seed_nodes(&client, NODES, options.seed).await?;

    let factory = InformerFactory::builder(informer_client(cluster.config.clone())?)
        .resync(Duration::from_secs(60))
        .configure(|informer| informer.handler_bound(HANDLER_BOUND))
        .build();
    let journal = Journal::default();
    let replica_sets = ReplicaSets::new(&factory, client.clone(), options.seed)?;
    let activity = Activity::new(&factory, client.clone(), options.seed);
    let auditor = Auditor::new(&factory.of::<Pod>(), journal.clone());
    let actions = Actions::new(faults, client, journal.clone(), auditor.stalled(), options.seed);
    let informers = vec![
        factory.of::<Deployment>().cast(),
        factory.of::<ReplicaSet>().cast(),
        factory.of::<Pod>().cast(),
        factory.of::<Node>().cast(),
    ];
    let queues = [replica_sets.queue()].into_iter().chain(activity.queues()).cloned().collect();
    let observer = Observer::new(informers, queues, metrics, journal, url, auditor.stalled());
    factory.start();

    let end = async {
        tokio::select! {
            () = signals::received() => {}
            () = after(options.length) => {}
        }
    };
    let everything = async {
        let (reconciled, acted, ()) = tokio::join!(replica_sets.run(), activity.run(), auditor.run());
        reconciled.and(acted)
    };
    let view = async {
        match options.plain || !stdout().is_terminal() {
            true => plain::show(observer, actions).await,
            false => screen::show(observer, actions).await,
        }
    };
    let result = tokio::select! {
        result = view => result,
        () = end => Ok(()),
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
