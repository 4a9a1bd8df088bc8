//! Very many informers in one process.

use super::{mb, server::Server};
use crate::{
    cluster::{COLORS, Direct, NAMESPACES, config_maps, informer_client, pods, widgets},
    follower::{Follower, Plan},
    handlers::Temper,
    ledger::{Ledger, lock},
    resources::{Held, rss},
    until::until,
    writers::{Desk, Writer},
};
use kube_informer::{Kind, Stop};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// How many informers, and what they follow.
#[derive(Debug, Clone, Copy)]
pub struct InformerLoad {
    /// Informers of one process, over one client.
    pub informers: usize,
    /// Writes that they follow.
    pub writes: u64,
    /// The seed of what is written.
    pub seed: u64,
}

/// How long anything may take here.
const PATIENCE: Duration = Duration::from_secs(300);
const WRITERS: usize = 4;
/// The handlers of each.
const TEMPERS: [Temper; 3] = [Temper::Plain, Temper::Filtering, Temper::Feeding];

/// Each informer has its own kind, namespaces, selector and way to list; at rest each one, with its index and
/// handlers, is what a LIST shows.
pub async fn many_informers(load: InformerLoad, say: &dyn Fn(&str)) -> anyhow::Result<String> {
    let before = Held::now()?;
    let crowd = Crowd::start(&load).await?;
    let synced = crowd.began.elapsed().as_secs_f64();
    say(&format!("{} informers are synced after {synced:.1}s", load.informers));
    crowd.write(load.writes, say).await?;
    let seconds = crowd.began.elapsed().as_secs_f64();
    crowd.rest().await?;
    let (full, held, empty) = (rss()?, Held::now()?, crowd.empty);
    let ledger = crowd.end().await;
    until(PATIENCE, "tasks and files are given back", async || Ok(Held::now()?.is_within(before))).await?;
    let failures = ledger.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(format!(
        "informers={} handlers={} writes={} calls={} awaited={} synced={synced:.1}s wall={seconds:.1}s \
         tasks={} files={} rss={} of which informers {}",
        load.informers,
        load.informers * TEMPERS.len(),
        count(&ledger.writes),
        count(&ledger.delivered),
        count(&ledger.awaited),
        held.tasks,
        held.files,
        mb(full),
        mb(full.saturating_sub(empty)),
    ))
}

/// Everybody there is.
struct Crowd {
    server: Server,
    direct: Direct,
    desk: Arc<Desk>,
    followers: Vec<Follower>,
    writers: Vec<JoinHandle<()>>,
    /// Resident memory before there were any informers.
    empty: u64,
    began: Instant,
}

impl Crowd {
    /// Starts everybody, and waits until all are synced.
    async fn start(load: &InformerLoad) -> anyhow::Result<Self> {
        let mut rng = fastrand::Rng::with_seed(load.seed);
        let server = Server::start().await?;
        let direct = Direct::new(server.address)?;
        let desk = Desk::new(Arc::new(Ledger::new()));
        direct.furnish(desk.life()).await?;
        let (empty, began) = (rss()?, Instant::now());
        let client = informer_client(server.address)?;
        let mut followers = Vec::new();
        for plan in (0..load.informers).map(plan) {
            followers.push(Follower::start(plan, client.clone(), &TEMPERS, &desk.ledger, rng.fork())?);
        }
        for follower in &followers {
            follower.informer.synced(PATIENCE).await?;
        }
        *lock(&desk.watched) = followers.iter().map(Follower::watched).collect();
        let mut writers = Vec::new();
        for number in 0..WRITERS {
            writers.push(Writer::begin(number, Arc::clone(&desk), Direct::new(server.address)?, rng.fork()));
        }
        Ok(Self { server, direct, desk, followers, writers, empty, began })
    }

    async fn write(&self, writes: u64, say: &dyn Fn(&str)) -> anyhow::Result<()> {
        self.desk.set_open(true);
        let mut next = writes / 10;
        let enough = async || {
            let done = self.desk.ledger.writes.load(Ordering::Relaxed);
            if done >= next && done < writes {
                say(&format!("{done} of {writes} writes"));
                next += writes / 10;
            }
            Ok(done >= writes)
        };
        until(PATIENCE, "writes are done", enough).await?;
        self.desk.set_open(false);
        until(PATIENCE, "writers end what they are at", async || Ok(self.desk.is_idle())).await
    }

    /// Everything comes to rest, and is then what a LIST shows.
    async fn rest(&self) -> anyhow::Result<()> {
        self.followers.iter().for_each(|follower| follower.set_clumsy(false));
        let mut last = String::new();
        let rest = until(PATIENCE, "each informer is what a LIST shows", async || {
            match self.compare().await {
                Ok(()) => return Ok(true),
                Err(difference) => last = difference,
            }
            Ok(false)
        });
        rest.await.map_err(|error| error.context(last))
    }

    async fn compare(&self) -> Result<(), String> {
        for kind in [config_maps(), widgets(), pods()] {
            let (_, truth) = self.direct.list(&kind).await.map_err(|error| error.to_string())?;
            for follower in self.followers.iter().filter(|follower| follower.plan.kind == kind) {
                follower.check(&truth)?;
            }
        }
        Ok(())
    }

    /// Ends everybody.
    async fn end(self) -> Arc<Ledger> {
        let stops = self.followers.into_iter().map(|follower| follower.stop(Stop::Drop));
        futures_util::future::join_all(stops).await;
        lock(&self.desk.watched).clear();
        self.writers.iter().for_each(|writer| writer.abort());
        futures_util::future::join_all(self.writers).await;
        drop(self.server);
        Arc::clone(&self.desk.ledger)
    }
}

/// The plan of one of many: kinds, namespaces, selectors and ways to list in turn.
fn plan(number: usize) -> Plan {
    let kinds: [fn() -> Kind; 3] = [config_maps, widgets, pods];
    let mut rest = number;
    let mut choose = |among: usize| {
        let chosen = rest % among;
        rest /= among;
        chosen
    };
    let mut plan = Plan::new(format!("informer {number}"), kinds[choose(kinds.len())]());
    plan.namespaces = match choose(NAMESPACES.len() + 2) {
        0 => None,
        1 => Some(NAMESPACES.to_vec()),
        one => Some(vec![NAMESPACES[one - 2]]),
    };
    plan.color = choose(COLORS.len() + 1).checked_sub(1).map(|color| COLORS[color]);
    plan.streaming = choose(2) == 0;
    plan.page = (!plan.streaming).then_some(10 + number as u32 % 50);
    plan.brisk = choose(2) == 0;
    plan
}
