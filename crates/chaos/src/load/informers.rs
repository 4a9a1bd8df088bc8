//! Many informers in one process.

use super::{child_server::ChildServer, mb};
use crate::{
    cluster::{COLORS, DirectClient, config_maps, informer_client, pods, widgets},
    handlers::Behaviour,
    report::{Report, lock},
    resources::{ResourceUse, rss},
    subject::{Settings, Subject},
    writers::{Writer, WriterControl},
};
use harness::{NAMESPACES, wait_until};
use kube_informer::{Kind, Stop};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// The size of a load of many informers.
#[derive(Debug, Clone, Copy)]
pub struct InformerLoad {
    /// Informers in one process, with one client.
    pub informers: usize,
    /// Writes while they run.
    pub writes: u64,
    /// The seed of the writes.
    pub seed: u64,
}

/// Limit for each wait.
const TIMEOUT: Duration = Duration::from_secs(300);
const WRITERS: usize = 4;
/// The handlers of each informer.
const BEHAVIOURS: [Behaviour; 3] = [Behaviour::Plain, Behaviour::Filtering, Behaviour::Enqueuing];

/// Runs informers with different kinds, namespaces, selectors and ways to list, and checks that each one, with its
/// indexes and handlers, equals a LIST after the writes.
pub async fn many_informers(load: InformerLoad, progress: &dyn Fn(&str)) -> anyhow::Result<String> {
    let before = ResourceUse::now()?;
    let informers = ManyInformers::start(&load).await?;
    let synced = informers.began.elapsed().as_secs_f64();
    progress(&format!("{} informers have synced after {synced:.1}s", load.informers));
    informers.write(load.writes, progress).await?;
    let seconds = informers.began.elapsed().as_secs_f64();
    informers.settle().await?;
    let (full, used, empty) = (rss()?, ResourceUse::now()?, informers.rss_before);
    let report = informers.stop().await;
    wait_until(TIMEOUT, "tasks and files are released", async || {
        anyhow::Ok(ResourceUse::now()?.is_at_most(before))
    })
    .await?;
    let failures = report.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(format!(
        "informers={} handlers={} writes={} calls={} awaited={} synced={synced:.1}s wall={seconds:.1}s \
         tasks={} files={} rss={} informers={}",
        load.informers,
        load.informers * BEHAVIOURS.len(),
        count(&report.writes),
        count(&report.delivered),
        count(&report.awaited),
        used.tasks,
        used.files,
        mb(full),
        mb(full.saturating_sub(empty)),
    ))
}

/// The server, the informers and the writers.
struct ManyInformers {
    server: ChildServer,
    direct: DirectClient,
    control: Arc<WriterControl>,
    subjects: Vec<Subject>,
    writers: Vec<JoinHandle<()>>,
    /// Resident memory before the first informer.
    rss_before: u64,
    began: Instant,
}

impl ManyInformers {
    /// Starts everything and waits until all informers have synced.
    async fn start(load: &InformerLoad) -> anyhow::Result<Self> {
        let mut rng = fastrand::Rng::with_seed(load.seed);
        let server = ChildServer::start().await?;
        let direct = DirectClient::new(server.address)?;
        let control = WriterControl::new(Arc::new(Report::new()));
        direct.create_fixtures(control.epoch()).await?;
        let (rss_before, began) = (rss()?, Instant::now());
        let client = informer_client(server.address)?;
        let mut subjects = Vec::new();
        for settings in (0..load.informers).map(settings_of) {
            subjects.push(Subject::start(
                settings,
                client.clone(),
                &BEHAVIOURS,
                &control.report,
                rng.fork(),
            )?);
        }
        for subject in &subjects {
            subject.informer.synced(TIMEOUT).await?;
        }
        *lock(&control.informers) = subjects.iter().map(Subject::awaited).collect();
        let mut writers = Vec::new();
        for number in 0..WRITERS {
            writers.push(Writer::spawn(
                number,
                Arc::clone(&control),
                DirectClient::new(server.address)?,
                rng.fork(),
            ));
        }
        Ok(Self { server, direct, control, subjects, writers, rss_before, began })
    }

    async fn write(&self, writes: u64, progress: &dyn Fn(&str)) -> anyhow::Result<()> {
        self.control.set_writing(true);
        let mut next = writes / 10;
        let enough = async || {
            let done = self.control.report.writes.load(Ordering::Relaxed);
            if done >= next && done < writes {
                progress(&format!("{done} of {writes} writes"));
                next += writes / 10;
            }
            anyhow::Ok(done >= writes)
        };
        wait_until(TIMEOUT, "all writes are done", enough).await?;
        self.control.set_writing(false);
        wait_until(TIMEOUT, "no write is in flight", async || anyhow::Ok(self.control.is_idle())).await
    }

    /// Waits until every informer equals a LIST.
    async fn settle(&self) -> anyhow::Result<()> {
        self.subjects.iter().for_each(|subject| subject.set_failing(false));
        let mut last = String::new();
        let settled = wait_until(TIMEOUT, "each informer equals a LIST", async || {
            match self.compare().await {
                Ok(()) => return anyhow::Ok(true),
                Err(difference) => last = difference,
            }
            Ok(false)
        });
        settled.await.map_err(|error| error.context(last))
    }

    async fn compare(&self) -> Result<(), String> {
        for kind in [config_maps(), widgets(), pods()] {
            let (_, listing) = self.direct.list(&kind).await.map_err(|error| error.to_string())?;
            for subject in self.subjects.iter().filter(|subject| subject.settings.kind == kind) {
                subject.check(&listing)?;
            }
        }
        Ok(())
    }

    /// Stops everything.
    async fn stop(self) -> Arc<Report> {
        let stops = self.subjects.into_iter().map(|subject| subject.stop(Stop::Drop));
        futures_util::future::join_all(stops).await;
        lock(&self.control.informers).clear();
        self.writers.iter().for_each(|writer| writer.abort());
        futures_util::future::join_all(self.writers).await;
        drop(self.server);
        Arc::clone(&self.control.report)
    }
}

/// The settings of the informer with this number: every combination of kind, namespaces, selector and way to list.
fn settings_of(number: usize) -> Settings {
    let kinds: [fn() -> Kind; 3] = [config_maps, widgets, pods];
    let mut rest = number;
    let mut choose = |among: usize| {
        let chosen = rest % among;
        rest /= among;
        chosen
    };
    let mut settings = Settings::new(format!("informer {number}"), kinds[choose(kinds.len())]());
    settings.namespaces = match choose(NAMESPACES.len() + 2) {
        0 => None,
        1 => Some(NAMESPACES.to_vec()),
        one => Some(vec![NAMESPACES[one - 2]]),
    };
    settings.color = choose(COLORS.len() + 1).checked_sub(1).map(|color| COLORS[color]);
    settings.streaming = choose(2) == 0;
    settings.page_size = (!settings.streaming).then_some(10 + number as u32 % 50);
    settings.short_watches = choose(2) == 0;
    settings
}
