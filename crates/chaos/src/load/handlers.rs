//! One informer with many handlers.

use super::{child_server::ChildServer, compare::compare_with_list, mb};
use crate::{
    cluster::{DirectClient, config_maps, informer_client},
    handler_log::HandlerLog,
    handlers::Behaviour,
    report::Report,
    resources::{ResourceUse, rss},
};
use harness::wait_until;
use kube_informer::{InformerFactory, Registration, SharedInformer, Stop};
use serde_json::Value;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// The size of a load of many handlers.
#[derive(Debug, Clone, Copy)]
pub struct HandlerLoad {
    /// Handlers of one informer.
    pub handlers: usize,
    /// Objects in its cache.
    pub objects: u64,
    /// Writes after the initial list.
    pub writes: u64,
}

/// Limit for each wait.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Checks that each handler receives the initial objects and every change in order, up to the content of the cache.
pub async fn many_handlers(load: HandlerLoad, progress: &dyn Fn(&str)) -> anyhow::Result<String> {
    let HandlerLoad { handlers, objects, writes } = load;
    let before = ResourceUse::now()?;
    let mut server = ChildServer::start().await?;
    server.execute(&format!("fill {objects} 4")).await?;
    progress(&format!("created {objects} objects"));
    let report = Arc::new(Report::new());
    let factory = InformerFactory::new(informer_client(server.address)?);
    let informer: SharedInformer<Value> = factory.of_kind(config_maps(), |options| options);
    let empty = rss()?;
    let subscriptions: Vec<_> = (0..handlers).map(|number| subscribe(number, &informer, &report)).collect();
    let began = Instant::now();
    factory.start();
    for (registration, _) in &subscriptions {
        registration.synced().await?;
    }
    let synced = began.elapsed().as_secs_f64();
    progress(&format!("{handlers} handlers have received every object after {synced:.1}s"));
    let began = Instant::now();
    let written = server.execute(&format!("write {writes} 0 {objects} 4")).await?;
    progress(&format!("wrote {written}"));
    let direct = DirectClient::new(server.address)?;
    let equal = async || anyhow::Ok(compare_with_list(&direct, &informer).await.is_ok());
    wait_until(TIMEOUT, "the cache equals a LIST", equal).await?;
    let snapshot = informer.lister().snapshot();
    for (_, log) in &subscriptions {
        wait_until(TIMEOUT, "handlers have caught up", async || anyhow::Ok(log.compare(&snapshot).is_ok()))
            .await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let coalesced: u64 = subscriptions.iter().map(|(registration, _)| registration.load().coalesced).sum();
    let calls = report.delivered.load(Ordering::Relaxed);
    let full = rss()?;
    drop(snapshot);
    factory.shutdown_with(Stop::Drop).await;
    subscriptions.into_iter().for_each(|(_, log)| log.close());
    drop((factory, informer, direct, server));
    wait_until(TIMEOUT, "tasks and files are released", async || {
        anyhow::Ok(ResourceUse::now()?.is_at_most(before))
    })
    .await?;
    let failures = report.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let per_second = (calls as f64 - (handlers as u64 * objects) as f64) / seconds;
    Ok(format!(
        "handlers={handlers} objects={objects} writes={} calls={calls} coalesced={coalesced} synced={synced:.1}s \
         wall={seconds:.1}s calls/s={per_second:.0} rss={} handlers-and-logs={}",
        written["writes"],
        mb(full),
        mb(full.saturating_sub(empty)),
    ))
}

fn subscribe(
    number: usize,
    informer: &SharedInformer<Value>,
    report: &Arc<Report>,
) -> (Registration, HandlerLog) {
    let view = Behaviour::Plain.view(false);
    let log = HandlerLog::new(format!("handler {number}"), Arc::clone(report), informer.lister(), view);
    (informer.add_handler(log.handler()), log)
}
