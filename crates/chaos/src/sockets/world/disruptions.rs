//! The steps of a world.

use super::{SETTLE_TIMEOUT, Step, World};
use crate::{
    cluster::config_maps,
    etcd_client,
    report::Fault,
    subject::{SHORT_WATCH_TIMEOUT, SILENCE_TIMEOUT},
};
use anyhow::Context;
use harness::wait_until;
use kube_informer::Stop;
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::Instant;

/// The resource version that every informer must have reached before the server loses its data. The next epoch must start
/// with smaller versions: otherwise no client could notice the loss.
const MIN_VERSION: u64 = 1400;
/// Duration of a pause, longer than the timeouts of clients.
const PAUSE: Duration = Duration::from_secs(SILENCE_TIMEOUT.as_secs() + SHORT_WATCH_TIMEOUT.as_secs() + 2);
const STORM: Duration = Duration::from_secs(6);

impl World<'_> {
    pub(super) async fn perform(&mut self, step: Step) -> anyhow::Result<()> {
        match step {
            Step::Storm => self.storm().await,
            Step::Pause => self.pause().await,
            Step::Kill | Step::Replace => self.lose_data(step).await,
            Step::KillOverEtcd => self.kill_over_etcd().await,
            Step::KillEtcd => self.kill_etcd().await,
            Step::Compact => self.compact().await,
        }
    }

    async fn storm(&mut self) -> anyhow::Result<()> {
        self.wait_for_writes(50).await?;
        self.short_watch_proxy.start_storm(self.rng.fork());
        self.long_watch_proxy.start_storm(self.rng.fork());
        let end = Instant::now() + STORM;
        while Instant::now() < end {
            self.short_watch_proxy.break_one_connection(&mut self.rng);
            self.long_watch_proxy.break_one_connection(&mut self.rng);
            match self.rng.u8(0..30) {
                0 | 1 => self.refuse_connections().await?,
                2..8 => {
                    let number = self.rng.usize(..self.subjects.len());
                    self.subjects[number].swap_handler().await;
                }
                8 => self.restart_informer().await?,
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(self.rng.u64(20..150))).await;
        }
        self.short_watch_proxy.end_storm();
        self.long_watch_proxy.end_storm();
        Ok(())
    }

    async fn refuse_connections(&mut self) -> anyhow::Result<()> {
        let time = Duration::from_millis(self.rng.u64(100..600));
        let proxy = if self.rng.bool() { &mut self.short_watch_proxy } else { &mut self.long_watch_proxy };
        proxy.refuse().await;
        proxy.break_one_connection(&mut self.rng);
        tokio::time::sleep(time).await;
        proxy.listen().await.context("another program took the port of the proxy; run it again")
    }

    async fn restart_informer(&mut self) -> anyhow::Result<()> {
        let subject = self.subjects.swap_remove(self.rng.usize(..self.subjects.len()));
        let settings = subject.settings.clone();
        subject.stop(if self.rng.bool() { Stop::Drop } else { Stop::Drain }).await;
        self.report.record_fault(Fault::InformerStopped);
        self.start_informer(settings)?;
        self.share_informers();
        Ok(())
    }

    async fn pause(&mut self) -> anyhow::Result<()> {
        self.wait_for_writes(20).await?;
        self.server.signal("STOP").await?;
        self.report.record_fault(Fault::Paused);
        tokio::time::sleep(PAUSE).await;
        self.server.signal("CONT").await
    }

    /// Starts a new epoch of the server, with other data and smaller resource versions.
    async fn lose_data(&mut self, step: Step) -> anyhow::Result<()> {
        let what = format!("every informer has reached version {MIN_VERSION}");
        wait_until(SETTLE_TIMEOUT, &what, async || {
            anyhow::Ok(self.subjects.iter().all(|subject| subject.resource_version() >= MIN_VERSION))
        })
        .await?;
        if step == Step::Kill {
            self.server.kill().await?;
            self.report.record_fault(Fault::Killed);
        } else {
            self.server.signal("TERM").await?;
            self.server.wait().await?;
            self.report.record_fault(Fault::Replaced);
        }
        self.control.set_writing(false);
        let epoch = self.control.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        let pods = if step == Step::Kill { 0 } else { self.rng.u32(5..20) };
        self.server.restart(pods, self.rng.u64(..)).await?;
        self.direct.create_fixtures(epoch).await?;
        let (version, _) = self.direct.list(&config_maps()).await?;
        anyhow::ensure!(
            version < MIN_VERSION,
            "the new epoch starts at {version}; raise MIN_VERSION above it"
        );
        for subject in &self.subjects {
            let what = format!("{} notices the new epoch", subject.settings.name);
            wait_until(SETTLE_TIMEOUT, &what, async || anyhow::Ok(subject.has_reached_epoch(epoch))).await?;
        }
        self.control.set_writing(true);
        Ok(())
    }

    async fn kill_over_etcd(&mut self) -> anyhow::Result<()> {
        self.wait_for_writes(50).await?;
        self.server.kill().await?;
        self.report.record_fault(Fault::ServerKilled);
        self.server.restart(0, self.rng.u64(..)).await?;
        self.wait_for_writes(20).await
    }

    async fn kill_etcd(&mut self) -> anyhow::Result<()> {
        self.wait_for_writes(50).await?;
        let etcd = self.etcd.as_mut().context("this world is not on etcd")?;
        tokio::task::block_in_place(|| etcd.kill());
        self.report.record_fault(Fault::EtcdKilled);
        tokio::time::sleep(Duration::from_millis(self.rng.u64(0..1500))).await;
        tokio::task::block_in_place(|| etcd.restart());
        self.wait_for_writes(20).await
    }

    async fn compact(&mut self) -> anyhow::Result<()> {
        self.wait_for_writes(50).await?;
        self.server.kill().await?;
        let etcd = self.etcd.as_ref().context("this world is not on etcd")?;
        etcd_client::compact(&etcd.url).await?;
        self.report.record_fault(Fault::EtcdCompacted);
        self.server.restart(0, self.rng.u64(..)).await?;
        self.wait_for_writes(20).await
    }

    /// Waits until this many more writes are done.
    async fn wait_for_writes(&self, more: u64) -> anyhow::Result<()> {
        self.control.set_writing(true);
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let enough = count(&self.report.writes) + more;
        wait_until(SETTLE_TIMEOUT, "more writes are done", async || {
            anyhow::Ok(count(&self.report.writes) >= enough)
        })
        .await
    }
}
