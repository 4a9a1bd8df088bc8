//! A world: a server process, proxies in front of it, informers behind the proxies, and writers.

mod disruptions;

use super::{ServerOptions, SocketOptions, steps::Step};
use crate::{
    cluster::{DirectClient, config_maps, informer_client, pods, widgets},
    endpoint::TlsIdentity,
    handlers::Behaviour,
    ports,
    proxy::Proxy,
    report::{Report, lock},
    resources::ResourceUse,
    server_process::{ServerConfig, ServerProcess},
    subject::{Settings, Subject},
    writers::{Writer, WriterControl},
};
use anyhow::Context;
use harness::{Etcd, NAMESPACES, wait_until};
use kube_informer::{ObjectKey, ResourceVersion, Stop};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

const WRITERS: usize = 4;
/// Limit for recovery after a step, before the step counts as failed.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(90);

pub(super) struct World<'a> {
    server: ServerProcess,
    etcd: Option<Etcd>,
    direct: DirectClient,
    /// The proxy of informers with short watches, which notice a silent connection within seconds.
    short_watch_proxy: Proxy,
    /// The proxy of the other informers.
    long_watch_proxy: Proxy,
    subjects: Vec<Subject>,
    control: Arc<WriterControl>,
    writers: Vec<JoinHandle<()>>,
    report: Arc<Report>,
    rng: fastrand::Rng,
    progress: &'a dyn Fn(&str),
}

impl<'a> World<'a> {
    /// Starts a world, performs each step and settles after it, and stops the world.
    pub(super) async fn run(
        options: &SocketOptions,
        seed: u64,
        server: ServerOptions,
        steps: &[Step],
        report: &Arc<Report>,
        progress: &'a dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let before = ResourceUse::now()?;
        let mut world = Self::start(options, seed, server, report, progress).await?;
        world.settle("the start").await?;
        for step in steps {
            let began = Instant::now();
            world.perform(*step).await.with_context(|| format!("seed {seed}, {step:?}"))?;
            let took = began.elapsed();
            world.settle(&format!("{step:?}")).await?;
            let (took, settled) = (took.as_secs_f32(), (began.elapsed() - took).as_secs_f32());
            progress(&format!("{step:?} took {took:.1}s, settled after {settled:.1}s"));
            if report.has_failed() {
                break;
            }
        }
        world.stop(before).await
    }

    async fn start(
        options: &SocketOptions,
        seed: u64,
        server: ServerOptions,
        report: &Arc<Report>,
        progress: &'a dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let etcd = server.etcd.then(Etcd::start).flatten();
        let storage = etcd.as_ref().map(|etcd| format!("etcd={}", etcd.url));
        let (pods, seed) = (rng.u32(5..20), rng.u64(..));
        let identity = server.tls.then(TlsIdentity::new).transpose()?;
        let (program, address) = (options.program.clone(), ports::free().await?);
        let config = ServerConfig { program, address, storage, identity };
        let server = ServerProcess::start(config, pods, seed).await?;
        let direct = server.direct_client()?;
        let control = WriterControl::new(Arc::clone(report));
        direct.create_fixtures(control.epoch()).await?;
        let address = server.endpoint().address();
        let mut world = Self {
            short_watch_proxy: Proxy::start(address, true, Arc::clone(report)).await?,
            long_watch_proxy: Proxy::start(address, false, Arc::clone(report)).await?,
            server,
            etcd,
            direct,
            subjects: Vec::new(),
            control,
            writers: Vec::new(),
            report: Arc::clone(report),
            rng,
            progress,
        };
        for settings in Settings::all() {
            world.start_informer(settings)?;
        }
        for number in 0..WRITERS {
            let (control, direct) = (Arc::clone(&world.control), world.server.direct_client()?);
            world.writers.push(Writer::spawn(number, control, direct, world.rng.fork()));
        }
        world.share_informers();
        Ok(world)
    }

    fn start_informer(&mut self, settings: Settings) -> anyhow::Result<()> {
        let proxy = if settings.short_watches { &self.short_watch_proxy } else { &self.long_watch_proxy };
        let client = informer_client(self.server.endpoint().with_address(proxy.address()))?;
        let subject = Subject::start(settings, client, &Behaviour::ALL, &self.report, self.rng.fork())?;
        self.subjects.push(subject);
        Ok(())
    }

    /// Gives the writers the current informers.
    fn share_informers(&self) {
        *lock(&self.control.informers) = self.subjects.iter().map(Subject::awaited).collect();
    }

    /// Pauses the writers, waits until every informer equals a LIST, and resumes the writers.
    async fn settle(&mut self, after: &str) -> anyhow::Result<()> {
        self.control.set_writing(false);
        wait_until(SETTLE_TIMEOUT, "no write is in flight", async || anyhow::Ok(self.control.is_idle()))
            .await?;
        self.subjects.iter().for_each(|subject| subject.set_failing(false));
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        let last = loop {
            let compared = self.compare().await;
            if compared.is_ok() || Instant::now() >= deadline || self.report.has_failed() {
                break compared;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        match last {
            Ok(version) => self.check_reached(version).await,
            Err(difference) => {
                self.report.fail(format_args!("not settled {SETTLE_TIMEOUT:?} after {after}: {difference}"));
            }
        }
        self.subjects.iter().for_each(|subject| subject.set_failing(true));
        self.control.set_writing(true);
        Ok(())
    }

    /// Compares every informer with a LIST and returns the newest resource version.
    async fn compare(&self) -> Result<u64, String> {
        let mut newest = 0;
        for kind in [config_maps(), widgets(), pods()] {
            let (version, listing) = self.direct.list(&kind).await.map_err(|error| error.to_string())?;
            for subject in self.subjects.iter().filter(|subject| subject.settings.kind == kind) {
                subject.check(&listing)?;
            }
            newest = newest.max(version);
        }
        Ok(newest)
    }

    /// Checks that every informer reaches the newest resource version, even for kinds without writes.
    async fn check_reached(&self, version: u64) {
        let version = ResourceVersion::from(version);
        // With long watches an informer reaches it with the next bookmark, up to a minute later.
        for subject in self.subjects.iter().filter(|subject| subject.settings.short_watches) {
            for namespace in NAMESPACES.iter().filter(|name| subject.settings.covers_namespace(name)) {
                let missing = ObjectKey::namespaced(namespace, "missing");
                if let Err(error) = subject.informer.reached_version(&missing, &version, SETTLE_TIMEOUT).await
                {
                    self.report
                        .fail(format_args!("{} does not reach {version}: {error}", subject.settings.name));
                }
            }
        }
    }

    /// Stops everything and checks that all resources are released.
    async fn stop(mut self, before: ResourceUse) -> anyhow::Result<()> {
        self.control.set_writing(false);
        for (number, subject) in self.subjects.drain(..).enumerate() {
            subject.stop(if number % 2 == 0 { Stop::Drop } else { Stop::Drain }).await;
        }
        lock(&self.control.informers).clear();
        let proxies = [&self.short_watch_proxy, &self.long_watch_proxy];
        let closed = || proxies.iter().all(|proxy| proxy.open_connections() == 0);
        wait_until(SETTLE_TIMEOUT, "stopped informers have closed their connections", async || {
            anyhow::Ok(closed())
        })
        .await?;
        for writer in &self.writers {
            writer.abort();
        }
        let Self { mut server, etcd, direct, short_watch_proxy, long_watch_proxy, writers, progress, .. } =
            self;
        futures_util::future::join_all(writers).await;
        drop((short_watch_proxy, long_watch_proxy, direct, self.control));
        wait_until(SETTLE_TIMEOUT, "the server has closed the sockets of its clients", async || {
            server.has_released_clients()
        })
        .await?;
        server.kill().await?;
        drop((server, etcd));
        let released = wait_until(SETTLE_TIMEOUT, "tasks and files are released", async || {
            anyhow::Ok(ResourceUse::now()?.is_at_most(before))
        });
        released.await.with_context(|| format!("before {before:?}, now {:?}", ResourceUse::now()))?;
        progress("stopped, all resources released");
        Ok(())
    }
}
