//! Very many writes a second, for long.

use super::{mb, server::Server, truth};
use crate::{
    cluster::{Direct, config_maps, informer_client},
    handler_log::HandlerLog,
    handlers::{Handler, Temper},
    ledger::Ledger,
    resources::{Held, cpu, rss},
    until::until,
    work::Work,
};
use kube_informer::{Event, InformerFactory, Registration, SharedInformer, Stop, on_event};
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

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
const NAMESPACES: u64 = 4;
/// Between two looks at the memory.
const SAMPLE: Duration = Duration::from_secs(5);
/// Between two lines of progress.
const SAY: Duration = Duration::from_secs(30);

/// Writes at a rate; nothing is lost, every handler adds up to the cache, and memory stays where it was.
pub async fn many_writes(load: RateLoad, say: &dyn Fn(&str)) -> anyhow::Result<String> {
    let before = Held::now()?;
    let mut server = Server::start().await?;
    server.ask(&format!("fill {} {NAMESPACES}", load.objects)).await?;
    let audience = Audience::start(&server).await?;
    let cpu_before = cpu()?;
    let (written, samples) = audience.watch(&mut server, &load, say).await?;
    let used = cpu()? - cpu_before;
    say(&format!("written: {written}"));
    audience.rest(&Direct::new(server.address)?).await?;
    let writes = written["writes"].as_u64().unwrap_or_default();
    let (heard, coalesced) = (audience.heard(), audience.counter.load().coalesced);
    anyhow::ensure!(heard + coalesced == writes, "{writes} writes, {heard} heard of, {coalesced} absorbed");
    let ledger = audience.end().await?;
    drop(server);
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

/// An informer, its handlers and its queue.
struct Audience {
    factory: InformerFactory,
    informer: SharedInformer<Value>,
    handlers: Vec<Handler>,
    work: Work,
    workers: JoinHandle<()>,
    /// A handler that only counts, and what it has counted.
    counter: Registration,
    events: Arc<AtomicU64>,
    /// Events that told of what was there before the writing.
    initial: u64,
    ledger: Arc<Ledger>,
}

impl Audience {
    async fn start(server: &Server) -> anyhow::Result<Self> {
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
        Ok(Self { factory, informer, handlers, work, workers, counter, events, initial, ledger })
    }

    /// Events heard of since the writing began.
    fn heard(&self) -> u64 {
        self.events.load(Ordering::Relaxed) - self.initial
    }

    /// Has the server write, and looks at the memory of both meanwhile: what was written, and what was seen.
    async fn watch(
        &self,
        server: &mut Server,
        load: &RateLoad,
        say: &dyn Fn(&str),
    ) -> anyhow::Result<(Value, Vec<(u64, u64)>)> {
        let RateLoad { rate, seconds, objects } = load;
        server.tell(&format!("write {} {rate} {objects} {NAMESPACES}", rate * seconds)).await?;
        let mut samples = Vec::new();
        let (began, mut said) = (Instant::now(), Instant::now());
        loop {
            if let Ok(answer) = tokio::time::timeout(SAMPLE, server.answer()).await {
                return Ok((answer?, samples));
            }
            let (own, served) = (rss()?, server.rss()?);
            samples.push((own, served));
            if said.elapsed() >= SAY {
                said = Instant::now();
                let per_second = self.heard() as f64 / began.elapsed().as_secs_f64();
                let (heard, own, served) = (self.heard(), mb(own), mb(served));
                say(&format!("{heard} events, {per_second:.0} a second; {own} here, {served} in the server"));
            }
        }
    }

    /// Everything comes to rest: the cache is what the server has, handlers and queue agree.
    async fn rest(&self, direct: &Direct) -> anyhow::Result<()> {
        let mut last = String::new();
        let rest =
            until(PATIENCE, "the cache is what the server has, and handlers and queue agree", async || {
                let compared =
                    truth::compare(direct, &self.informer).await.map_err(|error| error.to_string());
                let snapshot = self.informer.lister().snapshot();
                let told = self.handlers.iter().try_for_each(|handler| handler.compare(&snapshot));
                last = match compared.map(drop).and(told).and(self.work.check()) {
                    Ok(()) => return Ok(true),
                    Err(difference) => difference,
                };
                Ok(false)
            });
        rest.await.map_err(|error| error.context(last))
    }

    async fn end(self) -> anyhow::Result<Arc<Ledger>> {
        self.factory.shutdown_with(Stop::Drain).await;
        for handler in self.handlers {
            handler.stopped().await;
        }
        self.work.shutdown();
        self.workers.await?;
        Ok(self.ledger)
    }
}

fn handler(temper: Temper, informer: &SharedInformer<Value>, work: &Work, ledger: &Arc<Ledger>) -> Handler {
    let view = temper.view(false);
    let log = HandlerLog::new(format!("{temper:?}"), Arc::clone(ledger), informer.lister(), view);
    Handler::add(temper, log, informer, work, ledger, fastrand::Rng::with_seed(2))
}

fn counter(informer: &SharedInformer<Value>, events: &Arc<AtomicU64>) -> Registration {
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
