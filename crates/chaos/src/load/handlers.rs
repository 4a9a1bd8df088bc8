//! One informer with very many handlers.

use super::{mb, server::Server, truth};
use crate::{
    cluster::{Direct, config_maps, informer_client},
    handler_log::HandlerLog,
    handlers::Temper,
    ledger::Ledger,
    resources::{Held, rss},
    until::until,
};
use kube_informer::{InformerFactory, Registration, SharedInformer, Stop};
use serde_json::Value;
use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// How many handlers, and what they hear.
#[derive(Debug, Clone, Copy)]
pub struct HandlerLoad {
    /// Handlers of one informer.
    pub handlers: usize,
    /// Objects in its cache.
    pub objects: u64,
    /// Writes that follow.
    pub writes: u64,
}

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(600);

/// Each handler gets the initial state and every change after it, each in order, and adds up to the cache.
pub async fn many_handlers(load: HandlerLoad, say: &dyn Fn(&str)) -> anyhow::Result<String> {
    let HandlerLoad { handlers, objects, writes } = load;
    let before = Held::now()?;
    let mut server = Server::start().await?;
    server.ask(&format!("fill {objects} 4")).await?;
    say(&format!("{objects} objects are there"));
    let ledger = Arc::new(Ledger::new());
    let factory = InformerFactory::new(informer_client(server.address)?);
    let informer: SharedInformer<Value> = factory.of_kind(config_maps(), |options| options);
    let empty = rss()?;
    let subscriptions: Vec<_> = (0..handlers).map(|number| subscribe(number, &informer, &ledger)).collect();
    let began = Instant::now();
    factory.start();
    for (registration, _) in &subscriptions {
        registration.synced().await?;
    }
    let synced = began.elapsed().as_secs_f64();
    say(&format!("{handlers} handlers have heard of each object after {synced:.1}s"));
    let began = Instant::now();
    let written = server.ask(&format!("write {writes} 0 {objects} 4")).await?;
    say(&format!("written: {written}"));
    let direct = Direct::new(server.address)?;
    let equal = async || Ok(truth::compare(&direct, &informer).await.is_ok());
    until(PATIENCE, "the cache is what the server has", equal).await?;
    let snapshot = informer.lister().snapshot();
    for (_, log) in &subscriptions {
        until(PATIENCE, "handlers catch up", async || Ok(log.compare(&snapshot).is_ok())).await?;
    }
    let seconds = began.elapsed().as_secs_f64();
    let coalesced: u64 = subscriptions.iter().map(|(registration, _)| registration.load().coalesced).sum();
    let calls = ledger.delivered.load(Ordering::Relaxed);
    let full = rss()?;
    drop(snapshot);
    factory.shutdown_with(Stop::Drop).await;
    subscriptions.into_iter().for_each(|(_, log)| log.end());
    drop((factory, informer, direct, server));
    until(PATIENCE, "tasks and files are given back", async || Ok(Held::now()?.is_within(before))).await?;
    let failures = ledger.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let per_second = (calls as f64 - (handlers as u64 * objects) as f64) / seconds;
    Ok(format!(
        "handlers={handlers} objects={objects} writes={} calls={calls} coalesced={coalesced} synced={synced:.1}s \
         wall={seconds:.1}s calls/s={per_second:.0} rss={} of which handlers and what they noted {}",
        written["writes"],
        mb(full),
        mb(full.saturating_sub(empty)),
    ))
}

fn subscribe(
    number: usize,
    informer: &SharedInformer<Value>,
    ledger: &Arc<Ledger>,
) -> (Registration, HandlerLog) {
    let view = Temper::Plain.view(false);
    let log = HandlerLog::new(format!("handler {number}"), Arc::clone(ledger), informer.lister(), view);
    (informer.add_handler(log.handler()), log)
}
