//! Very many writes a second, for long.

use super::{mb, server::Server, truth};
use crate::{
    cluster::{Direct, config_maps, informer_client},
    handlers::{Handler, Temper},
    ledger::Ledger,
    resources::{Held, cpu, rss},
    tape::Tape,
    until::until,
    work::Work,
};
use kube_informer::{Event, InformerFactory, SharedInformer, Stop, on_event};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// How much is written, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct RateLoad {
    /// Writes a second.
    pub rate: u64,
    /// For so many seconds.
    pub seconds: u64,
    /// Objects that are written to.
    pub objects: u64,
}

/// How long anything may take here after the writing.
const PATIENCE: Duration = Duration::from_secs(300);
/// Between two looks at the memory.
const SAMPLE: Duration = Duration::from_secs(5);
/// Between two lines of progress.
const SAY: Duration = Duration::from_secs(30);

/// Writes at a rate; nothing is lost, every handler adds up to the cache, and memory stays where it was.
pub async fn many_writes(load: RateLoad, say: &dyn Fn(&str)) -> anyhow::Result<String> {
    let RateLoad { rate, seconds, objects } = load;
    let before = Held::now()?;
    let mut server = Server::start().await?;
    server.ask(&format!("fill {objects} 4")).await?;
    let ledger = Arc::new(Ledger::new());
    let factory = InformerFactory::new(informer_client(server.address)?);
    let informer: SharedInformer<Value> = factory.of_kind(config_maps(), |options| options);
    informer.index_label("color")?;
    let work = Work::new("queue".to_owned(), fastrand::Rng::with_seed(1), Arc::clone(&ledger));
    work.set_clumsy(false);
    let workers = work.begin(16);
    let handlers: Vec<_> = [Temper::Plain, Temper::Filtering, Temper::Feeding, Temper::Slow]
        .into_iter()
        .map(|temper| handler(temper, &informer, &work, &ledger))
        .collect();
    let events = Arc::new(AtomicU64::new(0));
    let counter = counter(&informer, &events);
    factory.start();
    factory.synced(PATIENCE).await?;
    counter.synced().await?;
    let initial = events.load(Ordering::Relaxed);
    let (began, cpu_before) = (Instant::now(), cpu()?);
    server.tell(&format!("write {} {rate} {objects} 4", rate * seconds)).await?;
    let mut samples = Vec::new();
    let mut said = Instant::now();
    let written = loop {
        match tokio::time::timeout(SAMPLE, server.answer()).await {
            Ok(answer) => break answer?,
            Err(_) => samples.push((rss()?, server.rss()?)),
        }
        if said.elapsed() >= SAY {
            said = Instant::now();
            let heard = events.load(Ordering::Relaxed) - initial;
            let per_second = heard as f64 / began.elapsed().as_secs_f64();
            let (own, served) = (mb(rss()?), mb(server.rss()?));
            say(&format!(
                "{heard} events heard, {per_second:.0} a second; {own} here, {served} in the server"
            ));
        }
    };
    let used = cpu()? - cpu_before;
    say(&format!("written: {written}"));
    let direct = Direct::new(server.address)?;
    let mut last = String::new();
    let equal =
        until(PATIENCE, "the cache is what the server has, and handlers and queue agree", async || {
            let checked = truth::compare(&direct, &informer).await.map_err(|error| error.to_string());
            let snapshot = informer.lister().snapshot();
            let told = handlers.iter().try_for_each(|handler| handler.compare(&snapshot));
            last = match checked.and(told).and(work.check()) {
                Ok(()) => return Ok(true),
                Err(difference) => difference,
            };
            Ok(false)
        });
    equal.await.map_err(|error| error.context(last))?;
    let heard = events.load(Ordering::Relaxed) - initial + counter.load().coalesced;
    let writes = written["writes"].as_u64().unwrap_or_default();
    anyhow::ensure!(heard == writes, "{writes} writes, but {heard} events were heard of or absorbed");
    factory.shutdown_with(Stop::Drain).await;
    for handler in handlers {
        handler.stopped().await;
    }
    work.shutdown();
    workers.await?;
    let coalesced = counter.load().coalesced;
    drop((counter, factory, informer, direct, server));
    until(PATIENCE, "tasks and files are given back", async || Ok(Held::now()?.is_within(before))).await?;
    let failures = ledger.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let took = written["seconds"].as_f64().unwrap_or_default();
    Ok(format!(
        "writes={writes} seconds={took:.1} writes/s={:.0} calls={} coalesced={coalesced} cpu={:.0}us/write \
         rss here: {}; rss of the server: {}",
        writes as f64 / took,
        ledger.delivered.load(Ordering::Relaxed),
        used * 1e6 / writes as f64,
        thirds(samples.iter().map(|(own, _)| *own)),
        thirds(samples.iter().map(|(_, served)| *served)),
    ))
}

fn handler(temper: Temper, informer: &SharedInformer<Value>, work: &Work, ledger: &Arc<Ledger>) -> Handler {
    let view = temper.view(false);
    let tape = Tape::new(format!("{temper:?}"), Arc::clone(ledger), informer.lister(), view);
    Handler::add(temper, tape, informer, work, ledger, fastrand::Rng::with_seed(2))
}

fn counter(informer: &SharedInformer<Value>, events: &Arc<AtomicU64>) -> kube_informer::Registration {
    let events = Arc::clone(events);
    informer.add_handler(on_event(move |_: &Event<Value>| {
        events.fetch_add(1, Ordering::Relaxed);
    }))
}

/// Least, median and most of the first third and of the last one.
fn thirds(samples: impl Iterator<Item = u64>) -> String {
    let samples: Vec<u64> = samples.collect();
    let third = samples.len() / 3;
    let of = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        match part.as_slice() {
            [] => "too short to tell".to_owned(),
            [least, .., most] => format!("{}/{}/{}", mb(*least), mb(part[part.len() / 2]), mb(*most)),
            [only] => mb(*only),
        }
    };
    format!("first third {}, last third {}", of(&samples[..third]), of(&samples[samples.len() - third..]))
}
