//! What is done to a world, step by step.

use super::{REST, Step, World};
use crate::{
    cluster::config_maps,
    etcd_client,
    follower::{BRISK_WATCH, PATIENCE},
    ledger::Fault,
    until::until,
};
use anyhow::Context;
use kube_informer::Stop;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// How far every informer has come before the server may lose its history: what the next life begins with must have
/// smaller versions, or else nobody could tell that it is another one.
const FLOOR: u64 = 1400;
/// How long a server is paused: longer than its clients tolerate.
const PAUSE: Duration = Duration::from_secs(PATIENCE.as_secs() + BRISK_WATCH.as_secs() + 2);
const STORM: Duration = Duration::from_secs(6);

impl World<'_> {
    pub(super) async fn take(&mut self, step: Step) -> anyhow::Result<()> {
        match step {
            Step::Storm => self.storm().await,
            Step::Pause => self.pause().await,
            Step::Kill | Step::Replace => self.lose_history(step).await,
            Step::KillOverEtcd => self.kill_over_etcd().await,
            Step::KillEtcd => self.kill_etcd().await,
            Step::Compact => self.compact().await,
        }
    }

    async fn storm(&mut self) -> anyhow::Result<()> {
        self.written(50).await?;
        self.brisk.storm(self.rng.fork());
        self.patient.storm(self.rng.fork());
        let end = Instant::now() + STORM;
        while Instant::now() < end {
            self.brisk.strike(&mut self.rng);
            self.patient.strike(&mut self.rng);
            match self.rng.u8(0..30) {
                0 | 1 => self.refuse().await?,
                2..8 => {
                    let number = self.rng.usize(..self.followers.len());
                    self.followers[number].swap_handler().await;
                }
                8 => self.restart_informer().await?,
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(self.rng.u64(20..150))).await;
        }
        self.brisk.calm();
        self.patient.calm();
        Ok(())
    }

    async fn refuse(&mut self) -> anyhow::Result<()> {
        let time = Duration::from_millis(self.rng.u64(100..600));
        let proxy = if self.rng.bool() { &mut self.brisk } else { &mut self.patient };
        proxy.refuse().await;
        proxy.strike(&mut self.rng);
        tokio::time::sleep(time).await;
        proxy.listen().await.context("somebody else took the port of the proxy; run it again")
    }

    async fn restart_informer(&mut self) -> anyhow::Result<()> {
        let follower = self.followers.swap_remove(self.rng.usize(..self.followers.len()));
        let plan = follower.plan.clone();
        follower.stop(if self.rng.bool() { Stop::Drop } else { Stop::Drain }).await;
        self.ledger.strike(Fault::InformerStopped);
        self.follow(plan)?;
        self.announce();
        Ok(())
    }

    async fn pause(&mut self) -> anyhow::Result<()> {
        self.written(20).await?;
        self.served.signal("STOP").await?;
        self.ledger.strike(Fault::Paused);
        tokio::time::sleep(PAUSE).await;
        self.served.signal("CONT").await
    }

    /// The server begins a new life with another state and smaller versions.
    async fn lose_history(&mut self, step: Step) -> anyhow::Result<()> {
        let far = || self.followers.iter().all(|follower| follower.position() >= FLOOR);
        until(REST, "every informer is far enough to notice that the server is not", async || Ok(far()))
            .await?;
        if step == Step::Kill {
            self.served.kill().await?;
            self.ledger.strike(Fault::Killed);
        } else {
            self.served.signal("TERM").await?;
            self.served.ended().await?;
            self.ledger.strike(Fault::Replaced);
        }
        self.desk.set_open(false);
        let life = self.desk.life.fetch_add(1, Ordering::SeqCst) + 1;
        let pods = if step == Step::Kill { 0 } else { self.rng.u32(5..20) };
        self.served.restart(pods, self.rng.u64(..)).await?;
        self.direct.furnish(life).await?;
        let (version, _) = self.direct.list(&config_maps()).await?;
        anyhow::ensure!(version < FLOOR, "the new life begins with version {version}; raise FLOOR above it");
        for follower in &self.followers {
            let what = format!("{} notices the new life", follower.plan.name);
            until(REST, &what, async || Ok(follower.is_in(life))).await?;
        }
        self.desk.set_open(true);
        Ok(())
    }

    async fn kill_over_etcd(&mut self) -> anyhow::Result<()> {
        self.written(50).await?;
        self.served.kill().await?;
        self.ledger.strike(Fault::ServerKilled);
        self.served.restart(0, self.rng.u64(..)).await?;
        self.written(20).await
    }

    async fn kill_etcd(&mut self) -> anyhow::Result<()> {
        self.written(50).await?;
        let etcd = self.etcd.as_mut().context("this world has no etcd")?;
        tokio::task::block_in_place(|| etcd.kill());
        self.ledger.strike(Fault::EtcdKilled);
        tokio::time::sleep(Duration::from_millis(self.rng.u64(0..1500))).await;
        tokio::task::block_in_place(|| etcd.restart());
        self.written(20).await
    }

    async fn compact(&mut self) -> anyhow::Result<()> {
        self.written(50).await?;
        self.served.kill().await?;
        let etcd = self.etcd.as_ref().context("this world has no etcd")?;
        etcd_client::compact(&etcd.url).await?;
        self.ledger.strike(Fault::EtcdCompacted);
        self.served.restart(0, self.rng.u64(..)).await?;
        self.written(20).await
    }

    /// So many more writes are done.
    async fn written(&self, more: u64) -> anyhow::Result<()> {
        self.desk.set_open(true);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let enough = count(&self.ledger.writes) + more;
        until(REST, "writes go on", async || Ok(count(&self.ledger.writes) >= enough)).await
    }
}
