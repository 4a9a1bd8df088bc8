//! The task of a replica for one shard: takes it, reconciles it, and hands it over.

use super::{
    keys::ShardKeys,
    lease,
    table::{Stage, Table},
};
use crate::{
    leader::{ElectionConfigError, Elector, LeaderElection},
    run::Shared,
    time,
};
use std::{future::Future, pin::pin, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// A controller whose objects are divided into shards.
#[derive(Clone)]
pub(super) struct Divided {
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Arc<ShardKeys>,
}

/// The part of a replica in one shard.
pub(super) struct Member {
    shard: u32,
    table: Arc<Table>,
    controllers: Vec<Divided>,
    elector: Elector,
}

/// Why a shard is not held any more.
enum End {
    /// The Lease was lost.
    Lost,
    /// All reconciles have ended.
    Drained,
}

impl Member {
    pub(super) fn new(
        shard: u32,
        table: &Arc<Table>,
        controllers: &[Divided],
        election: &LeaderElection,
        client: &kube::Client,
    ) -> Result<Self, ElectionConfigError> {
        let mut election = election.clone().label(lease::NAME_LABEL, table.name());
        election.name = table.lease_name(shard);
        election.seed = election.seed.wrapping_add(u64::from(shard));
        let divided = controllers.to_vec();
        election.on_write = Some(Arc::new(move |metadata, taking| {
            let progress = divided.iter().filter_map(|controller| {
                let name = controller.shared.settings.name.to_string();
                Some((name, controller.keys.progress(shard)?))
            });
            lease::annotate(metadata, &progress.collect(), taking);
        }));
        // Others ask for the shard in its Lease. The informer of the Leases may be behind, or back off after failures, while renewals
        // succeed.
        let seen = Arc::clone(table);
        election.on_written = Some(Arc::new(move |lease| seen.observe(lease)));
        let elector = election.elector(client.clone())?;
        Ok(Self { shard, table: Arc::clone(table), controllers: controllers.to_vec(), elector })
    }

    /// Takes the shard whenever it may, until `stop` is cancelled. Then it releases the shard.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let acquired = tokio::select! {
                biased;
                () = stop.cancelled() => None,
                since = self.acquire() => Some(since),
            };
            let Some(since) = acquired else {
                // A request that was under way may have acquired it.
                return self.elector.release().await;
            };
            self.hold(since, &stop).await;
        }
    }

    /// Resolves when the Lease is held, with the time from which it is.
    async fn acquire(&mut self) -> Duration {
        loop {
            // Before the attempt: the Lease may be taken and released again meanwhile.
            let known = self.table.lease_version(self.shard);
            let mut wait = self.table.wait_to_take(self.shard);
            if wait.is_zero() {
                // The time for which others have seen no change counts, not only that since the last request.
                if let Some((spec, at)) = self.table.last_seen(self.shard) {
                    self.elector.observe(&spec, at);
                }
                let acquired = self.elector.try_acquire().await;
                if let Some(lease) = self.elector.last_seen() {
                    self.table.observe(lease);
                }
                if let Some(since) = acquired {
                    return since;
                }
                wait = self.elector.retry_delay();
            }
            // Nothing to do until the Lease changes.
            let _ = time::timeout(wait, self.table.lease_changed(self.shard, known)).await;
        }
    }

    /// Holds the shard until the Lease is lost, another replica asks for it, or `stop` is cancelled.
    async fn hold(&mut self, since: Duration, stop: &CancellationToken) {
        let Self { shard, table, controllers, elector } = self;
        let leadership = elector.leadership().clone();
        let lost = table.begin(*shard, leadership.clone());
        let end = {
            let drained = async {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => {}
                    () = requested(table, *shard) => info!(shard, "handing over a shard"),
                    () = prepare(table, controllers, *shard) => {}
                }
                table.set_stage(*shard, Stage::Draining);
                drain(controllers, *shard, &lost).await;
            };
            let (mut drained, mut renew) = (pin!(drained), pin!(elector.renew(since)));
            tokio::select! {
                biased;
                error = &mut renew => {
                    warn!(shard, %error, "lost a shard");
                    End::Lost
                }
                () = &mut drained => End::Drained,
            }
        };
        if matches!(end, End::Lost) {
            // Before the reconciles end: what they do until then must not be written.
            leadership.end();
            lost.cancel();
            all_ended(controllers, *shard).await;
        }
        elector.end();
        table.end(*shard);
        controllers.iter().for_each(|controller| controller.keys.lost(*shard));
        if matches!(end, End::Drained) {
            elector.release().await;
            if let Some(lease) = elector.last_seen() {
                table.observe(lease);
            }
        }
    }
}

/// Makes a shard ready when the caches are known to be current. Never resolves.
async fn prepare(table: &Table, controllers: &[Divided], shard: u32) {
    for controller in controllers {
        let version = controller.shared.prove_fresh().await;
        controller.keys.gained(shard, version);
    }
    table.set_stage(shard, Stage::Ready);
    info!(shard, "reconciling a shard");
    for controller in controllers {
        controller.keys.enqueue(shard).await;
    }
    std::future::pending().await
}

/// Resolves when another replica asks for a shard.
async fn requested(table: &Table, shard: u32) {
    let mut changes = table.changes();
    while !table.is_requested(shard) {
        // The table outlives this.
        let _ = changes.changed().await;
    }
}

/// Waits for the reconciles in flight, and cancels those that do not return in time.
async fn drain(controllers: &[Divided], shard: u32, lost: &CancellationToken) {
    let timeouts = controllers.iter().map(|controller| controller.shared.settings.drain_timeout);
    let within = timeouts.max().unwrap_or_default();
    if time::timeout(within, all_ended(controllers, shard)).await.is_err() {
        warn!(shard, ?within, "reconciles did not return in time and are cancelled");
        lost.cancel();
        all_ended(controllers, shard).await;
    }
}

fn all_ended(controllers: &[Divided], shard: u32) -> impl Future<Output = ()> {
    let ended = controllers.iter().map(move |controller| controller.keys.ended(shard));
    let all = futures_util::future::join_all(ended);
    async { drop(all.await) }
}
