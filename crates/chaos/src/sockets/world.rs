//! A served process, proxies before it, informers behind them, and those who write.

mod trouble;

use super::{SocketOptions, Sort, steps::Step};
use crate::{
    cluster::{Direct, NAMESPACES, config_maps, informer_client, pods, widgets},
    door::Identity,
    follower::{Follower, Plan},
    handlers::Temper,
    ledger::{Ledger, lock},
    ports,
    proxy::Proxy,
    resources::Held,
    served::{Served, Setup},
    until::until,
    writers::{Desk, Writer},
};
use anyhow::Context;
use harness::Etcd;
use kube_informer::{ObjectKey, ResourceVersion, Stop};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

const WRITERS: usize = 4;
/// How long everything may take to be well again. Nothing is presumed to have failed before.
const REST: Duration = Duration::from_secs(90);

pub(super) struct World<'a> {
    served: Served,
    etcd: Option<Etcd>,
    direct: Direct,
    /// What informers go through that notice silence within seconds, and the others.
    brisk: Proxy,
    patient: Proxy,
    followers: Vec<Follower>,
    desk: Arc<Desk>,
    writers: Vec<JoinHandle<()>>,
    ledger: Arc<Ledger>,
    rng: fastrand::Rng,
    say: &'a dyn Fn(&str),
}

impl<'a> World<'a> {
    /// Builds a world, takes each step and comes to rest after it, and takes the world down.
    pub(super) async fn run(
        options: &SocketOptions,
        seed: u64,
        sort: Sort,
        steps: &[Step],
        ledger: &Arc<Ledger>,
        say: &'a dyn Fn(&str),
    ) -> anyhow::Result<()> {
        let before = Held::now()?;
        let mut world = Self::start(options, seed, sort, ledger, say).await?;
        world.settle("the start").await?;
        for step in steps {
            let began = Instant::now();
            world.take(*step).await.with_context(|| format!("seed {seed}, {step:?}"))?;
            let took = began.elapsed();
            world.settle(&format!("{step:?}")).await?;
            let rest = began.elapsed() - took;
            say(&format!("{step:?} took {:.1}s, rest after {:.1}s", took.as_secs_f32(), rest.as_secs_f32()));
            if ledger.has_failed() {
                break;
            }
        }
        world.end(before).await
    }

    async fn start(
        options: &SocketOptions,
        seed: u64,
        sort: Sort,
        ledger: &Arc<Ledger>,
        say: &'a dyn Fn(&str),
    ) -> anyhow::Result<Self> {
        let mut rng = fastrand::Rng::with_seed(seed);
        let etcd = sort.etcd.then(Etcd::start).flatten();
        let storage = etcd.as_ref().map(|etcd| format!("etcd={}", etcd.url));
        let (pods, seed) = (rng.u32(5..20), rng.u64(..));
        let identity = sort.secure.then(Identity::new).transpose()?;
        let (program, address) = (options.program.clone(), ports::free().await?);
        let served = Served::start(Setup { program, address, storage, identity }, pods, seed).await?;
        let direct = served.direct()?;
        let desk = Desk::new(Arc::clone(ledger));
        direct.furnish(desk.life()).await?;
        let brisk = Proxy::start(served.door().address(), true, Arc::clone(ledger)).await?;
        let patient = Proxy::start(served.door().address(), false, Arc::clone(ledger)).await?;
        let (followers, writers, ledger) = (Vec::new(), Vec::new(), Arc::clone(ledger));
        let mut world =
            Self { served, etcd, direct, brisk, patient, followers, desk, writers, ledger, rng, say };
        for plan in Plan::all() {
            world.follow(plan)?;
        }
        for number in 0..WRITERS {
            let (desk, direct) = (Arc::clone(&world.desk), world.served.direct()?);
            world.writers.push(Writer::begin(number, desk, direct, world.rng.fork()));
        }
        world.announce();
        Ok(world)
    }

    fn follow(&mut self, plan: Plan) -> anyhow::Result<()> {
        let proxy = if plan.brisk { &self.brisk } else { &self.patient };
        let client = informer_client(self.served.door().through(proxy.address()))?;
        let follower = Follower::start(plan, client, &Temper::ALL, &self.ledger, self.rng.fork())?;
        self.followers.push(follower);
        Ok(())
    }

    /// Those who wait for their writes hear which informers there are.
    fn announce(&self) {
        *lock(&self.desk.watched) = self.followers.iter().map(Follower::watched).collect();
    }

    /// Everything comes to rest, and is then what a LIST over an undisturbed connection shows.
    async fn settle(&mut self, after: &str) -> anyhow::Result<()> {
        self.desk.set_open(false);
        until(REST, "writers end what they are at", async || Ok(self.desk.is_idle())).await?;
        self.followers.iter().for_each(|follower| follower.set_clumsy(false));
        let end = Instant::now() + REST;
        let last = loop {
            let compared = self.compare().await;
            if compared.is_ok() || Instant::now() >= end || self.ledger.has_failed() {
                break compared;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        match last {
            Ok(version) => self.reach(version).await,
            Err(difference) => {
                self.ledger.fail(format_args!("after {after}, {}s later: {difference}", REST.as_secs()));
            }
        }
        self.followers.iter().for_each(|follower| follower.set_clumsy(true));
        self.desk.set_open(true);
        Ok(())
    }

    /// Compares everything with what there is; the version of that.
    async fn compare(&self) -> Result<u64, String> {
        let mut newest = 0;
        for kind in [config_maps(), widgets(), pods()] {
            let (version, truth) = self.direct.list(&kind).await.map_err(|error| error.to_string())?;
            for follower in self.followers.iter().filter(|follower| follower.plan.kind == kind) {
                follower.check(&truth)?;
            }
            newest = newest.max(version);
        }
        Ok(newest)
    }

    /// At rest, awaiting the newest version succeeds, on quiet kinds too.
    async fn reach(&self, version: u64) {
        let version = ResourceVersion::from(version);
        // Others hear of it with the next bookmark, up to a minute later.
        for follower in self.followers.iter().filter(|follower| follower.plan.brisk) {
            for namespace in NAMESPACES.iter().filter(|name| follower.plan.covers_namespace(name)) {
                let nothing = ObjectKey::namespaced(namespace, "nothing");
                if let Err(error) = follower.informer.reached_version(&nothing, &version, REST).await {
                    self.ledger.fail(format_args!("{} at rest: {error}", follower.plan.name));
                }
            }
        }
    }

    /// Ends everything; what it held is given back.
    async fn end(mut self, before: Held) -> anyhow::Result<()> {
        self.desk.set_open(false);
        for (number, follower) in self.followers.drain(..).enumerate() {
            follower.stop(if number % 2 == 0 { Stop::Drop } else { Stop::Drain }).await;
        }
        lock(&self.desk.watched).clear();
        let proxies = [&self.brisk, &self.patient];
        let closed = || proxies.iter().map(|proxy| proxy.open()).sum::<usize>() == 0;
        until(REST, "stopped informers close their connections", async || Ok(closed())).await?;
        for writer in &self.writers {
            writer.abort();
        }
        let Self { mut served, etcd, direct, brisk, patient, writers, say, .. } = self;
        futures_util::future::join_all(writers).await;
        drop((brisk, patient, direct, self.desk));
        let alone = || served.is_alone();
        until(REST, "the server gives back what clients cost it that are gone", async || alone()).await?;
        served.kill().await?;
        drop((served, etcd));
        let held = || Ok(Held::now()?.is_within(before));
        let back = until(REST, "tasks and files are given back", async || held()).await;
        back.with_context(|| format!("there were {before:?}, there are {:?}", Held::now()))?;
        say("ended, everything given back");
        Ok(())
    }
}
