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
    sync::{Arc, atomic::Ordering},
    time::Duration,
};
use tokio::time::Instant;

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

/// Each informer has its own kind, namespaces, selector and way to list; at rest each one, with its index and
/// handlers, is what a LIST shows.
pub async fn many_informers(load: InformerLoad, say: &dyn Fn(&str)) -> anyhow::Result<String> {
    let InformerLoad { informers, writes, seed } = load;
    let before = Held::now()?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let server = Server::start().await?;
    let direct = Direct::new(server.address)?;
    let ledger = Arc::new(Ledger::new());
    let desk = Desk::new(Arc::clone(&ledger));
    direct.furnish(desk.life()).await?;
    let empty = rss()?;
    let client = informer_client(server.address)?;
    let tempers = [Temper::Plain, Temper::Filtering, Temper::Feeding];
    let mut followers = Vec::new();
    for plan in (0..informers).map(plan) {
        followers.push(Follower::start(plan, client.clone(), &tempers, &ledger, rng.fork())?);
    }
    drop(client);
    let began = Instant::now();
    for follower in &followers {
        follower.informer.synced(PATIENCE).await?;
    }
    let synced = began.elapsed().as_secs_f64();
    say(&format!("{informers} informers are synced after {synced:.1}s"));
    *lock(&desk.watched) = followers.iter().map(Follower::watched).collect();
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        writers.push(Writer::begin(number, Arc::clone(&desk), Direct::new(server.address)?, rng.fork()));
    }
    desk.set_open(true);
    let mut next = writes / 10;
    let enough = async || {
        let done = ledger.writes.load(Ordering::Relaxed);
        if done >= next && done < writes {
            say(&format!("{done} of {writes} writes"));
            next += writes / 10;
        }
        Ok(done >= writes)
    };
    until(PATIENCE, "writes are done", enough).await?;
    desk.set_open(false);
    until(PATIENCE, "writers end what they are at", async || Ok(desk.is_idle())).await?;
    let seconds = began.elapsed().as_secs_f64();
    followers.iter().for_each(|follower| follower.set_clumsy(false));
    let mut last = String::new();
    let rest = until(PATIENCE, "each informer is what a LIST shows", async || {
        match compare(&direct, &followers).await {
            Ok(()) => return Ok(true),
            Err(difference) => last = difference,
        }
        Ok(false)
    });
    rest.await.map_err(|error| error.context(last))?;
    let (full, tasks) = (rss()?, Held::now()?);
    futures_util::future::join_all(followers.into_iter().map(|follower| follower.stop(Stop::Drop))).await;
    lock(&desk.watched).clear();
    writers.iter().for_each(|writer| writer.abort());
    futures_util::future::join_all(writers).await;
    drop((direct, server, desk));
    until(PATIENCE, "tasks and files are given back", async || Ok(Held::now()?.is_within(before))).await?;
    let failures = ledger.failures();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Ok(format!(
        "informers={informers} handlers={} writes={} calls={} awaited={} synced={synced:.1}s wall={seconds:.1}s \
         tasks={} files={} rss={} of which informers {}",
        informers * tempers.len(),
        count(&ledger.writes),
        count(&ledger.delivered),
        count(&ledger.awaited),
        tasks.tasks,
        tasks.files,
        mb(full),
        mb(full.saturating_sub(empty)),
    ))
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

async fn compare(direct: &Direct, followers: &[Follower]) -> Result<(), String> {
    for kind in [config_maps(), widgets(), pods()] {
        let (_, truth) = direct.list(&kind).await.map_err(|error| error.to_string())?;
        for follower in followers.iter().filter(|follower| follower.plan.kind == kind) {
            follower.check(&truth)?;
        }
    }
    Ok(())
}
