//! Many writes per second, for a long time.

use super::{child_server::ChildServer, compare::compare_with_list, mb};
use crate::{
    cluster::{DirectClient, config_maps, informer_client},
    handler_log::HandlerLog,
    handlers::{Behaviour, Handler},
    report::Report,
    resources::{ResourceUse, cpu, rss},
    work::Work,
};
use harness::wait_until;
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

/// The size of a load of many writes.
#[derive(Debug, Clone, Copy)]
pub struct RateLoad {
    /// Writes per second.
    pub rate: u64,
    /// Duration in seconds.
    pub seconds: u64,
    /// Objects that are written to.
    pub objects: u64,
}

/// Limit for each wait before and after the writes.
const TIMEOUT: Duration = Duration::from_secs(300);
const NAMESPACES: u64 = 4;
/// Time between two measurements of memory.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(30);

/// Writes at a steady rate, checks that no event is lost and that every handler agrees with the cache, and measures
/// memory.
pub async fn many_writes(load: RateLoad, progress: &dyn Fn(&str)) -> anyhow::Result<String> {
    let before = ResourceUse::now()?;
    let mut server = ChildServer::start().await?;
    server.execute(&format!("fill {} {NAMESPACES}", load.objects)).await?;
    let loaded = InformerUnderLoad::start(&server).await?;
    let cpu_before = cpu()?;
    let (written, samples) = loaded.run_writes(&mut server, &load, progress).await?;
    let used = cpu()? - cpu_before;
    progress(&format!("wrote {written}"));
    loaded.settle(&DirectClient::new(server.address)?).await?;
    let writes = written["writes"].as_u64().unwrap_or_default();
    let (received, coalesced) = (loaded.received(), loaded.counter.load().coalesced);
    anyhow::ensure!(
        received + coalesced == writes,
        "{writes} writes, but {received} events received and {coalesced} coalesced"
    );
    let report = loaded.stop().await?;
    drop(server);
    wait_until(TIMEOUT, "tasks and files are released", async || {
        anyhow::Ok(ResourceUse::now()?.is_at_most(before))
    })
    .await?;
    let failures = report.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let took = written["seconds"].as_f64().unwrap_or_default();
    Ok(format!(
        "writes={writes} seconds={took:.1} writes/s={:.0} calls={} coalesced={coalesced} cpu={:.0}us/write \
         rss: {}; server-rss: {}",
        writes as f64 / took,
        report.delivered.load(Ordering::Relaxed),
        used * 1e6 / writes as f64,
        thirds(samples.iter().map(|(own, _)| *own)),
        thirds(samples.iter().map(|(_, server)| *server)),
    ))
}

/// An informer, its handlers and its queue.
struct InformerUnderLoad {
    factory: InformerFactory,
    informer: SharedInformer<Value>,
    handlers: Vec<Handler>,
    work: Work,
    workers: JoinHandle<()>,
    /// A handler that only counts its events.
    counter: Registration,
    events: Arc<AtomicU64>,
    /// Events before the first write.
    initial: u64,
    report: Arc<Report>,
}

impl InformerUnderLoad {
    async fn start(server: &ChildServer) -> anyhow::Result<Self> {
        let report = Arc::new(Report::new());
        let factory = InformerFactory::new(informer_client(server.address)?);
        let informer: SharedInformer<Value> = factory.of_kind(config_maps(), |options| options);
        informer.index_label("color")?;
        let work = Work::new("queue".to_owned(), fastrand::Rng::with_seed(1), Arc::clone(&report));
        work.set_failing(false);
        let workers = work.spawn_workers(16);
        let handlers: Vec<_> =
            [Behaviour::Plain, Behaviour::Filtering, Behaviour::Enqueuing, Behaviour::SlowStream]
                .into_iter()
                .map(|behaviour| handler(behaviour, &informer, &work, &report))
                .collect();
        let events = Arc::new(AtomicU64::new(0));
        let counter = counter(&informer, &events);
        factory.start();
        factory.synced(TIMEOUT).await?;
        counter.synced().await?;
        let initial = events.load(Ordering::Relaxed);
        Ok(Self { factory, informer, handlers, work, workers, counter, events, initial, report })
    }

    /// Events received since the first write.
    fn received(&self) -> u64 {
        self.events.load(Ordering::Relaxed) - self.initial
    }

    /// Runs the writes in the server. Returns their counts, and samples of the memory of both processes.
    async fn run_writes(
        &self,
        server: &mut ChildServer,
        load: &RateLoad,
        progress: &dyn Fn(&str),
    ) -> anyhow::Result<(Value, Vec<(u64, u64)>)> {
        let RateLoad { rate, seconds, objects } = load;
        server.send(&format!("write {} {rate} {objects} {NAMESPACES}", rate * seconds)).await?;
        let mut samples = Vec::new();
        let (began, mut reported) = (Instant::now(), Instant::now());
        loop {
            if let Ok(response) = tokio::time::timeout(SAMPLE_INTERVAL, server.response()).await {
                return Ok((response?, samples));
            }
            let (own, server) = (rss()?, server.rss()?);
            samples.push((own, server));
            if reported.elapsed() >= PROGRESS_INTERVAL {
                reported = Instant::now();
                let received = self.received();
                let rate = received as f64 / began.elapsed().as_secs_f64();
                let (own, server) = (mb(own), mb(server));
                progress(&format!("{received} events, {rate:.0} per second, rss {own}, server-rss {server}"));
            }
        }
    }

    /// Waits until the cache equals a LIST, and handlers and queue agree with the cache.
    async fn settle(&self, direct: &DirectClient) -> anyhow::Result<()> {
        let mut last = String::new();
        let settled =
            wait_until(TIMEOUT, "the cache equals a LIST, and handlers and queue agree", async || {
                let compared =
                    compare_with_list(direct, &self.informer).await.map_err(|error| error.to_string());
                let snapshot = self.informer.lister().snapshot();
                let handled = self.handlers.iter().try_for_each(|handler| handler.compare(&snapshot));
                last = match compared.map(drop).and(handled).and(self.work.check()) {
                    Ok(()) => return anyhow::Ok(true),
                    Err(difference) => difference,
                };
                Ok(false)
            });
        settled.await.map_err(|error| error.context(last))
    }

    async fn stop(self) -> anyhow::Result<Arc<Report>> {
        self.factory.shutdown_with(Stop::Drain).await;
        for handler in self.handlers {
            handler.finish().await;
        }
        self.work.shutdown();
        self.workers.await?;
        Ok(self.report)
    }
}

fn handler(
    behaviour: Behaviour,
    informer: &SharedInformer<Value>,
    work: &Work,
    report: &Arc<Report>,
) -> Handler {
    let view = behaviour.view(false);
    let log = HandlerLog::new(format!("{behaviour:?}"), Arc::clone(report), informer.lister(), view);
    Handler::add(behaviour, log, informer, work, report, fastrand::Rng::with_seed(2))
}

fn counter(informer: &SharedInformer<Value>, events: &Arc<AtomicU64>) -> Registration {
    let events = Arc::clone(events);
    informer.add_handler(on_event(move |_: &Event<Value>| {
        events.fetch_add(1, Ordering::Relaxed);
    }))
}

/// Minimum, median and maximum of the first third and of the last third.
fn thirds(samples: impl Iterator<Item = u64>) -> String {
    let samples: Vec<u64> = samples.collect();
    let third = samples.len() / 3;
    let of = |part: &[u64]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        match part.as_slice() {
            [] => "too few samples".to_owned(),
            [min, .., max] => format!("{}/{}/{}", mb(*min), mb(part[part.len() / 2]), mb(*max)),
            [only] => mb(*only),
        }
    };
    format!("first third {}, last third {}", of(&samples[..third]), of(&samples[samples.len() - third..]))
}
